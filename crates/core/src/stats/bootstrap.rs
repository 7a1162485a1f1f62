//! Intervals by resampling, for statistics whose distribution is not known.
//!
//! Sources: Efron, "Better Bootstrap Confidence Intervals" (1987), for BCa; Davison & Hinkley, "Bootstrap Methods and
//! their Application" (1997), §3.8, for resampling on two levels; Hesterberg, "What Teachers Should Know About the
//! Bootstrap" (2015), §4.3, for widening by Student's t; Kalibera & Jones, "Rigorous Benchmarking in Reasonable Time"
//! (2013), for the levels themselves. Each replicate has its own generator, seeded by the seed and the number of the
//! replicate, so that replicates may be computed in any order and on any number of threads with the same result.

use serde::Serialize;

use super::Interval;
use super::median_interval::median_interval;
use super::normal;
use super::processes::FEWEST;
use super::quantile::{median, median_in_place, quantile, sorted};
use super::rng::Pcg;
use super::summary::sd;

/// The usual number of replicates. It gives each end of a 95 % interval to within about 0.02 of the width of the
/// interval.
pub const REPLICATES: usize = 2000;

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

/// The variance of the difference between the medians of two invocations, each over equally many processes, is this
/// many times that of one of them. Intervals over processes are as wide as that, since they are read as what the next
/// invocation will say.
const NEXT: f64 = 2.0;

/// The median of all readings of several processes, with an interval from resampling processes, then readings within
/// each. The interval holds the median of as many further processes.
///
/// The distances of the percentile interval from the estimate are multiplied by the ratio of Student's t, with one
/// degree of freedom less than there are processes, to the normal quantile, since five processes say little about their
/// own spread. `None` for fewer than three processes, or when a process has no readings.
pub fn two_level(groups: &[Vec<f64>], level: f64, replicates: usize, seed: u64) -> Option<BootstrapEstimate> {
    if groups.len() < 3 || groups.iter().any(Vec::is_empty) {
        return None;
    }
    let estimate = median(&groups.concat());
    let mut pool = Vec::new();
    let drawn: Vec<f64> = (0..replicates as u64)
        .map(|number| {
            let mut pcg = Pcg::with_stream(seed, number);
            pool.clear();
            for _ in groups {
                let group = &groups[index(&mut pcg, groups.len())];
                pool.extend((0..group.len()).map(|_| group[index(&mut pcg, group.len())]));
            }
            median_in_place(&mut pool)
        })
        .collect();
    let plain = percentile_of(&drawn, level, groups.len())?;
    let count = groups.len() as f64;
    let student = normal::student(level, count - 1.0) / normal::quantile(0.5 + level / 2.0);
    let stretch = student * (count / (count - 1.0)).sqrt() * NEXT.sqrt();
    let low = estimate - stretch * (estimate - plain.low).max(0.0);
    let high = estimate + stretch * (plain.high - estimate).max(0.0);
    Some(BootstrapEstimate {
        estimate,
        interval: Interval { low, high, level },
        method: "median, two-level bootstrap",
    })
}

/// The sources of the variance of a median: between processes and within them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Levels {
    /// Variance of the medians of the processes, in the unit squared.
    pub between: f64,
    /// The variance that the noise within processes alone would give these medians, in the unit squared.
    pub within: f64,
}

impl Levels {
    /// Whether processes differ so much more than their own noise explains that readings of one process must not count
    /// as independent. At the threshold, 1.5 times the variance, an interval that ignores this covers 89 % instead of
    /// 95 %.
    pub fn between_dominates(&self) -> bool {
        self.between > 1.5 * self.within
    }
}

/// Compares the variance of the medians of the processes with the variance that their own readings predict.
///
/// The expected variance of a median of n readings is π/2·s²/n with s = 1.4826·MAD, which a few disturbed readings do
/// not inflate. A process with a single reading does not show its noise and is left out. `None` when fewer than three
/// processes remain.
pub fn levels(groups: &[Vec<f64>]) -> Option<Levels> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| group.len() >= 2).collect();
    if groups.len() < 3 {
        return None;
    }
    let medians: Vec<f64> = groups.iter().map(|g| median(g)).collect();
    let expected = |(group, &centre): (&&Vec<f64>, &f64)| {
        let deviations: Vec<f64> = group.iter().map(|r| (r - centre).abs()).collect();
        std::f64::consts::FRAC_PI_2 * (1.4826 * median(&deviations)).powi(2) / group.len() as f64
    };
    let within = groups.iter().zip(&medians).map(expected).sum::<f64>() / groups.len() as f64;
    Some(Levels { between: sd(&medians)?.powi(2), within })
}

/// The median of readings taken in several processes, with an interval that covers the variance between processes.
///
/// The interval contains that of the exact order statistics of all readings. It also contains Student's prediction
/// interval for the median of as many further processes, since blocks of one process do not predict the next process,
/// and where processes clearly differ, that of the [`two_level`] bootstrap. `None` when there are too few readings for
/// the order statistics.
pub fn median_of_groups(groups: &[Vec<f64>], level: f64, seed: u64) -> Option<BootstrapEstimate> {
    let own = |estimate| {
        let medians: Vec<f64> = groups.iter().map(|group| median(group)).collect();
        student_interval(estimate, &medians, level)
    };
    widened(groups, level, own, || two_level(groups, level, REPLICATES, seed))
}

/// The median of amounts taken in several processes, as [`median_of_groups`] computes it. Where the median of each
/// process is positive, logarithms are used, so that the interval never reaches below zero, however few the processes
/// are and however much they differ. A reading that is not positive then counts as the smallest positive one of its
/// process: of a median, only the order of the others matters.
pub fn median_of_amounts(groups: &[Vec<f64>], level: f64, seed: u64) -> Option<BootstrapEstimate> {
    let Some(groups) = groups.iter().map(|group| positive(group)).collect::<Option<Vec<_>>>() else {
        return median_of_groups(groups, level, seed);
    };
    let groups = groups.as_slice();
    let own = |estimate: f64| {
        let medians: Vec<f64> = groups.iter().map(|group| median(group).ln()).collect();
        Some(student_interval(estimate.ln(), &medians, level)?.map(f64::exp))
    };
    widened(groups, level, own, || {
        let logarithms = |group: &Vec<f64>| group.iter().map(|reading| reading.ln()).collect();
        let logarithms: Vec<Vec<f64>> = groups.iter().map(logarithms).collect();
        let found = two_level(&logarithms, level, REPLICATES, seed)?;
        let interval = found.interval.map(f64::exp);
        Some(BootstrapEstimate { estimate: median(&groups.concat()), interval, method: found.method })
    })
}

/// Some readings, each at least as large as the smallest positive one; `None` where their median is not positive.
fn positive(readings: &[f64]) -> Option<Vec<f64>> {
    let least = readings.iter().copied().filter(|reading| *reading > 0.0).min_by(f64::total_cmp)?;
    (median(readings) > 0.0).then(|| readings.iter().map(|reading| reading.max(least)).collect())
}

/// Student's interval, from the medians of processes, for the median of as many further processes, around the median of
/// all readings; `None` for fewer than [`FEWEST`] processes.
fn student_interval(estimate: f64, medians: &[f64], level: f64) -> Option<Interval> {
    let n = medians.len() as f64;
    let spread = sd(medians).filter(|_| medians.len() >= FEWEST)?;
    let half = normal::student(level, n - 1.0) * spread * (NEXT / n).sqrt();
    Some(Interval { low: estimate - half, high: estimate + half, level })
}

fn widened(
    groups: &[Vec<f64>],
    level: f64,
    own: impl FnOnce(f64) -> Option<Interval>,
    resampled: impl FnOnce() -> Option<BootstrapEstimate>,
) -> Option<BootstrapEstimate> {
    let pool = groups.concat();
    let exact = median_interval(&pool, level)?;
    let estimate = median(&pool);
    let with = |found: Interval, method| {
        let (low, high) = (found.low.min(exact.low), found.high.max(exact.high));
        BootstrapEstimate { estimate, interval: Interval { low, high, level }, method }
    };
    let differ = levels(groups).is_some_and(|levels| levels.between_dominates());
    let wide = if differ { resampled() } else { None };
    Some(match (own(estimate), wide) {
        (Some(own), Some(wide)) => {
            let (low, high) = (own.low.min(wide.interval.low), own.high.max(wide.interval.high));
            with(Interval { low, high, level }, wide.method)
        }
        (None, Some(wide)) => with(wide.interval, wide.method),
        (Some(own), None) => with(own, "median, order statistics and Student over processes"),
        (None, None) => with(exact, "median, order statistics"),
    })
}
