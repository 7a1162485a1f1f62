//! The versions of a repository: which there are, and how each is built and kept.

pub mod accepted_changes;
pub mod ancestry;
pub mod args;
pub mod artefacts;
pub mod build;
pub mod build_process;
pub mod cache;
pub mod clean;
pub mod config;
pub mod environment;
pub mod overlay;
pub mod recipe;
pub mod requested_subjects;
pub mod selected_version;
pub mod selection;
pub mod source_repository;
pub mod subjects;
pub mod tree_path;
pub mod two_revisions;
mod untracked;

pub use recipe::Recipe;
pub use selection::VersionSelection;
pub use source_repository::place_of;
pub use subjects::{SubjectTemplate, smaller_size};

use crate::fault::Fault;
use crate::paths;
use build_process::BuildLauncher;
use cache::Cache;
use scruple_measure::launcher::Launcher;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What building needs: a launcher, and the flag of an interruption.
pub struct BuildStarter {
    /// The launcher of build processes.
    pub launcher: Launcher,
    /// The id of the process that launches the measured programs, if there is one.
    pub weighing: Option<i32>,
    /// The flag that the user's interruption sets.
    pub interrupted: Arc<AtomicBool>,
}

/// Returns the folder that holds the builds of a repository.
pub fn folder_of(place: &str) -> Result<PathBuf, Fault> {
    Ok(paths::history_folder()?.join(source_repository::key(place)))
}

impl BuildStarter {
    /// Locks the folder of a repository's builds, and starts the launcher there.
    pub fn take(self, place: &str) -> Result<(Cache, BuildLauncher), Fault> {
        let launcher = BuildLauncher::new(self.launcher, self.interrupted);
        let folder = folder_of(place)?;
        let launchers: Vec<i32> = self.weighing.into_iter().chain([launcher.pid()]).collect();
        Ok((Cache::take(folder, &launchers)?, launcher))
    }
}
