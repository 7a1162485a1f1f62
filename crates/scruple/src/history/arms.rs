//! Maps each subject at each version to its arms in the run of a history.

use crate::versions::build::VersionBuilder;
use crate::versions::subjects::SubjectTemplate;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Role, Subject};
use std::collections::HashMap;

/// The indices of arms in the run, by subject and commit.
#[derive(Default)]
pub struct Arms {
    of: HashMap<(usize, String), ArmIndices>,
    /// The number of subjects.
    subjects: usize,
}

/// The indices of the arms of one subject at one version.
#[derive(Default)]
struct ArmIndices {
    launched: Vec<usize>,
    cases: Vec<usize>,
}

impl Arms {
    /// Collects the arms of a resumed run.
    pub fn of(run: &Run, subjects: &[SubjectTemplate], builder: &VersionBuilder) -> Arms {
        let mut arms = Arms { subjects: subjects.len(), ..Arms::default() };
        for (place, arm) in run.arms.iter().enumerate() {
            let Some(commit) = &arm.version else { continue };
            let subject = subjects.iter().position(|template| match &arm.subject {
                Subject::Case { program, .. } => {
                    template.bench && template.argv(&builder.settings(commit)) == *program
                }
                _ => template.name == arm.name,
            });
            if let Some(subject) = subject {
                arms.add(subject, commit, place, arm);
            }
        }
        arms
    }

    /// Records the index of an arm under its subject and version.
    pub fn add(&mut self, subject: usize, commit: &str, place: usize, arm: &Arm) {
        let places = self.of.entry((subject, commit.to_owned())).or_default();
        match arm.subject {
            Subject::Case { .. } => places.cases.push(place),
            _ => places.launched.push(place),
        }
    }

    /// Returns the arms that are launched for a subject at a version: one for each launch of a block, or the two arms
    /// of a bench program. The first one carries the cost of the build.
    pub fn launched(&self, subject: usize, commit: &str) -> &[usize] {
        self.of.get(&(subject, commit.to_owned())).map_or(&[], |places| &places.launched)
    }

    /// Returns the arms of the cases that a bench program has at a version, as far as these cases are known yet.
    pub fn cases(&self, subject: usize, commit: &str) -> &[usize] {
        self.of.get(&(subject, commit.to_owned())).map_or(&[], |places| &places.cases)
    }

    /// Returns all arms of a version, by subject.
    pub fn of_version(&self, commit: &str) -> impl Iterator<Item = usize> {
        (0..self.subjects).flat_map(move |subject| {
            self.launched(subject, commit).iter().chain(self.cases(subject, commit)).copied()
        })
    }

    /// Returns how often a subject was launched in the timing pass at a version, or `u32::MAX` if it cannot be timed.
    pub fn rounds(&self, run: &Run, subject: usize, commit: &str) -> u32 {
        let launched = self.launched(subject, commit).iter().map(|place| &run.arms[*place]);
        let bench = launched.clone().any(|arm| arm.role == Role::Tare);
        let counts = launched.filter(|arm| !bench || arm.role == Role::Tare).map(|arm| {
            match (arm.sample("time.wall"), arm.absent("time.wall")) {
                (None, Some(_)) => u32::MAX,
                (sample, _) => sample.map_or(0, |sample| sample.readings.len() as u32),
            }
        });
        counts.min().unwrap_or(0)
    }
}
