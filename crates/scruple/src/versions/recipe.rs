//! The inputs of builds other than the tree: steps, environment, overlays for parts of a range, tools.

use super::overlay::{Overlay, Replacement};
use super::source_repository::Source;
use super::tree_path::TreePath;
use crate::fault::Fault;
use scruple_measure::program::Program;
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How every version is built and checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The shell commands that are run in the tree, in this order.
    pub steps: Vec<String>,
    /// The files and folders of the tree to keep. An empty list means the whole tree.
    pub artefacts: Vec<TreePath>,
    /// A shell command that must succeed in the tree after the build.
    pub check: Option<String>,
    /// The variables of steps, check and measured programs.
    pub env: SortedMap<String, String>,
    /// The commands whose output identifies toolchains.
    pub toolchain: Vec<String>,
    /// Whether the results of earlier builds are removed before each build.
    pub clean: bool,
    /// The time limit of a step and of the check.
    pub limit: Option<Duration>,
    /// The exceptions for parts of the range, in order.
    pub overlays: Vec<Overlay>,
    /// The values of parameters, unless an overlay sets them.
    pub params: SortedMap<String, String>,
    /// The parameter that is the size of the work, if the cost per unit of work is compared.
    pub size: Option<String>,
}

/// The build settings of one version, with all overlays applied.
#[derive(Clone, Debug, PartialEq)]
pub struct BuildSettings {
    /// The paths of patch files.
    pub patches: Vec<PathBuf>,
    /// The replacements of text in files.
    pub replace: Vec<Replacement>,
    /// The build steps.
    pub steps: Vec<String>,
    /// The environment variables.
    pub env: Vec<(String, String)>,
    /// The values of parameters.
    pub params: SortedMap<String, String>,
    /// The parameter that is the size of the work.
    pub size: Option<String>,
    /// A text that differs between different builds of the same tree.
    pub settings_key: String,
}

/// A recipe whose overlays are resolved to commits, and whose tools are identified.
#[derive(Clone, Serialize, Deserialize)]
pub struct ResolvedRecipe {
    recipe: Recipe,
    members: Vec<BTreeSet<String>>,
    tools: String,
}

impl Recipe {
    /// Resolves the commits of the overlays, and identifies the tools.
    pub fn resolve(self, source: &Source) -> Result<ResolvedRecipe, Fault> {
        let members = |overlay: &Overlay| Ok(source.members(&overlay.commits)?.into_iter().collect());
        let members = self.overlays.iter().map(members).collect::<Result<_, Fault>>()?;
        let tools = self.tools()?;
        Ok(ResolvedRecipe { recipe: self, members, tools })
    }

    /// Returns a text that is equal for equal recipes and different for different ones.
    pub fn recipe_key(&self) -> String {
        format!("{self:?}")
    }

    /// Identifies the tools of this machine: by the output of the configured commands, or else by the files of the
    /// steps' first words and of the C and Rust compilers.
    fn tools(&self) -> Result<String, Fault> {
        if self.toolchain.is_empty() {
            let steps = self
                .steps
                .iter()
                .chain(self.overlays.iter().flat_map(|overlay| overlay.steps.iter().flatten()));
            let mut words: Vec<&str> = steps
                .flat_map(|step| step.split(['&', ';', '|', '\n']))
                .filter_map(|part| part.split_whitespace().find(|word| !word.contains('=')))
                .filter(|word| !word.contains('/'))
                .chain(["cc", "rustc"])
                .collect();
            words.sort_unstable();
            words.dedup();
            return Ok(words.into_iter().filter_map(identity).collect());
        }
        let mut output_of_all = String::new();
        for command in &self.toolchain {
            let output = std::process::Command::new("sh").args(["-c", command]).output();
            match output {
                Ok(output) if output.status.success() => {
                    output_of_all += &format!("{command}\n{}", String::from_utf8_lossy(&output.stdout));
                }
                Ok(output) => {
                    return Err(Fault::usage(format!(
                        "the toolchain command ‘{command}’ failed ({}): install the tool, or name another command",
                        output.status
                    )));
                }
                Err(error) => return Err(Fault::usage(format!("cannot run ‘{command}’: {error}"))),
            }
        }
        Ok(output_of_all)
    }
}

fn identity(word: &str) -> Option<String> {
    let path = Program::find(OsStr::new(word), Path::new("/")).ok()?.path.canonicalize().ok()?;
    let data = path.metadata().ok()?;
    Some(format!("{} {} {}\n", path.display(), data.len(), data.mtime()))
}

impl ResolvedRecipe {
    /// Returns the recipe as it was before it was resolved.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns the same recipe, with its overlays limited to these commits.
    pub fn for_commits(&self, commits: &HashSet<String>) -> ResolvedRecipe {
        let within = |members: &BTreeSet<String>| {
            members.iter().filter(|commit| commits.contains(*commit)).cloned().collect()
        };
        ResolvedRecipe { members: self.members.iter().map(within).collect(), ..self.clone() }
    }

    /// Returns the build settings of this commit.
    pub fn of(&self, commit: &str) -> BuildSettings {
        let recipe = &self.recipe;
        let (mut env, mut params) = (recipe.env.clone(), recipe.params.clone());
        let mut steps = &recipe.steps;
        let (mut patches, mut replace, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        let overlays = recipe.overlays.iter().zip(&self.members);
        for (overlay, _) in overlays.filter(|(_, members)| members.contains(commit)) {
            env.extend(overlay.env.clone());
            params.extend(overlay.params.clone());
            steps = overlay.steps.as_ref().unwrap_or(steps);
            replace.extend(overlay.replace.iter().cloned());
            if let Some((file, text)) = &overlay.patch {
                patches.push(file.clone());
                texts.push(text);
            }
        }
        let settings_key = format!(
            "{:?}",
            (&texts, &replace, steps, &env, &recipe.artefacts, &recipe.check, recipe.clean, &self.tools)
        );
        let (steps, env) = (steps.clone(), env.into_iter().collect());
        BuildSettings { patches, replace, steps, env, params, size: recipe.size.clone(), settings_key }
    }
}
