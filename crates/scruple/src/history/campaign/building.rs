//! Builds the versions of a history, and records how that ended.

use super::builds::{BUILD, Builds, EARLIER_BUILD};
use super::journal::Journal;
use crate::farm::unit_data::UnitOutcome;
use crate::fault::Fault;
use crate::progress::Progress;
use crate::store::StoredVersion;
use crate::versions::artefacts::Artefacts;
use crate::versions::build::{BuildFailure, BuildOutcome};
use crate::versions::subjects::SubjectTemplate;
use scruple_core::history::VersionState;
use scruple_core::metric::{Pass, metric};
use scruple_core::sample::Reading;
use scruple_core::unit::{Unit, quantity};
use scruple_core::visit_order::VisitOrder;
use std::sync::atomic::{AtomicBool, Ordering};

/// The builds of a history, and where they are recorded.
pub(super) struct Building<'a> {
    pub(super) journal: &'a mut Journal,
    pub(super) builds: &'a mut Builds,
    pub(super) subjects: &'a [SubjectTemplate],
    pub(super) progress: &'a Progress,
}

impl Building<'_> {
    /// Builds a version, and records how that ended.
    pub(super) fn build(&mut self, index: usize) -> Result<(), Fault> {
        let version = &mut self.journal.history.entries[index].version;
        version.state = VersionState::Building;
        let commit = version.commit.clone();
        let tried = |entry: &&StoredVersion| entry.artefacts.is_some() || entry.version.state.failed();
        let built = self.journal.history.entries.iter().filter(tried).count();
        let title = &self.journal.history.entries[index].version.title;
        self.progress.steps("building", built, self.journal.history.entries.len(), title);
        self.journal.put(index, &[])?;
        let outcome = match self.builds.build(&commit) {
            Ok(outcome) => outcome,
            Err(fault) => {
                self.journal.history.entries[index].version.state = VersionState::Queued;
                self.journal.put(index, &[])?;
                return Err(fault);
            }
        };
        let title = &self.journal.history.entries[index].version;
        let name = format!("{} {}", title.short(), title.title);
        let number = format!("{} of {}", built + 1, self.journal.history.entries.len());
        match outcome {
            BuildOutcome::Failed(BuildFailure { state, why, without_tree }) => {
                self.progress.done(&format!("version {number} failed: {name}: {why}"));
                let log = self.builds.log(&commit).display().to_string();
                let version = &mut self.journal.history.entries[index].version;
                (version.state, version.why, version.log) = (state, Some(why), Some(log.clone()));
                self.journal.put(index, &[])?;
                if without_tree { Ok(()) } else { self.builds.failed(&name, &log) }
            }
            BuildOutcome::Ready(artefacts) => {
                self.builds.succeeded();
                let took = quantity(artefacts.time as f64, &Unit::Nanoseconds);
                let how = match (self.builds.builder.settings(&commit).steps.is_empty(), artefacts.reused) {
                    (true, _) => "copied".to_owned(),
                    (false, true) => format!("was built before, in {took}"),
                    (false, false) => format!("built in {took}"),
                };
                self.progress.done(&format!("version {number} {how}: {name}"));
                self.built(index, &commit, &artefacts)
            }
        }
    }

    /// Records a successful build: the state of the version, its arms, and the cost of the build.
    fn built(&mut self, index: usize, commit: &str, artefacts: &Artefacts) -> Result<(), Fault> {
        let settings = self.builds.builder.settings(commit);
        let same = self.journal.history.entries.iter().find(|other| {
            let theirs = || self.builds.builder.settings(&other.version.commit);
            other.version.state == VersionState::Built
                && other.artefacts.as_ref() == Some(&artefacts.digest)
                && (theirs().params, theirs().env) == (settings.params.clone(), settings.env.clone())
        });
        let same_as = same.map(|other| other.version.commit.clone());
        let entry = &mut self.journal.history.entries[index];
        entry.version.state = if same_as.is_some() { VersionState::SameBinary } else { VersionState::Built };
        (entry.version.same_as, entry.artefacts) = (same_as, Some(artefacts.digest.clone()));
        self.add_arms(index)?;
        let Some(arm) = self.journal.arms.launched(0, commit).first().copied() else { return Ok(()) };
        // Without build steps there is no build, and therefore no build time and no size.
        let nothing = self.builds.builder.settings(commit).steps.is_empty();
        if nothing || self.journal.history.run.arms[arm].figures.contains_key("build.bytes") {
            return Ok(());
        }
        let reading = |key: &str, value: f64, source: &str| Some(Reading::of(metric(key)?, value, source));
        let readings = [
            reading(
                "build.time",
                artefacts.time as f64,
                if artefacts.reused { EARLIER_BUILD } else { BUILD },
            ),
            reading("build.bytes", artefacts.bytes as f64, "sizes of files"),
        ];
        self.journal.keep(arm, Pass::Build, 0, readings.into_iter().flatten().collect())
    }

    /// Creates the arms of a version, unless they exist, and stores the version.
    pub(super) fn add_arms(&mut self, index: usize) -> Result<(), Fault> {
        let commit = &self.journal.history.entries[index].version.commit.clone();
        let settings = self.builds.builder.settings(commit);
        let mut arms = Vec::new();
        for (subject, template) in self.subjects.iter().enumerate() {
            if self.journal.arms.launched(subject, commit).is_empty() {
                arms.extend(template.arms(commit, &settings).into_iter().map(|arm| (subject, arm)));
            }
        }
        self.journal.add_arms(index, arms)
    }

    /// Makes sure that the artefacts of a version exist, and builds them again if they were removed. Returns false if
    /// that is no longer possible, and records the reason as the state of the version.
    pub(super) fn is_at_hand(&mut self, index: usize) -> Result<bool, Fault> {
        let entry = &self.journal.history.entries[index];
        let digest = entry.artefacts.clone().unwrap_or_default();
        if self.builds.builder.cache.has(&digest)? {
            return Ok(true);
        }
        let commit = entry.version.commit.clone();
        self.progress.steps(
            "building",
            index,
            self.journal.history.entries.len(),
            "a build that was removed",
        );
        match self.builds.build(&commit)? {
            BuildOutcome::Ready(artefacts) => {
                // A rebuilt version counts as the same commit even if its artefacts are not byte for byte the same.
                self.journal.history.entries[index].artefacts = Some(artefacts.digest);
                self.journal.put(index, &[]).map(|()| true)
            }
            BuildOutcome::Failed(BuildFailure { state, why, .. }) => {
                let log = self.builds.log(&commit);
                self.journal.reject(index, state, why, (&log, "")).map(|()| false)
            }
        }
    }

    /// Records the result of a build that another process did.
    pub(super) fn note_build(&mut self, index: usize, found: UnitOutcome) -> Result<(), Fault> {
        let commit = self.journal.history.entries[index].version.commit.clone();
        match found {
            UnitOutcome::Built(artefacts) => self.built(index, &commit, &artefacts),
            UnitOutcome::NotBuilt { state, why, log } => {
                let path = self.builds.log(&commit);
                std::fs::write(&path, log).map_err(|error| Fault::unwritable(&path, error))?;
                let version = &mut self.journal.history.entries[index].version;
                (version.state, version.why) = (state, Some(why));
                version.log = Some(path.display().to_string());
                self.journal.put(index, &[])
            }
            UnitOutcome::Measured { .. } | UnitOutcome::Weighed { .. } => {
                Err(Fault::internal("a unit that was to build a version has weighed some".to_owned()))
            }
        }
    }

    /// Builds each of these versions once more, in an order drawn from the seed. The results are discarded: the
    /// artefacts that are weighed remain those of the first build.
    pub(super) fn rebuild(&mut self, set: &[usize], interrupted: &AtomicBool) -> Result<(), Fault> {
        let blocks = (0..self.journal.history.entries.len())
            .filter_map(|index| self.journal.build_times(index)?.blocks.iter().max().copied());
        let block = blocks.max().map_or(0, |last| last + 1);
        let order = VisitOrder::new(set.len(), self.journal.history.run.seed).order(block);
        for (done, place) in order.into_iter().enumerate() {
            if interrupted.load(Ordering::Relaxed) {
                return Err(Fault::interrupted());
            }
            let index = set[place];
            let version = &self.journal.history.entries[index].version;
            let (commit, short) = (version.commit.clone(), version.short().to_owned());
            self.progress.steps(&format!("building · round {}", block + 1), done, set.len(), &short);
            let arm = self.journal.build_arm(index);
            match (self.builds.builder.build_again(&commit)?, arm) {
                (Ok(time), Some(arm)) => {
                    let elapsed =
                        metric("build.time").map(|metric| Reading::of(metric, time.as_nanos() as f64, BUILD));
                    self.journal.keep(arm, Pass::Build, block, elapsed.into_iter().collect())?;
                }
                (failed, _) => {
                    self.builds.once.insert(index);
                    let why = failed.err().unwrap_or_default();
                    let log = self.builds.log(&commit).display().to_string();
                    self.journal.history.run.warn(
                        "rebuild-failed",
                        format!("{short} could be built once and not again: {why}; see ‘{log}’"),
                    );
                }
            }
        }
        self.progress.done(&format!("round {}: built {} versions again", block + 1, set.len()));
        Ok(())
    }
}
