//! Summarizes what is known about the versions so far, in the form that the schedule needs.

use super::Campaign;
use crate::history::schedule::Seen;
use crate::history::subjects::Template;
use scruple_core::history::READINGS;
use scruple_core::subject::{Arm, Role, Subject};
use std::collections::HashMap;
use std::time::Duration;

impl Campaign {
    pub(super) fn seen(&self) -> Vec<Seen> {
        let places: HashMap<&str, usize> =
            self.history.entries.iter().enumerate().map(|(i, e)| (e.version.commit.as_str(), i)).collect();
        let seen = |(index, entry): (usize, &crate::store::Entry)| Seen {
            builds: self.builds(index),
            state: entry.version.state,
            original: entry.version.same_as.as_deref().and_then(|commit| places.get(commit).copied()),
            counted: (entry.counted > 0 && !self.lacks_instructions(entry) && !self.lacks_memory(entry))
                || self.time_only,
            rounds: self.rounds(&entry.version.commit),
        };
        self.history.entries.iter().enumerate().map(seen).collect()
    }

    /// Whether instructions are requested, and an arm of the version has neither readings of them nor a record that
    /// they cannot be counted.
    fn lacks_instructions(&self, entry: &crate::store::Entry) -> bool {
        let commit = &entry.version.commit;
        let lacks = |subject: usize, template: &Template| {
            let places = match template.bench {
                true => self.arms.cases(subject, commit),
                false => self.arms.launched(subject, commit),
            };
            let known = |place: &usize| self.history.run.arms[*place].figures.contains_key("instructions");
            !places.iter().all(known)
        };
        let mut subjects = self.subjects.iter().enumerate();
        self.instructions && subjects.any(|(subject, template)| lacks(subject, template))
    }

    /// Whether the user gave a number of launches, and the memory of a command was read less often than a verdict needs
    /// and that number allows.
    fn lacks_memory(&self, entry: &crate::store::Entry) -> bool {
        let wanted = READINGS.min(self.effort.rounds as usize);
        let few = |place: &usize| {
            let sample = self.history.run.arms[*place].sample("memory.peak");
            sample.is_some_and(|sample| sample.readings.len() < wanted)
        };
        let launched = |subject| self.arms.launched(subject, &entry.version.commit);
        self.effort.budget.is_none()
            && (0..self.subjects.len()).any(|subject| launched(subject).iter().any(few))
    }

    /// Returns the number of timing launches of the subject that was launched least often.
    fn rounds(&self, commit: &str) -> u32 {
        let of = |subject| self.arms.rounds(&self.history.run, subject, commit);
        (0..self.subjects.len()).map(of).min().unwrap_or(0)
    }

    /// Returns the measuring time used so far, over the whole life of the history. In an adaptive history, builds count
    /// as well, since they dominate its cost.
    pub(super) fn spent(&self) -> Duration {
        let total = |key: &str| -> f64 {
            // The time of a case's iterations is already part of the time of its process.
            let took =
                self.history.run.arms.iter().filter(|arm| !matches!(arm.subject, Subject::Case { .. }));
            let samples = took.filter_map(|arm| arm.sample(key));
            samples.flat_map(|sample| &sample.readings).sum()
        };
        let builds = if self.effort.adaptive { total("build.time") } else { 0.0 };
        Duration::from_nanos((total("time.wall") + builds) as u64)
    }

    /// Returns the arms of a version, or those of the weighed version that has the same artefacts.
    pub(super) fn arms_of(&self, index: usize) -> Vec<&Arm> {
        let version = &self.history.entries[index].version;
        let commit = version.same_as.as_ref().unwrap_or(&version.commit);
        let places = |subject| {
            let (launched, cases) = (self.arms.launched(subject, commit), self.arms.cases(subject, commit));
            launched.iter().chain(cases)
        };
        let arms = (0..self.subjects.len()).flat_map(places).map(|place| &self.history.run.arms[*place]);
        arms.filter(|arm| arm.role == Role::Subject).collect()
    }
}
