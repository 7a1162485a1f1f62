//! Estimates the rate at which a share of requests reaches its target, from counts at several rates.
//!
//! A limit allows a share of requests: p99 < 50 ms allows one in a hundred to be slower. The share grows with the rate,
//! and over a small range of rates its logarithm is nearly linear in the logarithm of the rate. The line is fitted by
//! weighted quasi-likelihood with the variance of counts (McCullagh and Nelder, "Generalized Linear Models", 2nd ed.
//! 1989, ch. 9); distant rates have less weight (Cleveland 1979). Slow requests come in groups. The variance of the
//! estimate is therefore the largest of three: that between stretches of time, that between measurements (Liang and
//! Zeger 1986), and that of counts times their overdispersion. The result is where the line crosses the target; its
//! interval follows from Fieller (1954).

use crate::{Interval, normal};

/// The distance from the estimate at which a rate has weight zero, as a difference of logarithms. The second value is
/// used where the first leaves too few rates to know the growth.
const REACH: [f64; 2] = [0.3, 0.6];

/// The smallest number of measurements with weight for which there is an interval.
const FEWEST: usize = 14;

/// The smallest weighted number of requests beyond the limit for which there is an interval; not used where half of the
/// requests or more may be beyond it.
const BEYOND: f64 = 300.0;

/// The rate at which the share reaches its target, in requests per second, with an interval where there are enough counts
/// for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The estimate.
    pub rate: f64,
    /// The interval at the requested level.
    pub interval: Option<Interval>,
}

/// What was counted in a stretch of time of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StretchCount {
    /// The number of the measurement. Stretches of a measurement follow each other.
    pub measurement: usize,
    /// The rate of the measurement, in requests per second.
    pub rate: f64,
    /// The number of requests.
    pub requests: f64,
    /// The number of requests that were slower than the limit.
    pub beyond: f64,
}

/// A stretch with its distance from the centre, as a difference of logarithms, and its weight.
#[derive(Clone, Copy)]
struct WeightedStretch {
    measurement: usize,
    x: f64,
    weight: f64,
    requests: f64,
    beyond: f64,
}

#[derive(Clone, Copy, Default)]
struct LogLine {
    at: f64,
    slope: f64,
    /// The inverse of the information matrix, from which variances follow: entries 11, 12 and 22.
    inverse: [f64; 3],
}

/// The rate near `guess` at which the share beyond the limit reaches `target`, with its interval at `level`; `None` where
/// the share does not grow.
///
/// ```
/// use scruple_stats::share_crossing::{StretchCount, crossing};
///
/// // 1 % of the requests are too slow at 100/s, and the share grows with the fifth power of the rate.
/// let counts: Vec<StretchCount> = (0..40)
///     .map(|measurement| {
///         let rate = 80.0 + measurement as f64;
///         StretchCount { measurement, rate, requests: 1e4, beyond: 1e2 * (rate / 100.0_f64).powi(5) }
///     })
///     .collect();
/// let found = crossing(&counts, 0.01, 90.0, 0.95).expect("the share grows");
/// assert!((found.rate - 100.0).abs() < 0.1);
/// ```
pub fn crossing(counts: &[StretchCount], target: f64, guess: f64, level: f64) -> Option<Crossing> {
    let [near, far] = REACH.map(|reach| within(counts, target, guess, reach, level));
    near.filter(|near| near.interval.is_some()).or(far.filter(|far| far.interval.is_some())).or(near).or(far)
}

fn within(counts: &[StretchCount], target: f64, guess: f64, reach: f64, level: f64) -> Option<Crossing> {
    let mut centre = guess;
    let mut found = None;
    for _ in 0..6 {
        let stretches = weighted(counts, centre, reach);
        let line = line(&stretches, target)?;
        let step = (target.ln() - line.at) / line.slope;
        let interval = interval(&stretches, &line, target, level).map(|(low, high)| Interval {
            low: centre * low.exp(),
            high: centre * high.exp(),
            level,
        });
        found = Some(Crossing { rate: centre * step.clamp(-reach, reach).exp(), interval });
        if step.abs() < 0.005 {
            break;
        }
        centre *= step.clamp(-reach / 2.0, reach / 2.0).exp();
    }
    found
}

/// The stretches that have weight: less the farther their rates are from the centre.
fn weighted(counts: &[StretchCount], centre: f64, reach: f64) -> Vec<WeightedStretch> {
    let weighted = counts.iter().map(|&StretchCount { measurement, rate, requests, beyond }| {
        let x = (rate / centre).ln();
        let far = (x.abs() / reach).min(1.0);
        WeightedStretch { measurement, x, weight: (1.0 - far.powi(3)).powi(3), requests, beyond }
    });
    weighted.filter(|stretch| stretch.weight > 0.0).collect()
}

/// Fits the line by Newton's method; `None` where no request is beyond the limit, or the share does not grow with the
/// rate.
fn line(stretches: &[WeightedStretch], target: f64) -> Option<LogLine> {
    let total: f64 = stretches.iter().map(|s| s.weight * s.beyond).sum();
    let requests: f64 = stretches.iter().map(|s| s.weight * s.requests).sum();
    if total <= 0.0 || requests <= 0.0 {
        return None;
    }
    let mut line =
        LogLine { at: (total / requests).ln().min(target.ln() + 1.0), slope: 5.0, inverse: [0.0; 3] };
    for _ in 0..60 {
        let (mut score, mut information) = ([0.0; 2], [0.0; 3]);
        for s in stretches {
            let mean = s.requests * (line.at + line.slope * s.x).min(3.0).exp();
            let off = s.weight * (s.beyond - mean);
            score[0] += off;
            score[1] += off * s.x;
            let w = s.weight * mean;
            information[0] += w;
            information[1] += w * s.x;
            information[2] += w * s.x * s.x;
        }
        let determinant = information[0] * information[2] - information[1] * information[1];
        if determinant <= 1e-12 * information[0] * information[2].max(1e-12) {
            return None;
        }
        line.inverse =
            [information[2] / determinant, -information[1] / determinant, information[0] / determinant];
        let at = line.inverse[0] * score[0] + line.inverse[1] * score[1];
        let slope = line.inverse[1] * score[0] + line.inverse[2] * score[1];
        line.at += at.clamp(-1.0, 1.0);
        line.slope += slope.clamp(-5.0, 5.0);
        if at.abs() < 1e-9 && slope.abs() < 1e-9 {
            break;
        }
    }
    (line.at.is_finite() && line.slope > 0.0).then_some(line)
}

/// The interval of the crossing, as logarithms of the rate relative to the centre.
fn interval(stretches: &[WeightedStretch], line: &LogLine, target: f64, level: f64) -> Option<(f64, f64)> {
    let measurements =
        1 + stretches.windows(2).filter(|pair| pair[0].measurement != pair[1].measurement).count();
    let beyond: f64 = stretches.iter().map(|s| s.weight * s.beyond).sum();
    if measurements < FEWEST || (target < 0.5 && beyond < BEYOND) {
        return None;
    }
    let by_stretch = covariance(stretches, line, |a, b| std::ptr::eq(a, b));
    let by_measurement = covariance(stretches, line, |a, b| a.measurement == b.measurement);
    let freedom = (measurements - 2) as f64;
    let t = normal::student(level, freedom);
    let off = line.at - target.ln();
    // The largest of three variances at the crossing is used.
    let x = -off / line.slope;
    let at = |v: &[f64; 3]| v[0] + 2.0 * x * v[1] + x * x * v[2];
    let by_bunch = line.inverse.map(|v| v * bunch(stretches, line));
    let v = [by_stretch, by_measurement, by_bunch].into_iter().max_by(|a, b| at(a).total_cmp(&at(b)))?;
    // Fieller's interval: the solutions of (off + slope·x)² = t²·(v0 + 2·x·v1 + x²·v2).
    let a = line.slope * line.slope - t * t * v[2];
    let b = off * line.slope - t * t * v[1];
    let c = off * off - t * t * v[0];
    let root = b * b - a * c;
    (a > 0.0 && root >= 0.0).then(|| ((-b - root.sqrt()) / a, (-b + root.sqrt()) / a))
}

/// The number of requests beyond the limit that come together: the variance of counts divided by that of independent
/// requests.
fn bunch(stretches: &[WeightedStretch], line: &LogLine) -> f64 {
    let (mut off, mut weights) = (0.0, 0.0);
    for measurement in stretches.chunk_by(|a, b| a.measurement == b.measurement) {
        let expected: f64 =
            measurement.iter().map(|s| s.requests * (line.at + line.slope * s.x).min(3.0).exp()).sum();
        let counted: f64 = measurement.iter().map(|s| s.beyond).sum();
        off += measurement[0].weight * (counted - expected).powi(2) / expected.max(1e-9);
        weights += measurement[0].weight;
    }
    (off / weights).max(1.0)
}

/// The covariance of the two coefficients of the line, where the counts of one group may be correlated.
fn covariance(
    stretches: &[WeightedStretch],
    line: &LogLine,
    same: fn(&WeightedStretch, &WeightedStretch) -> bool,
) -> [f64; 3] {
    let mut meat = [0.0; 3];
    let mut groups = 0.0;
    for group in stretches.chunk_by(same) {
        let mut sum = [0.0; 2];
        for s in group {
            let off = s.weight * (s.beyond - s.requests * (line.at + line.slope * s.x).min(3.0).exp());
            sum[0] += off;
            sum[1] += off * s.x;
        }
        groups += 1.0;
        meat[0] += sum[0] * sum[0];
        meat[1] += sum[0] * sum[1];
        meat[2] += sum[1] * sum[1];
    }
    let small = groups / f64::max(groups - 2.0, 1.0);
    let [p, q, r] = line.inverse;
    let [m0, m1, m2] = meat;
    [
        small * (p * p * m0 + 2.0 * p * q * m1 + q * q * m2),
        small * (p * q * m0 + (p * r + q * q) * m1 + q * r * m2),
        small * (q * q * m0 + 2.0 * q * r * m1 + r * r * m2),
    ]
}
