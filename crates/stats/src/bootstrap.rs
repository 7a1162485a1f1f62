//! Intervals by resampling, for statistics whose distribution is not known.
//!
//! Source: Efron, "Better Bootstrap Confidence Intervals" (1987). Each replicate has its own generator, seeded by the
//! seed and the number of the replicate, so that replicates may be computed in any order and on any number of threads
//! with the same result.

use serde::Serialize;

use super::Interval;
use super::normal;
use super::quantile::{quantile, sorted};
use super::rng::Pcg;

/// An estimate with a bootstrap interval, in the unit of the statistic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BootstrapEstimate {
    /// The statistic of the readings themselves.
    pub estimate: f64,
    /// The interval of the estimate.
    pub interval: Interval,
    /// The method of the interval, in words.
    pub method: &'static str,
}

/// The percentile interval: its ends are quantiles of the replicates.
///
/// `None` for fewer than two readings, for no replicates, or for an invalid statistic or level.
pub fn percentile(
    readings: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    level: f64,
    replicates: usize,
    seed: u64,
) -> Option<BootstrapEstimate> {
    let estimate = statistic(readings);
    let drawn = replicate(readings, &statistic, replicates, seed);
    let interval = percentile_of(&drawn, level, readings.len())?;
    estimate.is_finite().then_some(BootstrapEstimate { estimate, interval, method: "bootstrap, percentile" })
}

/// The bias-corrected and accelerated (BCa) interval, which is second-order accurate for smooth statistics.
///
/// Where the correction cannot be computed (every replicate lies on one side of the estimate), the result is the plain
/// percentile interval, and `method` says so. `None` as for [`percentile`].
pub fn bca(
    readings: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    level: f64,
    replicates: usize,
    seed: u64,
) -> Option<BootstrapEstimate> {
    let estimate = statistic(readings);
    let drawn = replicate(readings, &statistic, replicates, seed);
    let mut rest = Vec::with_capacity(readings.len());
    let left_out: Vec<f64> = (0..readings.len())
        .map(|i| {
            rest.clear();
            rest.extend_from_slice(&readings[..i]);
            rest.extend_from_slice(&readings[i + 1..]);
            statistic(&rest)
        })
        .collect();
    bca_of(estimate, &drawn, &left_out, level)
}

/// The BCa interval from an estimate, its replicates in any order, and its jackknife values.
pub(crate) fn bca_of(
    estimate: f64,
    drawn: &[f64],
    left_out: &[f64],
    level: f64,
) -> Option<BootstrapEstimate> {
    let plain = percentile_of(drawn, level, left_out.len())?;
    if !estimate.is_finite() {
        return None;
    }
    let below = drawn.iter().filter(|&&r| r < estimate).count();
    let up_to = drawn.iter().filter(|&&r| r <= estimate).count();
    let bias = normal::quantile((below + up_to) as f64 / (2 * drawn.len()) as f64);
    if !bias.is_finite() {
        return Some(BootstrapEstimate { estimate, interval: plain, method: "bootstrap, percentile" });
    }
    let acceleration = acceleration(left_out);
    let sorted = sorted(drawn);
    let end = |p: f64| {
        let z = bias + normal::quantile(p);
        quantile(&sorted, normal::cdf(bias + z / (1.0 - acceleration * z)))
    };
    let tail = (1.0 - level) / 2.0;
    let interval = Interval { low: end(tail), high: end(1.0 - tail), level };
    Some(BootstrapEstimate { estimate, interval, method: "bootstrap, BCa" })
}

/// Efron's estimate of the acceleration: one sixth of the skewness of the jackknife values; 0 when all of them are
/// equal.
fn acceleration(left_out: &[f64]) -> f64 {
    let centre = left_out.iter().sum::<f64>() / left_out.len() as f64;
    let moment = |power: i32| left_out.iter().map(|v| (centre - v).powi(power)).sum::<f64>();
    let (squares, cubes) = (moment(2), moment(3));
    let acceleration = cubes / (6.0 * squares.powf(1.5));
    if acceleration.is_finite() { acceleration } else { 0.0 }
}

fn percentile_of(drawn: &[f64], level: f64, readings: usize) -> Option<Interval> {
    let sensible = readings >= 2 && !drawn.is_empty() && level > 0.0 && level < 1.0;
    if !sensible || drawn.iter().any(|r| !r.is_finite()) {
        return None;
    }
    let sorted = sorted(drawn);
    let tail = (1.0 - level) / 2.0;
    Some(Interval { low: quantile(&sorted, tail), high: quantile(&sorted, 1.0 - tail), level })
}

fn replicate(readings: &[f64], statistic: impl Fn(&[f64]) -> f64, count: usize, seed: u64) -> Vec<f64> {
    let mut drawn = vec![0.0; readings.len()];
    (0..count as u64)
        .map(|number| {
            let mut pcg = Pcg::with_stream(seed, number);
            drawn.iter_mut().for_each(|place| *place = readings[index(&mut pcg, readings.len())]);
            statistic(&drawn)
        })
        .collect()
}

/// A random index below `count`. Counts beyond 32 bits are capped, since no sample has four thousand million readings.
pub(crate) fn index(pcg: &mut Pcg, count: usize) -> usize {
    pcg.below(u32::try_from(count).unwrap_or(u32::MAX)) as usize
}
