//! The interval of a median, and of other quantiles, that holds for every distribution of the readings.
//!
//! Source: Conover, "Practical Nonparametric Statistics" (1999), §3.2, for the order statistics that bracket a quantile.

use super::Interval;
use super::quantile::sorted;
use statrs::distribution::{Binomial, DiscreteCDF};

/// The exact interval of the median from two order statistics.
///
/// `None` when there are too few readings for `level`: fewer than six at 95 %.
///
/// ```
/// use scruple_stats::median_interval::median_interval;
/// use scruple_stats::quantile::median;
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
