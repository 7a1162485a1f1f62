//! A history: the versions of a range of one repository, their readings, and the conclusions.
//!
//! A [`History`] is what was measured; [`find_changes`] makes a [`Judgement`] of it. Reports are written from both.

mod comparable;
mod effect_over_nodes;
mod find_changes;
mod graph;

pub use comparable::{SLOPE, comparable};
pub use effect_over_nodes::over_nodes;
pub use find_changes::find_changes;
pub use graph::Graph;
pub use scruple_stats::nodes::OverNodes;

use crate::metric::Better;
use crate::provenance::short_commit;
use crate::run::Run;
use crate::unit::Unit;
use crate::words::words;
use scruple_stats::Interval;
use scruple_stats::changepoint::StepSize;
use serde::{Deserialize, Serialize};

/// A version needs at least this many readings taken in blocks with other versions. With fewer there is no interval at
/// 95 %, so nothing is concluded about its times.
pub const READINGS: usize = 6;

words! {
    /// The state of a version of a history.
    pub enum VersionState {
        /// Nothing has been done with the version yet.
        Queued = "queued",
        /// The build of the version is under way, or was when the process ended.
        Building = "building",
        /// A step of the build failed; `why` and `log` of the version say how.
        BuildFailed = "build-failed",
        /// The version was built, but the check that comes before weighing failed, or its output was wrong.
        CheckFailed = "check-failed",
        /// The version was built, but the subject cannot be launched, or ends with an error.
        RunFailed = "run-failed",
        /// The build, the check or a command of the version took longer than allowed and was ended.
        TimedOut = "timed-out",
        /// The version was built and may be weighed; its readings show how often it was.
        Built = "built",
        /// The artefacts of the version are byte for byte those of another version.
        SameBinary = "same-binary",
        /// The range, the configuration or the adaptive search has left the version out so far.
        Skipped = "skipped",
    }
}

impl VersionState {
    /// Whether the version could not be built, checked or launched.
    pub fn failed(self) -> bool {
        matches!(
            self,
            VersionState::BuildFailed
                | VersionState::CheckFailed
                | VersionState::RunFailed
                | VersionState::TimedOut
        )
    }
}

/// A commit of the range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The full id of the commit.
    pub commit: String,
    /// The ids of the parents of the commit, the first parent first.
    pub parents: Vec<String>,
    /// The ids of the versions of the range that this one directly follows: its parents or, where the range does not
    /// contain a parent, the nearest ancestors that it contains. The costs of this version are compared with theirs. A
    /// merge follows nothing if the range contains only its branches and not the line into which they were merged.
    pub follows: Vec<String>,
    /// The first line of the message of the commit.
    pub title: String,
    /// The author of the commit.
    pub author: String,
    /// The time of the commit, in milliseconds since 1970.
    pub time: i64,
    /// The tags that name the commit.
    pub tags: Vec<String>,
    /// The state of the version.
    pub state: VersionState,
    /// Why the version could not be built or weighed, in one line.
    pub why: Option<String>,
    /// The file with the whole output of the step that failed.
    pub log: Option<String>,
    /// For [`VersionState::SameBinary`]: the commit of the range that has the same artefacts and was built first.
    pub same_as: Option<String>,
    /// The changes that the commit declares as intended.
    pub accepted: Vec<Acceptance>,
    /// The number of commits that the selection left out and that are ancestors of this version but of no earlier
    /// version of the range. Each of them may have caused a change that first appears here.
    pub left_out: usize,
}

impl Version {
    /// A built version. Only its commit and the commits that it follows are known; these are also taken as its parents.
    pub fn built(commit: String, follows: Vec<String>) -> Version {
        Version {
            commit,
            parents: follows.clone(),
            follows,
            title: String::new(),
            author: String::new(),
            time: 0,
            tags: Vec::new(),
            state: VersionState::Built,
            why: None,
            log: None,
            same_as: None,
            accepted: Vec::new(),
            left_out: 0,
        }
    }

    /// The id of the commit as it is shown: its first ten characters.
    pub fn short(&self) -> &str {
        short_commit(&self.commit)
    }
}

/// An intended change, declared by a trailer in the message of a commit or by a line in a tracked file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Acceptance {
    /// The subject that may change; absent for all subjects.
    pub subject: Option<String>,
    /// The metric that may change; absent for all metrics.
    pub metric: Option<String>,
    /// The stated reason of the change.
    pub reason: String,
}

/// The measurements of a range of versions.
///
/// The run has one arm for each subject at each weighed version: `arm.version` holds the full id of the commit, and
/// `arm.name` the name of the subject alone. Readings of two arms with the same block were taken side by side. The cost
/// of building a version (`build.time`, `build.bytes`) is among the figures of the arm of the first subject only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The name of the repository: the last part of its path or URL.
    pub repository: String,
    /// The URL of the remote, if the repository has one.
    pub remote: Option<String>,
    /// The range as the user gave it.
    pub range: String,
    /// The versions in topological order, oldest first.
    pub versions: Vec<Version>,
    /// The readings of all versions.
    pub run: Run,
}

words! {
    /// The form of a change.
    pub enum ChangeForm {
        /// The level stays changed.
        Step = "step",
        /// The level changed and returned within a few versions; `until` of the change says where.
        Spike = "spike",
        /// The level returned to what it was before an earlier change, which `undoes` of the change names.
        Revert = "revert",
    }
}

/// The value of one version in a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Index of the version in the history.
    pub version: usize,
    /// The median of the readings, in the unit of the metric. Where versions were weighed in turns, it is corrected for
    /// fluctuations of the machine.
    pub value: f64,
    /// The smallest reading.
    pub least: f64,
    /// The interval of the value; absent where there are too few readings.
    pub interval: Option<Interval>,
    /// The readings, in the order in which they were taken.
    pub readings: Vec<f64>,
    /// Whether the readings are those of another version with the same artefacts.
    pub copied: bool,
}

/// A change of level in a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The form of the change.
    pub form: ChangeForm,
    /// Index of the version that is the most probable cause of the change.
    pub at: usize,
    /// Indices of all versions that may have caused the change, at 95 %, in order, including `at`. Unweighed versions
    /// between two weighed ones are included; versions with the same artefacts as a version before them are not.
    pub set: Vec<usize>,
    /// Index of the last version that certainly has the old level.
    pub before: usize,
    /// For a spike: index of the last version at the level of the spike.
    pub until: Option<usize>,
    /// For a revert: `at` of the change that it reverts.
    pub undoes: Option<usize>,
    /// The level before the change, in the unit of the metric.
    pub from: f64,
    /// The level after the change, in the unit of the metric.
    pub to: f64,
    /// The new level divided by the old level. It is infinite, with the sign of the difference, where the old level is
    /// zero or values cross zero.
    pub ratio: f64,
    /// The 95 % interval of the ratio, or of the difference where the ratio is infinite; absent for exact metrics.
    pub interval: Option<Interval>,
    /// The probability of such a change in noise alone, corrected for the search and for the number of series; 0 for
    /// exact metrics.
    pub p: f64,
    /// Whether the change is an improvement; absent where the level is the same, where a merge lies between its
    /// parents, and where these have diverged before the range.
    pub better: Option<bool>,
    /// The reason for which a version of `set` declares the change as intended; absent where none does.
    pub accepted: Option<String>,
}

/// The effect of changing from one version to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionEffect {
    /// Index of the earlier version.
    pub from: usize,
    /// Index of the later version.
    pub to: usize,
    /// The value at the later version divided by the value at the earlier one. It is infinite, with the sign of the
    /// difference, where values cross zero.
    pub ratio: f64,
    /// The 95 % interval of the ratio, or of the difference where the ratio is infinite; absent for exact metrics and
    /// where there are too few readings.
    pub interval: Option<Interval>,
    /// Whether the cost certainly changed: exact metrics by any difference, noisy ones if the interval excludes
    /// equality.
    pub surely: bool,
    /// The levels of both versions, where these are compared because there are no readings side by side.
    pub levels: Option<[f64; 2]>,
    /// Whether both versions have the same artefacts, so that their readings differ by chance only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub same_artefacts: bool,
}

/// One metric of one subject over the versions of a history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The name of the subject.
    pub subject: String,
    /// The key of the metric.
    pub metric: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The direction of an improvement.
    pub better: Better,
    /// Whether every reading of every version repeated, so that any change is real.
    pub exact: bool,
    /// Whether counts repeated within each visit of a version, but not at later visits.
    pub shifting: bool,
    /// The values of the weighed versions, in order.
    pub points: Vec<Point>,
    /// The changes of level, in order.
    pub changes: Vec<Change>,
    /// What the nodes of a farm show of each change that all readings together show.
    #[serde(skip)]
    pub by_nodes: Vec<ByNodes>,
    /// The pairs of consecutive weighed versions between which the level changes.
    pub borders: Vec<[usize; 2]>,
    /// The level of each stretch of versions in the list: first version, last version, level. With a slow drift, each
    /// version has a level of its own.
    pub levels: Vec<(usize, usize, f64)>,
    /// Relative standard deviation of values about their level: 0 for exact metrics, absent where it is not known.
    pub noise: Option<f64>,
    /// Relative standard deviation between versions with the same artefacts, which shows the spread without any change.
    pub same_binary_noise: Option<f64>,
    /// The two levels between which the series alternates, if it does. Then no change is reported.
    pub modes: Option<[f64; 2]>,
    /// How far a slow drift that no single version caused moves the series, if there is one.
    pub slow_drift: Option<StepSize>,
    /// The smallest relative step that would have been found; absent for exact metrics and for series that are too
    /// short.
    pub detectable: Option<f64>,
    /// The effect between the first and the last weighed version along the line of first parents.
    pub whole: Option<VersionEffect>,
    /// Why nothing can be concluded from the series; absent where something can.
    pub cannot: Option<String>,
}

/// What the nodes of a farm show of a change that all readings together show.
#[derive(Clone, Debug, PartialEq)]
pub struct ByNodes {
    /// Index of the version that the change is attributed to.
    pub at: usize,
    /// Whether the interval over nodes confirms the change; else the change is not among those of the series.
    pub stands: bool,
    /// The effect over the nodes.
    pub found: OverNodes,
}

/// Whether a change of the cost of building pays off in the cost of running.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreakEven {
    /// The subject whose cost of running is compared with the cost of the build.
    pub subject: String,
    /// Index of the earlier version.
    pub from: usize,
    /// Index of the later version.
    pub to: usize,
    /// The increase of the cost of a build from `from` to `to`, in nanoseconds; negative where the build became
    /// cheaper.
    pub build: f64,
    /// The increase of the cost of a run from `from` to `to`, in nanoseconds; negative where the run became cheaper.
    pub run: f64,
    /// Whether the cost of building certainly differs, which a single build of each version does not show.
    pub build_surely: bool,
    /// Whether the cost of running certainly differs.
    pub run_surely: bool,
    /// The number of runs per build at which both versions cost the same in total; absent where one version is better
    /// in both, or a difference is not certain.
    pub runs: Option<f64>,
}

/// The costs of building and running one version, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VersionCosts {
    /// The cost of a build, in nanoseconds.
    pub build: f64,
    /// The cost of a run, in nanoseconds.
    pub run: f64,
}

impl BreakEven {
    /// Compares the change of the cost of building with that of running. The two flags say which of them certainly
    /// differs.
    pub fn of(
        subject: &str,
        (from, to): (usize, usize),
        (before, after): (VersionCosts, VersionCosts),
        [build_surely, run_surely]: [bool; 2],
    ) -> BreakEven {
        let (build, run) = (after.build - before.build, after.run - before.run);
        let opposed = build * run < 0.0 && build_surely && run_surely;
        let runs = opposed.then(|| (build / run).abs());
        BreakEven { subject: subject.to_owned(), from, to, build, run, build_surely, run_surely, runs }
    }

    /// Whether building or running certainly differs, so that there is something to report.
    pub fn is_certain(&self) -> bool {
        self.build_surely || self.run_surely
    }
}

/// The conclusions from a history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// All series, subject by subject, each in the order of the metric table.
    pub series: Vec<Series>,
    /// The break-even from the first weighed version to the last, of each subject whose cost of building or running
    /// certainly differs.
    pub break_even: Vec<BreakEven>,
}
