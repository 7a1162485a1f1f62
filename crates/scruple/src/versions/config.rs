//! The parts of `scruple.toml` about builds: `[build]`, `[history]` and `[[history.overlay]]`.

use super::Recipe;
use super::overlay::{Overlay, Replacement};
use super::tree_path::TreePath;
use crate::cli::values;
use crate::config::{Config, plain};
use crate::fault::Fault;
use scruple_stats::sorting::SortedMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [build]")]
pub struct BuildEntry {
    #[serde(default)]
    steps: Vec<String>,
    #[serde(default)]
    artifacts: Vec<TreePath>,
    check: Option<String>,
    #[serde(default)]
    env: SortedMap<String, String>,
    #[serde(default)]
    toolchain: Vec<String>,
    #[serde(default)]
    clean: bool,
    limit: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [history]")]
pub struct HistoryEntry {
    range: Option<String>,
    #[serde(default)]
    params: SortedMap<String, toml::Value>,
    size: Option<String>,
    #[serde(default)]
    overlay: Vec<OverlayEntry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [[history.overlay]] with commits")]
struct OverlayEntry {
    commits: String,
    patch: Option<PathBuf>,
    #[serde(default, deserialize_with = "one_or_several")]
    replace: Vec<Replacement>,
    build: Option<Vec<String>>,
    #[serde(default)]
    env: SortedMap<String, String>,
    #[serde(default)]
    params: SortedMap<String, toml::Value>,
}

impl Config {
    /// Returns the range of commits that `[history]` names.
    pub fn range(&self) -> Option<String> {
        self.file.history.range.clone()
    }

    /// Returns how versions are built. It reads the text of patches as well, so that a changed patch is noticed.
    pub fn recipe(&self) -> Result<Recipe, Fault> {
        let (build, history) = (&self.file.build, &self.file.history);
        Ok(Recipe {
            steps: build.steps.clone(),
            artefacts: build.artifacts.clone(),
            check: build.check.clone(),
            env: build.env.clone(),
            toolchain: build.toolchain.clone(),
            clean: build.clean,
            limit: build.limit.as_deref().map(values::duration).transpose()?,
            overlays: history.overlay.iter().map(|entry| self.overlay(entry)).collect::<Result<_, _>>()?,
            params: texts(&history.params),
            size: history.size.clone(),
        })
    }

    fn overlay(&self, entry: &OverlayEntry) -> Result<Overlay, Fault> {
        let patch = match &entry.patch {
            None => None,
            Some(name) => {
                let path = std::path::absolute(self.folder().join(name)).unwrap_or_else(|_| name.clone());
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    Fault::usage(format!(
                        "‘{}’: the patch ‘{}’ cannot be read: {error}",
                        self.path.display(),
                        path.display()
                    ))
                })?;
                Some((path, text))
            }
        };
        Ok(Overlay {
            commits: entry.commits.clone(),
            patch,
            replace: entry.replace.clone(),
            steps: entry.build.clone(),
            env: entry.env.clone(),
            params: texts(&entry.params),
        })
    }
}

/// Reads one replacement, or a list of them.
fn one_or_several<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Replacement>, D::Error> {
    let value = toml::Value::deserialize(from)?;
    let replacements = match value {
        toml::Value::Array(_) => value.try_into(),
        _ => value.try_into().map(|one| vec![one]),
    };
    replacements.map_err(|error| D::Error::custom(error.message()))
}

fn texts(values: &SortedMap<String, toml::Value>) -> SortedMap<String, String> {
    SortedMap::from_iter(values.iter().map(|(name, value)| (name.clone(), plain(value))))
}
