//! The tables of a scenario file, as TOML is deserialised.

use super::super::super::request::RequestOrder;
use super::super::super::request::{AnswerCheck, Request};
use super::super::{Model, Take};
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestFile {
    pub(super) model: Option<Model>,
    #[serde(default)]
    pub(super) order: RequestOrder,
    #[serde(default)]
    pub(super) headers: SortedMap<String, String>,
    pub(super) redirects: Option<u32>,
    pub(super) cookies: Option<bool>,
    pub(super) think: Option<Spanned<ThinkTime>>,
    #[serde(default)]
    pub(super) stage: Vec<Spanned<StageEntry>>,
    #[serde(default)]
    pub(super) request: Vec<Spanned<RequestEntry>>,
    #[serde(default)]
    pub(super) session: Vec<Spanned<SessionEntry>>,
    #[serde(default)]
    pub(super) data: Vec<Spanned<DataEntry>>,
    pub(super) abort: Option<Spanned<AbortEntry>>,
    #[serde(default)]
    pub(super) limits: SortedMap<String, Spanned<Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StageEntry {
    pub(super) duration: String,
    pub(super) rate: Option<Level>,
    pub(super) users: Option<Level>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, or two for a ramp such as [10, 200]")]
pub(super) enum Level {
    Constant(f64),
    Ramp([f64; 2]),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a time such as \"1s\", or two such as [\"1s\", \"3s\"]")]
pub(super) enum ThinkTime {
    Constant(String),
    Between([String; 2]),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionEntry {
    pub(super) name: String,
    #[serde(default = "one")]
    pub(super) weight: f64,
    #[serde(default)]
    pub(super) request: Vec<Spanned<RequestEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DataEntry {
    pub(super) name: String,
    pub(super) file: PathBuf,
    #[serde(default)]
    pub(super) take: Take,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AbortEntry {
    pub(super) errors: Option<String>,
    pub(super) p99: Option<String>,
    pub(super) over: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaptureEntry {
    pub(super) json: Option<String>,
    pub(super) regex: Option<String>,
    pub(super) header: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestEntry {
    name: Option<String>,
    group: Option<String>,
    #[serde(default = "get")]
    method: String,
    path: String,
    #[serde(default)]
    headers: SortedMap<String, String>,
    pub(super) body: Option<String>,
    body_file: Option<PathBuf>,
    #[serde(default = "one")]
    weight: f64,
    #[serde(default)]
    check: AnswerCheck,
    #[serde(default)]
    pub(super) capture: SortedMap<String, CaptureEntry>,
    pub(super) think: Option<ThinkTime>,
}

fn get() -> String {
    "GET".to_owned()
}

fn one() -> f64 {
    1.0
}

impl RequestEntry {
    /// The texts in which placeholders may occur.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.values().map(String::as_str);
        std::iter::once(self.path.as_str()).chain(headers).chain(self.body.as_deref())
    }

    /// The request as written, with its placeholders, and with the headers that all requests have.
    pub(super) fn request(
        &self,
        inherited: &SortedMap<String, String>,
        folder: &Path,
    ) -> Result<Request, String> {
        let name = self.name.clone().unwrap_or_else(|| format!("{} {}", self.method, self.path));
        let body = match (&self.body, &self.body_file) {
            (Some(_), Some(_)) => {
                return Err(format!("request ‘{name}’ has both body and body_file: leave one out"));
            }
            (Some(body), None) => body.clone().into_bytes(),
            (None, Some(file)) => std::fs::read(folder.join(file)).map_err(|error| {
                format!("cannot read ‘{}’ for request ‘{name}’: {error}", folder.join(file).display())
            })?,
            (None, None) => Vec::new(),
        };
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        for (key, value) in inherited {
            if !headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(key)) {
                headers.push((key.clone(), value.clone()));
            }
        }
        Ok(Request {
            name,
            group: self.group.clone(),
            method: self.method.clone(),
            path: self.path.clone(),
            headers,
            body,
            weight: self.weight,
            check: self.check.clone(),
            keep: false,
        })
    }
}
