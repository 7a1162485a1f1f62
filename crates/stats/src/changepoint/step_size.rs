//! The levels between cuts, and the uncertainty of each step.

use super::scaled_series::Scaled;
use super::stretches::bounds;
use crate::normal;
use crate::quantile::median;
use crate::summary::robust_sd;

/// A value beyond this many standard deviations from the median of its stretch is clamped before the mean is taken.
const BOUND: f64 = 3.0;

/// The weight of the pooled variance, in values, when the variance of a single stretch is estimated.
const POOLED: f64 = 10.0;

/// A mean of up to this many values has tails like a single value.
const TAILS: f64 = 15.0;

/// Statistics of the residuals about the levels.
pub(super) struct Noise {
    /// Robust mean of each stretch.
    pub levels: Vec<f64>,
    /// Variance of single values within each stretch, shrunk towards the pooled variance.
    variances: Vec<f64>,
    /// Standard deviation of single values, pooled over all stretches.
    pub deviation: f64,
    pub drift: f64,
    /// Mean square of the residuals below and of those above their level, relative to the pooled variance: 1 and 1 for
    /// symmetric noise.
    tails: [f64; 2],
}

impl Noise {
    pub(super) fn estimate(series: &Scaled, cuts: &[usize]) -> Noise {
        let ends = bounds(cuts, series.values.len());
        let mut levels = Vec::new();
        let mut residuals = Vec::new();
        let mut sums = Vec::new();
        for pair in ends.windows(2) {
            let part = &series.values[pair[0]..pair[1]];
            let centre = median(part);
            let reach = BOUND * robust_sd(part, centre);
            let clip = |(place, value): (usize, &f64)| {
                let reach = reach.max(BOUND * series.scales[pair[0] + place]);
                value.clamp(centre - reach, centre + reach)
            };
            let clipped: Vec<f64> = part.iter().enumerate().map(clip).collect();
            let level = clipped.iter().sum::<f64>() / clipped.len() as f64;
            levels.push(level);
            let scales = &series.scales[pair[0]..pair[1]];
            let apart: Vec<f64> =
                clipped.iter().zip(scales).map(|(value, scale)| (value - level) / scale).collect();
            sums.push((apart.iter().map(|r| r * r).sum::<f64>(), apart.len() as f64));
            residuals.push(apart);
        }
        let freedom = (series.values.len() - sums.len()) as f64;
        let floor = mean_square(series.scales.iter().map(|scale| series.floor / scale));
        let pooled = (sums.iter().map(|s| s.0).sum::<f64>() / freedom).max(floor);
        // Values vary at least as much as their own readings; a smaller spread is chance.
        let own =
            |pair: &[usize]| series.own[pair[0]..pair[1]].iter().sum::<f64>() / (pair[1] - pair[0]) as f64;
        let shrunk = |(&(squares, n), pair): (&(f64, f64), &[usize])| {
            let variance = (squares + POOLED * pooled) / (n - 1.0 + POOLED);
            (variance * mean_square(series.scales[pair[0]..pair[1]].iter().copied())).max(own(pair))
        };
        let variances = sums.iter().zip(ends.windows(2)).map(shrunk).collect();
        let drift = series.known.unwrap_or_else(|| drift(&residuals, series, floor)).clamp(0.0, 0.95);
        let tails = [-1.0, 1.0].map(|side| tail(&residuals, side, pooled));
        let deviation = (pooled * mean_square(series.scales.iter().copied())).sqrt();
        Noise { levels, variances, deviation, drift, tails }
    }

    /// The variance of the mean of `count` values of stretch `i`; `above` says whether that stretch is higher than its
    /// neighbour.
    ///
    /// In skewed noise a few values from the longer tail look like a level more often than their variance suggests.
    /// With more values the tails of the mean even out.
    fn of_mean(&self, i: usize, count: f64, above: bool) -> f64 {
        let longer = (self.tails[usize::from(above)] - 1.0).max(0.0);
        self.inflation() * self.variances[i] / count * (1.0 + longer * (TAILS / count).min(1.0))
    }

    /// The size of the i-th step, and half the width of its interval at `level`; `n` is the length of the series.
    pub(super) fn step(&self, cuts: &[usize], i: usize, n: usize, level: f64) -> (f64, f64) {
        let ends = bounds(cuts, n);
        let [left, right] = [i, i + 1].map(|i| (ends[i + 1] - ends[i]) as f64);
        let step = self.levels[i + 1] - self.levels[i];
        let variance = self.of_mean(i, left, step < 0.0) + self.of_mean(i + 1, right, step > 0.0);
        let freedom = (left + right - 2.0) / self.inflation() + POOLED.min(n as f64 / 4.0);
        (step, normal::student(level, freedom.max(1.0)) * variance.sqrt())
    }

    /// The factor by which the correlation ρ of neighbours increases the variance of a mean: (1 + ρ)/(1 − ρ).
    fn inflation(&self) -> f64 {
        (1.0 + self.drift) / (1.0 - self.drift)
    }
}

fn mean_square(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.map(|value| value * value).sum::<f64>() / count
}

fn tail(residuals: &[Vec<f64>], side: f64, pooled: f64) -> f64 {
    let beyond = residuals.iter().flatten().filter(|&&r| r * side > 0.0);
    let (squares, count) = beyond.fold((0.0, 0.0), |(s, n), r| (s + r * r, n + 1.0));
    if count > 0.0 { squares / count / pooled } else { 1.0 }
}

/// Estimates the correlation of neighbours: the larger of that of the residuals, and the correlation that differences
/// over long lags show, in case cuts follow the drift.
fn drift(residuals: &[Vec<f64>], series: &Scaled, floor: f64) -> f64 {
    // Residuals below the resolution are rounding errors, which do not drift.
    let corrected = correlation_of_neighbours(residuals, floor);
    // Cuts that follow the drift remove it from the residuals, but not from differences between distant values.
    let far = (series.values.len() / 20).clamp(2, 15);
    let (near, persistent) = (series.variogram(1).max(floor), series.variogram(far).max(floor));
    corrected.max(1.0 - near / persistent)
}

/// The lag-one correlation of the residuals of each stretch about its fitted level, corrected for the levels: subtracting
/// a mean fitted to k values lowers a correlation ρ by about (1 + 3ρ)/k (Marriott and Pope, 1954). A variance below
/// `floor` counts as `floor`.
pub(super) fn correlation_of_neighbours(residuals: &[Vec<f64>], floor: f64) -> f64 {
    let (mut products, mut squares, mut pairs, mut count) = (0.0, 0.0, 0.0, 0.0);
    for part in residuals {
        products += part.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += part.iter().map(|r| r * r).sum::<f64>();
        pairs += part.len() as f64 - 1.0;
        count += part.len() as f64;
    }
    let raw = (products / pairs) / (squares / count).max(floor);
    let length = count / residuals.len() as f64;
    (raw + 1.0 / length) / (1.0 - 3.0 / length).max(0.25)
}
