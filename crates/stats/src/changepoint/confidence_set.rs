//! The most probable place of a change, and its confidence set of places.
//!
//! Source: Siegmund, "Confidence Sets in Change-point Problems" (1988).

use super::fit::LevelFit;
use super::scaled_series::Scaled;
use super::stretches::{SHORTEST, bounds};

/// A change is placed where the probability within this many versions to either side is largest. Where the step is not
/// much larger than the noise, the single most likely place is often an accident at the edge of the likely ones.
const NEAR: usize = 3;

/// The confidence level of the sets of places.
const LEVEL: f64 = 0.95;

/// The place of a change.
pub(super) struct PlacedCut {
    pub at: usize,
    /// The first place of the confidence set; `last` is its last place.
    pub first: usize,
    pub last: usize,
    /// The probability that the change came within [`NEAR`] versions of `at`.
    pub near: f64,
}

/// Places the i-th cut. A place belongs to the confidence set if its log likelihood is at most x below the largest,
/// where (1 − e⁻ˣ)² is [`LEVEL`]: the log likelihood follows a random walk on each side of the true place, and each
/// walk rises above x with probability e⁻ˣ.
pub(super) fn placed(series: &Scaled, fit: &LevelFit, i: usize) -> PlacedCut {
    let ends = bounds(&fit.cuts, series.len());
    let (from, to) = (ends[i] + 1, ends[i + 2]);
    let under =
        |level: f64| -> Vec<f64> { (ends[i]..to).map(|place| series.residual(place, level)).collect() };
    let likely = fit.shape.places(&under(fit.levels[i]), &under(fit.levels[i + 1]));
    let chances: Vec<f64> = likely.iter().map(|log| log.exp()).collect();
    let near = |place: &usize| -> f64 {
        let i = place - from;
        let around = &chances[i.saturating_sub(NEAR)..(i + NEAR + 1).min(chances.len())];
        // Where several neighbourhoods hold the whole probability, the small term selects the most likely place among
        // them.
        around.iter().sum::<f64>() + 1e-3 * chances[i]
    };
    // A cut stays between the middles of the stretches beside it, so that neighbouring cuts keep their order.
    let halves = [i, i + 1].map(|i| usize::midpoint(ends[i], ends[i + 1]));
    let allowed = (from + SHORTEST - 1).max(halves[0])..(to + 1 - SHORTEST).min(halves[1]);
    let at = allowed.max_by(|a, b| near(a).total_cmp(&near(b))).unwrap_or(fit.cuts[i]);
    let fits = |place: &usize| likely[place - from] >= (1.0 - LEVEL.sqrt()).ln();
    let first = (from..at).find(fits).unwrap_or(at);
    let last = (at..to).rfind(fits).unwrap_or(at);
    PlacedCut { at, first, last, near: near(&at) / chances.iter().sum::<f64>() }
}
