//! The input and the result of a search for changes.

use serde::Serialize;

use crate::stats::quantile::Interval;

/// What is known about a noisy series besides its values.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The accepted probability of reporting a change in a series without any.
    pub error: f64,
    /// Standard error of each value where the readings behind it tell, else empty: relative to the value, or in its
    /// unit where some value is not positive.
    pub errors: &'a [f64],
    /// Correlation of neighbours where it is known: 0 for versions weighed in turns, where the machine's drift cannot
    /// look like a change. Else it is estimated, which loses small changes, and a slow background is searched; in fewer
    /// than about 100 values a strong drift cannot always be told from changes.
    pub drift: Option<f64>,
    /// The smallest step of the metric, in its unit; 0 where it is negligible.
    pub resolution: f64,
    /// Steps whose logarithm is smaller are not reported in series of forty or more values; 0 reports all. It applies
    /// to ratios only.
    pub least: f64,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { error: 0.01, errors: &[], drift: None, resolution: 0.0, least: 0.0 }
    }
}

/// How the levels beside a change differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// New level divided by old level.
    Ratio(f64),
    /// New level less old level, in the unit of the metric, where a ratio would mean nothing.
    Difference(f64),
}

impl Step {
    /// From one value to the next: a ratio where both are positive.
    pub(super) fn between(old: f64, new: f64) -> Step {
        if old > 0.0 && new > 0.0 { Step::Ratio(new / old) } else { Step::Difference(new - old) }
    }

    /// The ratio, where there is one.
    pub fn ratio(self) -> Option<f64> {
        match self {
            Step::Ratio(ratio) => Some(ratio),
            Step::Difference(_) => None,
        }
    }

    /// Whether the new level is above the old one.
    pub fn rises(self) -> bool {
        match self {
            Step::Ratio(ratio) => ratio > 1.0,
            Step::Difference(difference) => difference > 0.0,
        }
    }
}

/// One change of level in a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Place of the first value of the new level; the change came with this version or with one not measured
    /// between it and the version before.
    pub at: usize,
    /// The first place that is possible instead, at 95 %.
    pub first: usize,
    /// The last place that is possible instead, at 95 %.
    pub last: usize,
    /// How the new level differs from the old one.
    pub step: Step,
    /// Interval of the ratio or difference at 95 %; absent for exact metrics.
    pub interval: Option<Interval>,
    /// Probability of such a cut anywhere in a series of noise alone; 0 for exact metrics.
    pub p: f64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The changes, in order.
    pub changes: Vec<ChangePoint>,
    /// The level of each stretch between changes, in the unit of the metric; one more than there are changes.
    pub levels: Vec<f64>,
    /// Standard deviation of single values about their level: relative, or in the unit where steps are differences.
    pub noise: f64,
    /// Correlation of neighbours about their level, between 0 and 1: how much the machine drifts.
    pub drift: f64,
    /// Two levels between which the series alternates. Then no change is reported, since a version that happened to
    /// fall into the other mode would be blamed.
    pub modes: Option<[f64; 2]>,
    /// The slow movement of the series besides its steps, if any.
    pub background: Option<Background>,
}

/// A slow movement that no single version brought: a trend, a wave or a random walk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Background {
    /// For each value, the factor on its level, or, where steps are differences, what is added to it.
    pub curve: Vec<f64>,
    /// The difference between the largest and the least of these.
    pub range: Step,
}
