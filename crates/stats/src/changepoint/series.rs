//! The input and the result of a search for changes.

use serde::Serialize;

use crate::Interval;

/// In series of fewer values, drift of the machine cannot always be distinguished from a change: of series without a
/// change whose neighbours are correlated by 0.6, up to one in ten gets one.
pub const FEW_VALUES: usize = 60;

/// What is known about a noisy series besides its values.
#[derive(Clone, Copy, Debug)]
pub struct SeriesOptions<'a> {
    /// The accepted probability of reporting a change in a series that has none.
    pub error: f64,
    /// The standard error of each value, relative to the value, or in the unit of the values where one of them is not
    /// positive. Empty where the errors are not known.
    pub errors: &'a [f64],
    /// The correlation of neighbouring values where it is known: 0 for versions weighed in turns, where the drift of
    /// the machine cannot look like a change. If absent, it is estimated, which loses small changes, and a slow
    /// background is searched for; in fewer than about 100 values a strong drift cannot always be distinguished from
    /// changes.
    pub drift: Option<f64>,
    /// The smallest step that the metric can make, in its unit; 0 where that is negligible.
    pub resolution: f64,
    /// Series of forty or more values report no step whose logarithm is smaller than this in magnitude; 0 reports all
    /// steps. Applies to ratios only.
    pub least: f64,
}

impl Default for SeriesOptions<'_> {
    fn default() -> Self {
        SeriesOptions { error: 0.01, errors: &[], drift: None, resolution: 0.0, least: 0.0 }
    }
}

/// The size of a change: how the new level differs from the old one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSize {
    /// The new level divided by the old level.
    Ratio(f64),
    /// The new level minus the old level, in the unit of the metric, where a ratio would mean nothing.
    Difference(f64),
}

impl StepSize {
    /// The step from `old` to `new`: a ratio where both are positive, else a difference.
    pub(super) fn between(old: f64, new: f64) -> StepSize {
        if old > 0.0 && new > 0.0 { StepSize::Ratio(new / old) } else { StepSize::Difference(new - old) }
    }

    /// The step as a ratio; absent where it is a difference.
    pub fn ratio(self) -> Option<f64> {
        match self {
            StepSize::Ratio(ratio) => Some(ratio),
            StepSize::Difference(_) => None,
        }
    }

    /// Whether the new level is above the old one.
    pub fn rises(self) -> bool {
        match self {
            StepSize::Ratio(ratio) => ratio > 1.0,
            StepSize::Difference(difference) => difference > 0.0,
        }
    }
}

/// One change of level in a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Place of the first value of the new level. The change came with this version, or with an unmeasured version
    /// between it and the one before.
    pub at: usize,
    /// The first place in the 95 % confidence set of places.
    pub first: usize,
    /// The last place in the 95 % confidence set of places.
    pub last: usize,
    /// How the new level differs from the old one.
    pub step: StepSize,
    /// The 95 % confidence interval of the ratio or difference; absent for exact metrics.
    pub interval: Option<Interval>,
    /// The probability that a series of noise alone has such a cut anywhere; 0 for exact metrics.
    pub p: f64,
}

/// The result of a search for changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundChanges {
    /// The changes, in the order of the series.
    pub changes: Vec<ChangePoint>,
    /// The level of each stretch between changes, in the unit of the metric; one more than there are changes.
    pub levels: Vec<f64>,
    /// Standard deviation of single values about their level: relative to it, or in the unit of the metric where steps
    /// are differences.
    pub noise: f64,
    /// Correlation of neighbouring values about their level, between 0 and 1: how much the machine drifts.
    pub drift: f64,
    /// The two levels between which the series alternates, if it does. Then no change is reported, since a version that
    /// happened to fall into the other mode would be blamed.
    pub modes: Option<[f64; 2]>,
    /// The slow movement of the series besides its steps, if one was found.
    pub background: Option<Background>,
}

/// A slow movement of a series that no single version caused: a trend, a wave or a random walk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Background {
    /// For each value, the factor by which the background multiplies the level, or, where steps are differences, what
    /// it adds.
    pub curve: Vec<f64>,
    /// The step from the least to the largest value of `curve`.
    pub range: StepSize,
}
