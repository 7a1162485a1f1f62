//! A run: one execution of Scruple, with its request, its environment, and everything that it read.

use crate::default_margins;
use crate::harmless_text::list_names;
use crate::limit::Limit;
use crate::provenance::Provenance;
use crate::subject::{Arm, Role};
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// A remark that keeps a reader of a run from being misled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// A stable code of the remark, for programs.
    pub code: String,
    /// The remark as a sentence, for people.
    pub text: String,
}

words! {
    /// How a run ended.
    pub enum RunState {
        /// The run is under way, or its process has disappeared; what was read so far is kept.
        Running = "running",
        /// Everything that was planned was read.
        Complete = "complete",
        /// The run was interrupted; what was read so far is kept.
        Interrupted = "interrupted",
        /// A weighed program failed; what was read so far is kept.
        Failed = "failed",
    }
}

/// The settings by which the readings of a run are judged. They are stored with the run so that it can be judged again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The margin within which a difference does not matter, as a ratio less 1: `0.02` is 2 %.
    pub margin: f64,
    /// The confidence level of intervals.
    pub level: f64,
    /// The number of looks that could end the run; the error rate is divided among them.
    pub looks: u32,
    /// The name of the reference; absent where it is the first subject.
    pub reference: Option<String>,
    /// The limits on metrics of the arms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            margin: default_margins::COMMANDS,
            level: 0.95,
            looks: 1,
            reference: None,
            limits: Vec::new(),
        }
    }
}

/// One execution of Scruple.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The identifier of the run; identifiers sort by time.
    pub id: String,
    /// The name that the user gave to the run.
    pub label: Option<String>,
    /// The start of the run, in milliseconds since 1970.
    pub started: i64,
    /// How the run ended.
    pub state: RunState,
    /// The seed of every random choice.
    pub seed: u64,
    /// The words of the command line.
    pub argv: Vec<String>,
    /// The settings by which the run is judged.
    pub terms: Terms,
    /// Where and how the run was taken.
    pub provenance: Provenance,
    /// The arms with their readings.
    pub arms: Vec<Arm>,
    /// The remarks on the run.
    pub warnings: Vec<Warning>,
}

impl Run {
    /// A complete run of these arms without further details.
    pub fn of(arms: Vec<Arm>) -> Run {
        Run {
            id: String::new(),
            label: None,
            started: 0,
            state: RunState::Complete,
            seed: 1,
            argv: Vec::new(),
            terms: Terms::default(),
            provenance: Provenance::default(),
            arms,
            warnings: Vec::new(),
        }
    }

    /// Adds a remark, unless the run has it already.
    pub fn warn(&mut self, code: &str, text: impl Into<String>) {
        let warning = Warning { code: code.to_owned(), text: text.into() };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Adds a remark on arms, if there are any, that the run called `has` has and the one called `lacks` has not.
    pub fn warn_of_not_compared(&mut self, names: &[&str], has: &str, lacks: &str) {
        if !names.is_empty() {
            let verb = if names.len() == 1 { "is" } else { "are" };
            let text =
                format!("not compared: {} {verb} in the run {has} and not in {lacks}", list_names(names));
            self.warn("not-in-both", text);
        }
    }

    /// Adds a remark on arms of two runs that cannot be compared, as [`unlike_readings`] has found.
    pub fn warn_of_unlike_readings(&mut self, unlike: &[String], one: &str, other: &str) {
        if !unlike.is_empty() {
            let text = format!(
                "not compared: {}: no metric was read both in the run {one} and in {other}; measure one of the two \
                 again, with the passes of the other",
                list_names(unlike)
            );
            self.warn("nothing-in-both", text);
        }
    }

    /// Adds the first characters of the version to the names of arms that differ only in the version, such as those of
    /// a history.
    pub fn name_versions(&mut self) {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        self.arms.iter().for_each(|arm| *seen.entry(&arm.name).or_default() += 1);
        let shared: HashSet<String> =
            seen.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name.to_owned()).collect();
        for arm in self.arms.iter_mut().filter(|arm| shared.contains(&arm.name)) {
            if let Some(version) = &arm.version {
                arm.name = format!("{} @{}", arm.name, crate::provenance::short_commit(version));
            }
        }
    }

    /// The arms of one role.
    pub fn arms_of(&self, role: Role) -> impl Iterator<Item = &Arm> {
        self.arms.iter().filter(move |arm| arm.role == role)
    }

    /// The reference: the arm that the terms name, or else the first subject.
    pub fn reference(&self) -> Option<&Arm> {
        let named = self.terms.reference.as_ref();
        self.arms_of(Role::Subject)
            .find(|arm| Some(&arm.name) == named)
            .or_else(|| self.arms_of(Role::Subject).next())
    }
}

/// The names of the arms that have no metric in common with their counterpart, although both have readings: for
/// example, one run has times only, and the other has counts only.
pub fn unlike_readings<'a>(pairs: impl Iterator<Item = (&'a Arm, &'a Arm)>) -> Vec<String> {
    let keys = |arm: &'a Arm| arm.figures.keys().filter(|key| arm.sample(key).is_some());
    let unlike = |a: &'a Arm, b: &'a Arm| {
        let shared = keys(a).any(|key| b.sample(key).is_some());
        !shared && [a, b].into_iter().all(|arm| keys(arm).next().is_some())
    };
    pairs.filter(|(a, b)| unlike(a, b)).map(|(arm, _)| arm.name.clone()).collect()
}
