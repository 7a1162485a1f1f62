//! The parts of `scruple.toml` about builds: `[build]`, `[history]` and `[[history.overlay]]`.

use crate::config::{Config, plain};
use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildEntry {
    #[serde(default)]
    steps: Vec<String>,
    #[serde(default)]
    artifacts: Vec<String>,
    check: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    toolchain: Vec<String>,
    #[serde(default)]
    clean: bool,
    limit: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryEntry {
    range: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, toml::Value>,
    size: Option<String>,
    #[serde(default)]
    overlay: Vec<OverlayEntry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverlayEntry {
    commits: String,
    patch: Option<PathBuf>,
    #[serde(default)]
    replace: Option<Replacements>,
    build: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    params: BTreeMap<String, toml::Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Replacements {
    One(Replacement),
    Several(Vec<Replacement>),
}

/// A text that replaces another one everywhere in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The file, from the top of the tree.
    pub file: String,
    /// The old text.
    pub from: String,
    /// The new text.
    pub to: String,
}

/// The file's settings for builds.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredHistory {
    /// Build steps.
    pub steps: Vec<String>,
    /// What to keep of the tree.
    pub artefacts: Vec<String>,
    /// What must succeed after the build.
    pub check: Option<String>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Commands that identify toolchains.
    pub toolchain: Vec<String>,
    /// Whether builds begin clean.
    pub clean: bool,
    /// How long a step may take.
    pub limit: Option<String>,
    /// The range.
    pub range: Option<String>,
    /// Values of parameters for all versions.
    pub params: BTreeMap<String, String>,
    /// The parameter that is the size of the work.
    pub size: Option<String>,
    /// Exceptions for parts of the range.
    pub overlays: Vec<Overlay>,
}

/// The exceptions for a part of the range.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overlay {
    /// A range, or one commit.
    pub commits: String,
    /// The file of a patch, and its text.
    pub patch: Option<(PathBuf, String)>,
    /// Replacements in files.
    pub replace: Vec<Replacement>,
    /// Steps that replace the recipe's.
    pub steps: Option<Vec<String>>,
    /// Variables added to the recipe's.
    pub env: BTreeMap<String, String>,
    /// Values of parameters.
    pub params: BTreeMap<String, String>,
}

impl Config {
    /// The settings for builds. Patches are read here, so that changes of them are noticed.
    pub fn history(&self) -> Result<ConfiguredHistory, Fault> {
        let (build, history) = (&self.file.build, &self.file.history);
        Ok(ConfiguredHistory {
            steps: build.steps.clone(),
            artefacts: build.artifacts.clone(),
            check: build.check.clone(),
            env: build.env.clone(),
            toolchain: build.toolchain.clone(),
            clean: build.clean,
            limit: build.limit.clone(),
            range: history.range.clone(),
            params: texts(&history.params),
            size: history.size.clone(),
            overlays: history.overlay.iter().map(|entry| self.overlay(entry)).collect::<Result<_, _>>()?,
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
        let replace = match entry.replace.clone() {
            None => Vec::new(),
            Some(Replacements::One(one)) => vec![one],
            Some(Replacements::Several(several)) => several,
        };
        Ok(Overlay {
            commits: entry.commits.clone(),
            patch,
            replace,
            steps: entry.build.clone(),
            env: entry.env.clone(),
            params: texts(&entry.params),
        })
    }
}

fn texts(values: &BTreeMap<String, toml::Value>) -> BTreeMap<String, String> {
    values.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
}
