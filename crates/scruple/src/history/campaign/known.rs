//! Summarises what is known about the versions so far, in the form that the schedule needs.

use super::builds::Builds;
use super::journal::Journal;
use super::scope::Scope;
use crate::history::schedule::VersionProgress;
use crate::versions::subjects::SubjectTemplate;
use scruple_core::history::{READINGS, VersionState};
use std::collections::HashMap;

/// What is known so far, and where it stands.
pub(super) struct CampaignView<'a> {
    pub(super) journal: &'a Journal,
    pub(super) builds: &'a Builds,
    pub(super) scope: &'a Scope,
    /// The number of instruments that are attached to a command.
    pub(super) attached: u32,
    /// Whether instructions are counted.
    pub(super) instructions: bool,
}

impl CampaignView<'_> {
    /// Returns what the schedule needs of each version.
    pub(super) fn seen(&self) -> Vec<VersionProgress> {
        let places: HashMap<&str, usize> = self
            .journal
            .history
            .entries
            .iter()
            .enumerate()
            .map(|(i, e)| (e.version.commit.as_str(), i))
            .collect();
        let seen = |(index, entry): (usize, &crate::store::StoredVersion)| VersionProgress {
            builds: self.times_built(index),
            state: entry.version.state,
            original: entry.version.same_as.as_deref().and_then(|commit| places.get(commit).copied()),
            counted: !self.scope.has_other_passes() || (entry.counted > 0 && !self.lacks_counts(entry)),
            // A version that was not built has no arms, and histories may have thousands of them.
            rounds: match entry.version.state {
                VersionState::Queued | VersionState::Building | VersionState::Skipped => 0,
                _ => self.rounds(&entry.version.commit),
            },
        };
        self.journal.history.entries.iter().enumerate().map(seen).collect()
    }

    /// Returns how often a version was built, or `u32::MAX` if it has no build steps or cannot be built again.
    fn times_built(&self, index: usize) -> u32 {
        let commit = &self.journal.history.entries[index].version.commit;
        if self.builds.once.contains(&index) || self.builds.builder.settings(commit).steps.is_empty() {
            return u32::MAX;
        }
        self.journal.build_times(index).map_or(0, |sample| sample.readings.len() as u32)
    }

    /// Whether a counted version is to be counted again, because less was read than this command line asks for. A
    /// version that this process has counted is not: nothing more can be read of it.
    fn lacks_counts(&self, entry: &crate::store::StoredVersion) -> bool {
        !self.journal.counted.contains(&entry.version.commit)
            && (entry.instruments < self.attached
                || self.lacks_instructions(entry)
                || self.lacks_memory(entry))
    }

    /// Whether instructions are requested, and an arm of the version has neither readings of them nor a record that
    /// they cannot be counted.
    fn lacks_instructions(&self, entry: &crate::store::StoredVersion) -> bool {
        let commit = &entry.version.commit;
        let lacks = |subject: usize, template: &SubjectTemplate| {
            let places = match template.bench {
                true => self.journal.arms.cases(subject, commit),
                false => self.journal.arms.launched(subject, commit),
            };
            let known =
                |place: &usize| self.journal.history.run.arms[*place].figures.contains_key("instructions");
            !places.iter().all(known)
        };
        let mut subjects = self.scope.subjects.iter().enumerate();
        self.instructions
            && subjects.any(|(subject, template)| {
                let counted = template.bench || (self.attached > 0 && !template.yardstick);
                counted && lacks(subject, template)
            })
    }

    /// Whether the user gave a number of launches, and the memory of a command was read less often than a verdict needs
    /// and that number allows.
    fn lacks_memory(&self, entry: &crate::store::StoredVersion) -> bool {
        let allowed = self.scope.given.map_or(self.scope.effort.rounds, |given| given.memory);
        let wanted = READINGS.min(allowed as usize);
        let few = |place: &usize| {
            let sample = self.journal.history.run.arms[*place].sample("memory.peak");
            sample.is_some_and(|sample| sample.readings.len() < wanted)
        };
        let launched = |subject| self.journal.arms.launched(subject, &entry.version.commit);
        self.scope.effort.budget.is_none()
            && (0..self.scope.subjects.len()).any(|subject| launched(subject).iter().any(few))
    }

    /// Returns the number of timing launches of the subject that was launched least often.
    fn rounds(&self, commit: &str) -> u32 {
        let of = |subject| self.journal.arms.rounds(&self.journal.history.run, subject, commit);
        (0..self.scope.subjects.len()).map(of).min().unwrap_or(0)
    }
}
