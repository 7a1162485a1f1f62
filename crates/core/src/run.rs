//! One execution of Scruple: the request, the environment, and everything that was read.

use crate::provenance::Provenance;
use crate::subject::{Arm, Role};
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// A remark that a reader needs in order not to be misled by a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable code for programs.
    pub code: String,
    /// A sentence for people.
    pub text: String,
}

words! {
    /// How a run ended.
    pub enum State {
        /// Under way, or its process has gone; what it had read is there.
        Running = "running",
        /// Everything that was planned was read.
        Complete = "complete",
        /// It was interrupted; what had been read is there.
        Interrupted = "interrupted",
        /// A measured program failed; what had been read is there.
        Failed = "failed",
    }
}

/// The settings by which a run's readings are judged; stored with the run so that it can be judged again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The margin within which a difference does not matter, as a ratio above one: `0.02` is 2 %.
    pub margin: f64,
    /// The confidence level of intervals.
    pub level: f64,
    /// The number of looks that could stop the run: the error rate is divided among them.
    pub looks: u32,
    /// The name of the arm that others are compared with.
    pub reference: Option<String>,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { margin: 0.02, level: 0.95, looks: 1, reference: None }
    }
}

/// One execution of Scruple.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The identifier, which sorts by time.
    pub id: String,
    /// The user's name for it.
    pub label: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: i64,
    /// How it ended.
    pub state: State,
    /// The seed of every random choice.
    pub seed: u64,
    /// The words of the command line.
    pub argv: Vec<String>,
    /// The settings by which it is judged.
    pub terms: Terms,
    /// Where it was taken.
    pub provenance: Provenance,
    /// The arms with their readings.
    pub arms: Vec<Arm>,
    /// Remarks.
    pub warnings: Vec<Warning>,
}

impl Run {
    /// Adds a remark once.
    pub fn warn(&mut self, code: &str, text: impl Into<String>) {
        let warning = Warning { code: code.to_owned(), text: text.into() };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Adds the start of the version to the names of arms that differ in the version only, as those of a history do.
    pub fn name_versions(&mut self) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        self.arms.iter().for_each(|arm| *seen.entry(&arm.name).or_default() += 1);
        let shared: HashSet<String> =
            seen.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name.to_owned()).collect();
        for arm in self.arms.iter_mut().filter(|arm| shared.contains(&arm.name)) {
            if let Some(version) = &arm.version {
                arm.name = format!("{} @{}", arm.name, version.get(..10).unwrap_or(version));
            }
        }
    }

    /// The arms of one role.
    pub fn arms_of(&self, role: Role) -> impl Iterator<Item = &Arm> {
        self.arms.iter().filter(move |arm| arm.role == role)
    }

    /// The arm that the others are compared with: the named one, or else the first subject.
    pub fn reference(&self) -> Option<&Arm> {
        let named = self.terms.reference.as_ref();
        self.arms_of(Role::Subject)
            .find(|arm| Some(&arm.name) == named)
            .or_else(|| self.arms_of(Role::Subject).next())
    }
}
