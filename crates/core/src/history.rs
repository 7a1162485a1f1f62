//! A range of versions of one repository: the state of each, its readings, and the conclusions.
//!
//! A [`History`] is what was measured; [`find_changes`] makes a [`Judgement`] of it; reports are written from both.

mod comparable;
mod find_changes;
mod graph;
mod over_nodes;

pub use crate::stats::nodes::OverNodes;
pub use comparable::{SLOPE, comparable};
pub use find_changes::find_changes;
pub use graph::Graph;
pub use over_nodes::over_nodes;

use crate::metric::Better;
use crate::run::Run;
use crate::stats::quantile::Interval;
use crate::unit::Unit;
use crate::words::words;
use serde::{Deserialize, Serialize};

/// Versions with fewer readings beside others have no interval at 95 %: nothing is concluded about their times.
pub const READINGS: usize = 6;

words! {
    /// The state of a version.
    pub enum State {
        /// Nothing has been done yet.
        Queued = "queued",
        /// Its build is under way, or was when the process ended.
        Building = "building",
        /// A build step failed; `why` and `log` say how.
        BuildFailed = "build-failed",
        /// It was built, but the check that comes before weighing failed, or its output was wrong.
        CheckFailed = "check-failed",
        /// It was built, but the subject cannot be launched, or ends with an error.
        RunFailed = "run-failed",
        /// Its build, its check or one of its commands took longer than allowed and was ended.
        TimedOut = "timed-out",
        /// It was built and may be weighed; its readings show how often it was.
        Built = "built",
        /// Its artefacts are byte for byte those of another version, whose twin it is.
        SameBinary = "same-binary",
        /// The range, the configuration or the adaptive search has left it out so far.
        Skipped = "skipped",
    }
}

impl State {
    /// Whether the version could not be built or weighed.
    pub fn failed(self) -> bool {
        matches!(self, State::BuildFailed | State::CheckFailed | State::RunFailed | State::TimedOut)
    }
}

/// One commit of the range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The full id of the commit.
    pub commit: String,
    /// The ids of its parents, the first parent first.
    pub parents: Vec<String>,
    /// The ids of the versions of the range that it directly follows: its parents, or where the range does not contain
    /// them, their nearest ancestors that it does contain. Costs are compared with these.
    pub follows: Vec<String>,
    /// The first line of its message.
    pub title: String,
    /// Who wrote it.
    pub author: String,
    /// When it was committed, in milliseconds since 1970.
    pub time: i64,
    /// Tags that name it.
    pub tags: Vec<String>,
    /// Its state.
    pub state: State,
    /// Why it could not be built or weighed, in a line.
    pub why: Option<String>,
    /// The file with the whole output of what failed.
    pub log: Option<String>,
    /// For [`State::SameBinary`]: the commit of the range that has the same artefacts and was built first.
    pub same_as: Option<String>,
    /// Changes that the commit declares as intended.
    pub accepted: Vec<Acceptance>,
    /// How many commits the selection left out that are ancestors of this version and of no earlier one of the range.
    /// Any of them may have caused what first appears here.
    pub left_out: usize,
}

impl Version {
    /// The id as it is shown: the first ten characters.
    pub fn short(&self) -> &str {
        self.commit.get(..10).unwrap_or(&self.commit)
    }
}

/// An intended change: by a trailer in the commit's message, or by a line in a tracked file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    /// The subject it is about; none for all.
    pub subject: Option<String>,
    /// The metric it is about; none for all.
    pub metric: Option<String>,
    /// The reason that was given.
    pub reason: String,
}

/// The measurements of a range.
///
/// The run has one arm for each subject at each weighed version: `arm.version` holds the full id of the commit, and
/// `arm.name` the name of the subject alone. Readings of two arms with the same block were taken side by side. The cost
/// of building is among the figures (`build.time`, `build.bytes`) of the arm of the first subject only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The name of the repository: the last part of its path or URL.
    pub repository: String,
    /// The URL of the remote, where there is one.
    pub remote: Option<String>,
    /// The range as the user gave it.
    pub range: String,
    /// The versions, oldest first, in topological order.
    pub versions: Vec<Version>,
    /// The readings.
    pub run: Run,
}

words! {
    /// The form of a change.
    pub enum Form {
        /// The level stays changed.
        Step = "step",
        /// The level changed and returned within a few versions; `until` says where.
        Spike = "spike",
        /// The level returned to what it was before an earlier change, which `undoes` names.
        Revert = "revert",
    }
}

/// One version's value in a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Index into the history's versions.
    pub version: usize,
    /// The median of the readings, in the metric's unit; corrected for fluctuations of the machine where versions were
    /// weighed in turns.
    pub value: f64,
    /// The least reading.
    pub least: f64,
    /// The interval of the value, where there are enough readings.
    pub interval: Option<Interval>,
    /// The readings, in order.
    pub readings: Vec<f64>,
    /// Whether the readings are those of another version with the same artefacts.
    pub copied: bool,
}

/// A change of level in a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The form.
    pub form: Form,
    /// Index into the versions: the most probable cause of the change.
    pub at: usize,
    /// Indices of all versions that may have caused it, at 95 %, in order, including `at`. Unweighed versions between
    /// two weighed ones are included; those with the same artefacts as a version before them are not.
    pub set: Vec<usize>,
    /// Index of the last version that has the old level for certain.
    pub before: usize,
    /// For a spike: the last version at the spike's level.
    pub until: Option<usize>,
    /// For a revert: `at` of the change that it takes back.
    pub undoes: Option<usize>,
    /// The level before, in the unit of the metric.
    pub from: f64,
    /// The level after.
    pub to: f64,
    /// New level by old level; infinite, with the sign of the difference, where the old one is zero or values cross
    /// zero.
    pub ratio: f64,
    /// Interval of the ratio at 95 %, or where that is infinite, of the difference; none for exact metrics.
    pub interval: Option<Interval>,
    /// The probability of such a change in noise alone, corrected for the search and the number of series; 0 for exact
    /// ones.
    pub p: f64,
    /// Whether this is an improvement; none where the metric has no better direction.
    pub better: Option<bool>,
    /// The reason why it is intended, where a version of the set says so.
    pub accepted: Option<String>,
}

/// The effect between two versions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Index of the earlier version.
    pub from: usize,
    /// Index of the later version.
    pub to: usize,
    /// Value at the later divided by value at the earlier; infinite, with the sign of the difference, where values
    /// cross zero.
    pub ratio: f64,
    /// Its interval at 95 %, or where the ratio is infinite, that of the difference, from readings taken side by side;
    /// none for exact metrics and where there are too few.
    pub interval: Option<Interval>,
    /// Whether there is certainly a change: for exact metrics any difference, else an interval that excludes 1.
    pub surely: bool,
}

/// One metric of one subject over the versions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The subject's name.
    pub subject: String,
    /// The metric's key.
    pub metric: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// Whether every reading of every version repeated, so that any change is real.
    pub exact: bool,
    /// Whether counts repeated when they were taken in a row, but not at later visits.
    pub shifting: bool,
    /// The values of the versions that were weighed, in order.
    pub points: Vec<Point>,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// What the nodes of a farm say of each change that all readings together show.
    #[serde(skip)]
    pub by_nodes: Vec<ByNodes>,
    /// The pairs of consecutive weighed versions between which the level changes.
    pub borders: Vec<[usize; 2]>,
    /// The level of each stretch of the list: first version, last version, level.
    pub levels: Vec<(usize, usize, f64)>,
    /// Standard deviation of values about their level, relative; 0 for exact metrics, none where it is not known.
    pub noise: Option<f64>,
    /// The standard deviation between versions with the same artefacts, relative: the spread without any change.
    pub twins: Option<f64>,
    /// Two levels between which the series alternates, if it does: then no change is reported.
    pub modes: Option<[f64; 2]>,
    /// The smallest step that would have been found, relative; none for exact metrics and too short series.
    pub detectable: Option<f64>,
    /// From the first weighed version to the last, along first parents.
    pub whole: Option<Effect>,
    /// Why nothing can be concluded, where that is so.
    pub cannot: Option<String>,
}

/// What the nodes of a farm say of a change that all readings together show.
#[derive(Clone, Debug, PartialEq)]
pub struct ByNodes {
    /// Index of the version that it is put down to.
    pub at: usize,
    /// Whether it is a change by the interval over nodes as well; else it is not among the changes.
    pub stands: bool,
    /// What they say.
    pub found: OverNodes,
}

/// Whether a change of the build's cost pays off.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreakEven {
    /// The subject whose runs are set against the build.
    pub subject: String,
    /// Index of the earlier version.
    pub from: usize,
    /// Index of the later version.
    pub to: usize,
    /// How much more a build costs than before, in nanoseconds; negative where it costs less.
    pub build: f64,
    /// How much more a run costs than before, in nanoseconds; negative where it costs less.
    pub run: f64,
    /// Whether the cost of building certainly differs: a single build of each version does not show it.
    pub build_surely: bool,
    /// Whether the cost of running certainly differs.
    pub run_surely: bool,
    /// The number of runs for each build after which the later version costs less in all; none where one version is
    /// better in both.
    pub runs: Option<f64>,
}

/// The costs of building and running one of two versions, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// What the build takes.
    pub build: f64,
    /// What a run takes.
    pub run: f64,
}

impl BreakEven {
    /// Compares the change of the build's cost with that of the run's; each either certainly differs or does not.
    pub fn of(
        subject: &str,
        (from, to): (usize, usize),
        (before, after): (Costs, Costs),
        [build_surely, run_surely]: [bool; 2],
    ) -> BreakEven {
        let (build, run) = (after.build - before.build, after.run - before.run);
        let opposed = build * run < 0.0 && build_surely && run_surely;
        let runs = opposed.then(|| (build / run).abs());
        BreakEven { subject: subject.to_owned(), from, to, build, run, build_surely, run_surely, runs }
    }

    /// Whether there is anything to report.
    pub fn is_told(&self) -> bool {
        self.build_surely || self.run_surely
    }
}

/// The conclusions from a history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The series, subject by subject, each in the order of the metric table.
    pub series: Vec<Series>,
    /// For each subject whose build or run certainly costs something else, from the first weighed version to the last.
    pub break_even: Vec<BreakEven>,
}
