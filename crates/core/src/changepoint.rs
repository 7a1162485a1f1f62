//! Where in a series of versions a cost changed, by how much, and which versions may have done it.
//!
//! Exact metrics need no statistics: every change is a change ([`exact`]). Noisy series are cut where a robust
//! piecewise constant fits best, with a price on every cut. About its levels the noise is seen: how its values are
//! spread, be it skewed, of two humps or with outliers, and how alike neighbours are, since drift is what most often looks
//! like a change. The series is cut anew in view of that noise, and those cuts are kept that make it so much likelier,
//! with the noise fitted again without them, as noise alone seldom would ([`noisy`]).

mod chance;
mod fit;
mod judge;
mod log;
mod search;
mod segment;
mod shape;

use serde::Serialize;

use crate::stats::paired::Why;
use crate::stats::quantile::Interval;

/// One change of level in a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Place of the first value of the new level; the change came with this version or with one not measured
    /// between it and the version before.
    pub at: usize,
    /// First place that may be meant instead, at 95 %.
    pub first: usize,
    /// Last place that may be meant instead, at 95 %.
    pub last: usize,
    /// New level divided by old level.
    pub ratio: f64,
    /// Interval of the ratio at 95 %; absent for exact metrics.
    pub interval: Option<Interval>,
    /// Probability of such a cut anywhere in a series of noise alone; 0 for exact metrics.
    pub p: f64,
}

/// What a series was found to be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The changes, in order.
    pub changes: Vec<ChangePoint>,
    /// The level of each stretch between changes, in the unit of the metric; one more than there are changes.
    pub levels: Vec<f64>,
    /// Standard deviation of single values about their level, relative.
    pub noise: f64,
    /// Correlation of neighbours about their level, between 0 and 1: how much the machine drifts.
    pub drift: f64,
    /// Two levels between which the series goes back and forth. Then no change is named, since a version that
    /// happened to fall in the other mode would be blamed.
    pub modes: Option<[f64; 2]>,
}

/// What is known about a noisy series besides its values.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// How often a series without any change may be given one.
    pub error: f64,
    /// Standard error of each value, relative to it, where the readings behind it tell; else empty.
    pub errors: &'a [f64],
    /// Correlation of neighbours where it is known: 0 for versions weighed in turns, so that no drift of the machine
    /// can be taken for one of them. Else it is estimated, at the price of small changes; and in fewer than about 100
    /// values not all of a strong drift can be told from changes.
    pub drift: Option<f64>,
    /// The smallest step of the metric, in its unit; 0 where it has none to speak of.
    pub resolution: f64,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { error: 0.01, errors: &[], drift: None, resolution: 0.0 }
    }
}

/// The changes of an exact metric: every place whose value is not the one before.
pub fn exact(values: &[f64]) -> Vec<ChangePoint> {
    let changed = |(place, pair): (usize, &[f64])| {
        let at = place + 1;
        let ratio = pair[1] / pair[0];
        (pair[0] != pair[1]).then_some(ChangePoint { at, first: at, last: at, ratio, interval: None, p: 0.0 })
    };
    values.windows(2).enumerate().filter_map(changed).collect()
}

/// The changes of a noisy metric, one value for each version in order, such as the median of its readings.
///
/// Fails when a value is not positive and finite, or when there are fewer than six values, of which nothing can be
/// said. A stretch of fewer than three values is never a level of its own, so the two latest versions are never
/// blamed.
pub fn noisy(values: &[f64], options: &Options<'_>) -> Result<Series, Why> {
    if values.len() < 2 * segment::SHORTEST {
        return Err(Why::TooFew { have: values.len(), need: 2 * segment::SHORTEST });
    }
    if !options.errors.is_empty() && options.errors.len() != values.len() {
        return Err(Why::Unpaired { reference: values.len(), arm: options.errors.len() });
    }
    if values.iter().chain(options.errors).any(|v| !v.is_finite()) {
        return Err(Why::NotFinite);
    }
    if values.iter().any(|&v| v <= 0.0) {
        return Err(Why::NotPositive);
    }
    Ok(judge::series(values, options))
}
