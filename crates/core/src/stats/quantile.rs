//! Quantiles, and intervals for them that hold for every distribution of the readings.
//!
//! Sources: Hyndman & Fan, "Sample Quantiles in Statistical Packages" (1996), definition 7; Conover, "Practical
//! Nonparametric Statistics" (1999), §3.2, for the order statistics that bracket a quantile.

use super::Interval;
use statrs::distribution::{Binomial, DiscreteCDF};

/// The readings in increasing order. NaN is put at the ends instead of causing a panic.
pub fn sorted(readings: &[f64]) -> Vec<f64> {
    let mut sorted = readings.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The `p`-quantile of readings in increasing order, by linear interpolation between order statistics (type 7).
///
/// `p` is clamped to [0, 1]. The quantile of no readings is NaN, since 0 would look like a value.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let share = place - below as f64;
    if share == 0.0 { sorted[below] } else { sorted[below] + share * (sorted[above] - sorted[below]) }
}

/// The median of readings in any order; NaN when there are no readings.
pub fn median(readings: &[f64]) -> f64 {
    median_in_place(&mut readings.to_vec())
}

/// The median, found by reordering the readings in place: resampling takes thousands of medians, and a selection is
/// faster than a sort.
pub(crate) fn median_in_place(readings: &mut [f64]) -> f64 {
    if readings.is_empty() {
        return f64::NAN;
    }
    let (middle, even) = (readings.len() / 2, readings.len().is_multiple_of(2));
    let (below, above, _) = readings.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(below) if even => below + 0.5 * (*above - below),
        _ => *above,
    }
}

/// The exact interval of the median from two order statistics.
///
/// `None` when there are too few readings for `level`: fewer than six at 95 %.
///
/// ```
/// use scruple_core::stats::quantile::{median, median_interval};
///
/// let readings = [5.0, 1.0, 4.0, 2.0, 6.0, 3.0];
/// assert_eq!(median(&readings), 3.5);
/// let interval = median_interval(&readings, 0.95).expect("six readings are enough for 95 %");
/// assert_eq!((interval.low, interval.high), (1.0, 6.0));
/// assert!(median_interval(&readings[..5], 0.95).is_none(), "five are not");
/// ```
pub fn median_interval(readings: &[f64], level: f64) -> Option<Interval> {
    quantile_interval(readings, 0.5, level)
}

/// The exact interval of the `p`-quantile from two order statistics. Each tail holds at most half the error.
///
/// `None` when the readings are too few for a tail, when a reading is not finite, or when `p` or `level` is not
/// strictly between 0 and 1. With ties the interval covers more often than stated, never less.
pub fn quantile_interval(readings: &[f64], p: f64, level: f64) -> Option<Interval> {
    let inside = |x: f64| x > 0.0 && x < 1.0;
    if readings.is_empty() || !inside(p) || !inside(level) || readings.iter().any(|r| !r.is_finite()) {
        return None;
    }
    let n = readings.len() as u64;
    let below = Binomial::new(p, n).ok()?;
    let tail = tail_of(level);
    // The lower end is the largest rank l for which P(fewer than l readings lie below the quantile) is at most the
    // tail.
    let low = last_within(n, |rank| below.cdf(rank - 1) <= tail)?;
    // The upper end, counted from the top, is the same problem for 1 − p.
    let above = Binomial::new(1.0 - p, n).ok()?;
    let from_top = last_within(n, |rank| above.cdf(rank - 1) <= tail)?;
    let high = n + 1 - from_top;
    let achieved = 1.0 - below.cdf(low - 1) - above.cdf(from_top - 1);
    let sorted = sorted(readings);
    Some(Interval { low: sorted[low as usize - 1], high: sorted[high as usize - 1], level: achieved })
}

/// The error allowed in one tail, with room for the rounding of levels such as 0.95 that binary cannot represent.
pub(crate) fn tail_of(level: f64) -> f64 {
    (1.0 - level) / 2.0 * (1.0 + 1e-12)
}

/// The last rank from 1 to `n` for which `holds` is true. It must be true up to some rank and false beyond; `None` if
/// it is never true.
pub(crate) fn last_within(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut known, mut beyond) = (0, n + 1);
    while beyond - known > 1 {
        let middle = known + (beyond - known) / 2;
        if holds(middle) { known = middle } else { beyond = middle }
    }
    (known > 0).then_some(known)
}
