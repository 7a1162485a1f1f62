//! What is said of the cuts that stand: their places, and the levels between them.
//!
//! Source: Siegmund, "Confidence Sets in Change-point Problems" (1988), for the places.

use super::fit::Fit;
use super::log::{Log, bounds, variogram};
use super::search::search;
use super::segment::{BOUND, SHORTEST};
use super::{ChangePoint, Options, Series};
use crate::stats::normal;
use crate::stats::quantile::{Interval, median};

/// The level of intervals and of the sets of places.
const LEVEL: f64 = 0.95;

/// The pooled variance weighs as much as this many values when a segment's own variance is judged.
const POOLED: f64 = 10.0;

/// Up to this many values a mean has the tails of single ones.
const TAILS: f64 = 15.0;

/// A change is placed where it most probably came within so many versions: the single likeliest place is often an
/// accident at the edge of them, where the step is not much larger than the noise.
const NEAR: usize = 3;

pub(super) fn series(values: &[f64], options: &Options<'_>) -> Series {
    let log = Log::new(values, options);
    let (fit, chances) = search(&log, options.error);
    let noise = Noise::about(&log, &fit.cuts);
    let (scale, drift) = (noise.pooled.sqrt(), noise.drift);
    if let Some(modes) = modes(&noise.levels, scale) {
        let all = median(&log.values).exp();
        let modes = Some(modes.map(f64::exp));
        return Series { changes: Vec::new(), levels: vec![all], noise: scale, drift, modes };
    }
    let change = |(i, &p): (usize, &f64)| {
        let (at, first, last) = places(&log, &fit, i);
        let (step, reach) = noise.step(&fit.cuts, i, log.len());
        let interval = Some(Interval { low: (step - reach).exp(), high: (step + reach).exp(), level: LEVEL });
        ChangePoint { at, first, last, ratio: step.exp(), interval, p }
    };
    let changes = chances.iter().enumerate().map(change).collect();
    let levels = noise.levels.iter().map(|level| level.exp()).collect();
    Series { changes, levels, noise: scale, drift, modes: None }
}

/// What the residuals about the levels show.
struct Noise {
    /// Mean of each segment without its outliers' weight.
    levels: Vec<f64>,
    /// Variance within each segment, drawn towards the pooled one.
    variances: Vec<f64>,
    pooled: f64,
    drift: f64,
    /// Mean square of residuals below and above their level, over that of all: 1 and 1 for symmetric noise.
    tails: [f64; 2],
}

impl Noise {
    fn about(log: &Log, cuts: &[usize]) -> Noise {
        let ends = bounds(cuts, log.values.len());
        let mut levels = Vec::new();
        let mut residuals = Vec::new();
        let mut sums = Vec::new();
        for pair in ends.windows(2) {
            let part = &log.values[pair[0]..pair[1]];
            let centre = median(part);
            let spread: Vec<f64> = part.iter().map(|v| (v - centre).abs()).collect();
            let reach = BOUND * (1.4826 * median(&spread)).max(log.scales[pair[0]]);
            let clipped: Vec<f64> = part.iter().map(|v| v.clamp(centre - reach, centre + reach)).collect();
            let level = clipped.iter().sum::<f64>() / clipped.len() as f64;
            levels.push(level);
            sums.push((clipped.iter().map(|v| (v - level).powi(2)).sum::<f64>(), clipped.len() as f64));
            residuals.push(clipped.iter().map(|v| v - level).collect::<Vec<f64>>());
        }
        let freedom = (log.values.len() - sums.len()) as f64;
        let pooled = (sums.iter().map(|s| s.0).sum::<f64>() / freedom).max(log.floor * log.floor);
        // Values cannot vary less than their own readings let expect; where they seem to, that is chance.
        let own = |pair: &[usize]| log.own[pair[0]..pair[1]].iter().sum::<f64>() / (pair[1] - pair[0]) as f64;
        let shrunk = |(&(squares, n), pair): (&(f64, f64), &[usize])| {
            ((squares + POOLED * pooled) / (n - 1.0 + POOLED)).max(own(pair))
        };
        let variances = sums.iter().zip(ends.windows(2)).map(shrunk).collect();
        let drift = log.known.unwrap_or_else(|| drift(&residuals, log)).clamp(0.0, 0.95);
        let tails = [-1.0, 1.0].map(|side| tail(&residuals, side, pooled));
        Noise { levels, variances, pooled, drift, tails }
    }

    /// The variance of the mean of `count` values of segment `i` that lies to the given side of its neighbour.
    ///
    /// Few values out of the longer tail of skewed noise look like a level of their own more often than its variance
    /// lets expect; with more values the tails of their mean even out.
    fn of_mean(&self, i: usize, count: f64, above: bool) -> f64 {
        let longer = (self.tails[usize::from(above)] - 1.0).max(0.0);
        self.inflation() * self.variances[i] / count * (1.0 + longer * (TAILS / count).min(1.0))
    }

    /// The i-th step and how far from it the true one may be.
    fn step(&self, cuts: &[usize], i: usize, n: usize) -> (f64, f64) {
        let ends = bounds(cuts, n);
        let [left, right] = [i, i + 1].map(|i| (ends[i + 1] - ends[i]) as f64);
        let step = self.levels[i + 1] - self.levels[i];
        let variance = self.of_mean(i, left, step < 0.0) + self.of_mean(i + 1, right, step > 0.0);
        let freedom = (left + right - 2.0) / self.inflation() + POOLED.min(n as f64 / 4.0);
        (step, normal::student(LEVEL, freedom.max(1.0)) * variance.sqrt())
    }

    /// How many times more values are needed than independent ones to know a mean as well.
    fn inflation(&self) -> f64 {
        (1.0 + self.drift) / (1.0 - self.drift)
    }
}

fn tail(residuals: &[Vec<f64>], side: f64, pooled: f64) -> f64 {
    let beyond = residuals.iter().flatten().filter(|&&r| r * side > 0.0);
    let (squares, count) = beyond.fold((0.0, 0.0), |(s, n), r| (s + r * r, n + 1.0));
    if count > 0.0 { squares / count / pooled } else { 1.0 }
}

/// The lag-one correlation of residuals, corrected for the levels that were fitted to them; and the largest that it may
/// be in view of cuts that follow the drift.
fn drift(residuals: &[Vec<f64>], log: &Log) -> f64 {
    let (mut products, mut squares, mut pairs, mut count) = (0.0, 0.0, 0.0, 0.0);
    for part in residuals {
        products += part.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += part.iter().map(|r| r * r).sum::<f64>();
        pairs += part.len() as f64 - 1.0;
        count += part.len() as f64;
    }
    // What is smaller than the resolution is rounding, and rounding has no drift.
    let raw = (products / pairs) / (squares / count).max(log.floor * log.floor);
    // A mean fitted to k values lowers their lag-one correlation by about (1 + 3ρ)/k.
    let length = count / residuals.len() as f64;
    let corrected = (raw + 1.0 / length) / (1.0 - 3.0 / length).max(0.25);
    // Cuts that follow the drift hide it from residuals, but not from differences further apart.
    let far = (log.values.len() / 20).clamp(2, 15);
    let (near, persistent) = (variogram(&log.values, 1), variogram(&log.values, far));
    let hidden = if persistent > 0.0 { 1.0 - near / persistent } else { 0.0 };
    corrected.max(hidden)
}

/// Two levels that at least five stretches keep returning to.
fn modes(levels: &[f64], scale: f64) -> Option<[f64; 2]> {
    if levels.len() < 5 {
        return None;
    }
    let (even, odd): (Vec<_>, Vec<_>) = levels.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let [even, odd] = [even, odd].map(|side| side.into_iter().map(|(_, &level)| level).collect::<Vec<f64>>());
    let centres = [median(&even), median(&odd)];
    let apart = (centres[0] - centres[1]).abs();
    let near = |side: &[f64], centre: f64| {
        side.iter().all(|level| (level - centre).abs() < (apart / 4.0).max(scale))
    };
    let alternates = apart > 2.0 * scale && near(&even, centres[0]) && near(&odd, centres[1]);
    alternates.then(|| [centres[0].min(centres[1]), centres[0].max(centres[1])])
}

/// The most probable place of a cut, and the first and last that fit nearly as well as the likeliest: the log likelihood
/// falls by less than x, where the walk it follows on both sides of the true place exceeds x with probability
/// 1 − (1 − e⁻ˣ)².
fn places(log: &Log, fit: &Fit, i: usize) -> (usize, usize, usize) {
    let ends = bounds(&fit.cuts, log.len());
    let (from, to) = (ends[i] + 1, ends[i + 2]);
    let under = |level: f64| -> Vec<f64> { (ends[i]..to).map(|place| log.residual(place, level)).collect() };
    let likely = fit.shape.places(&under(fit.levels[i]), &under(fit.levels[i + 1]));
    let chances: Vec<f64> = likely.iter().map(|log| log.exp()).collect();
    let near = |place: &usize| -> f64 {
        let i = place - from;
        let around = &chances[i.saturating_sub(NEAR)..(i + NEAR + 1).min(chances.len())];
        // Where all of it is in reach from several places, the likeliest of these is meant.
        around.iter().sum::<f64>() + 1e-3 * chances[i]
    };
    // Half of each stretch is its own, so that the places of neighbours keep their order.
    let halves = [i, i + 1].map(|i| usize::midpoint(ends[i], ends[i + 1]));
    let allowed = (from + SHORTEST - 1).max(halves[0])..(to + 1 - SHORTEST).min(halves[1]);
    let at = allowed.max_by(|a, b| near(a).total_cmp(&near(b))).unwrap_or(fit.cuts[i]);
    let fits = |place: &usize| likely[place - from] >= (1.0 - LEVEL.sqrt()).ln();
    let first = (from..at).find(fits).unwrap_or(at);
    let last = (at..to).rfind(fits).unwrap_or(at);
    (at, first, last)
}
