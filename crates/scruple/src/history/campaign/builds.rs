//! The builds of a campaign: the builder, and what is known about the builds so far.

use crate::fault::Fault;
use crate::store::StoredVersion;
use crate::versions::build::{BuildOutcome, VersionBuilder};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// The number of consecutive failed builds that suggests one mistake rather than many bad versions.
const FAILURES: u32 = 6;

/// The source of the time of a build.
pub(super) const BUILD: &str = "the build steps' elapsed time";
/// The source of the time of a build whose artefacts this history found.
pub(super) const EARLIER_BUILD: &str = "the build steps' elapsed time, before this history";

/// Builds versions.
pub(super) struct Builds {
    pub(super) builder: VersionBuilder,
    /// The id of the tree of each commit.
    trees: HashMap<String, String>,
    /// The indices of the versions that could not be built a second time.
    pub(super) once: BTreeSet<usize>,
    /// How many builds failed since the last success.
    failures: u32,
    keep_going: bool,
}

impl Builds {
    /// Creates the builds of commits with these trees. `keep_going` says that no number of failures is an error.
    pub(super) fn new(builder: VersionBuilder, trees: HashMap<String, String>, keep_going: bool) -> Builds {
        Builds { builder, trees, once: BTreeSet::new(), failures: 0, keep_going }
    }

    /// Returns the id of the tree of a commit, or an empty text if it is not known.
    pub(super) fn tree(&self, commit: &str) -> String {
        self.trees.get(commit).cloned().unwrap_or_default()
    }

    /// Builds a commit.
    pub(super) fn build(&mut self, commit: &str) -> Result<BuildOutcome, Fault> {
        let tree = self.tree(commit);
        self.builder.build(commit, &tree)
    }

    /// Returns the folder of a version's artefacts.
    pub(super) fn folder(&self, entry: &StoredVersion) -> PathBuf {
        self.builder.cache.built(entry.artefacts.as_deref().unwrap_or_default())
    }

    /// Returns the path of the log of a commit's builds and launches.
    pub(super) fn log(&self, commit: &str) -> PathBuf {
        self.builder.cache.log(commit)
    }

    /// Counts a build that succeeded.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Counts a build that failed. Returns an error if so many builds failed in succession that the build steps are
    /// probably wrong. A version whose tree git could not provide says nothing about them, and is not counted.
    pub(super) fn failed(&mut self, name: &str, log: &str) -> Result<(), Fault> {
        self.failures += 1;
        match self.failures >= FAILURES && !self.keep_going {
            true => Err(Fault::program(format!(
                "{FAILURES} builds failed one after the other, the last at {name}; see ‘{log}’. If the build steps are \
                 right, the same command continues with other versions, and --keep-going does not stop again; otherwise fix them, or build these again with --retry"
            ))),
            false => Ok(()),
        }
    }
}
