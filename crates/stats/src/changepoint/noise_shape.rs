//! Estimates the distribution of the noise of a series, and how likely each place of a cut is under it.
//!
//! If only the size of the noise is used, a small step is often missed, and a step of one standard deviation is blurred
//! over several places. Where noise has an edge, two humps or a correlation, single values carry much more information.
//! So the density of the noise is estimated from the residuals (Silverman, "Density Estimation" (1986), §3.4) after the
//! correlation of neighbours (an autoregression of order one) is removed. Residuals are few and tails are rarely seen,
//! so the estimate is mixed with Student's distribution. Far out the density is constant, so that outliers carry no
//! information about the place.

use std::sync::LazyLock;

/// The weight of the prior, Student's distribution with four degrees of freedom, is this number of residuals plus
/// [`SHARE`] of those observed.
const PRIOR: f64 = 10.0;

/// The part of the weight of the prior that grows with the series, as a share of the number of residuals.
const SHARE: f64 = 0.1;

/// A residual is clamped to this many standard deviations before the correlation of neighbours is estimated, and before
/// its correlated part carries over to the next value.
pub(super) const OUTLIER: f64 = 6.0;

/// The largest accepted correlation is this times the number of values, up to [`LONGEST`]: in few values a step looks
/// like a correlation, and is the more common cause.
const MEMORY: f64 = 0.02;

/// The largest correlation that is accepted in a series of any length.
const LONGEST: f64 = 0.95;

/// The table of the density covers this many standard deviations to either side.
const REACH: f64 = 6.0;

/// Residuals outside the table are spread evenly over this many standard deviations beyond each end.
const FLAT: f64 = 8.0;

/// The number of table entries per standard deviation.
const FINE: f64 = 32.0;

/// The noise: the correlation of neighbours, and the log density of the innovations.
pub(super) struct NoiseShape {
    /// The correlation of neighbours.
    pub memory: f64,
    scale: f64,
    /// The number of table entries per unit of a residual.
    entries: f64,
    table: Vec<f64>,
}

impl NoiseShape {
    /// Estimates the noise from residuals in standard deviations.
    ///
    /// `least` is the uncertainty of the residuals in the same unit: a smaller spread is chance or rounding. `memory`
    /// is the correlation of neighbours where it is known; else it is estimated.
    pub(super) fn of(residuals: &[f64], least: f64, memory: Option<f64>) -> NoiseShape {
        let memory = memory.unwrap_or_else(|| correlation(residuals));
        let mut fresh: Vec<f64> =
            residuals.windows(2).map(|pair| pair[1] - carry_over(memory, pair[0])).collect();
        let n = fresh.len();
        let mut order = |rank: usize| *fresh.select_nth_unstable_by(rank, f64::total_cmp).1;
        let spread = (order(3 * n / 4) - order(n / 4)) / 1.349;
        // The uncertainty `least` is independent for each value, so subtracting `memory` times the previous residual
        // adds to it.
        let scale = spread.max(least * (1.0 + memory * memory).sqrt());
        let lacking = (scale * scale - spread * spread).sqrt() / scale;
        let width = (0.9 * (n as f64).powf(-0.2)).hypot(lacking);
        let mut density = density(&fresh, scale, width);
        let weight = PRIOR + SHARE * n as f64;
        for (density, prior) in density.iter_mut().zip(STUDENT.iter()) {
            *density = ((*density + weight * prior) / (n as f64 + weight) / scale).ln();
        }
        NoiseShape { memory, scale, entries: FINE / scale, table: density }
    }

    /// The part of a residual that carries over to the next value.
    pub(super) fn carried_over(&self, residual: f64) -> f64 {
        carry_over(self.memory, residual)
    }

    /// The log density at an innovation: a residual minus what carried over from the previous one.
    pub(super) fn log_density(&self, fresh: f64) -> f64 {
        let last = (self.table.len() - 2) as f64;
        let place = (fresh * self.entries + REACH * FINE).clamp(0.0, last);
        let below = place as usize;
        let part = place - below as f64;
        let [here, next] = [self.table[below], self.table[below + 1]];
        here + (next - here) * part
    }

    /// The log density of the first residual, whose predecessor is not known.
    pub(super) fn first(&self, residual: f64) -> f64 {
        let share = (1.0 - self.memory * self.memory).sqrt();
        self.log_density(residual * share) + share.ln()
    }

    /// The standard error of the mean of `count` correlated residuals.
    pub(super) fn error(&self, count: usize) -> f64 {
        self.scale / (1.0 - self.memory) / (count as f64).sqrt()
    }

    /// The log likelihood of each place `1..n` of one cut in a part of a series, relative to the largest. `left` and
    /// `right` are the residuals of all values about the left and about the right level.
    pub(super) fn places(&self, left: &[f64], right: &[f64]) -> Vec<f64> {
        let n = left.len();
        // Values before the cut lie about the left level, values after it about the right one. The innovation at the
        // cut joins both.
        let under = |side: &[f64], i: usize| self.log_density(side[i] - self.carried_over(side[i - 1]));
        let mut after: f64 = (2..n).map(|i| under(right, i)).sum();
        let mut before = 0.0;
        let mut found = Vec::with_capacity(n);
        for place in 1..n {
            let at = self.log_density(right[place] - self.carried_over(left[place - 1]));
            found.push(before + at + after);
            before += under(left, place);
            if place + 1 < n {
                after -= under(right, place + 1);
            }
        }
        let largest = found.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        found.iter_mut().for_each(|value| *value -= largest);
        found
    }
}

/// The correlation of neighbours, with outliers clamped; 0 where it is within two standard errors of 0.
fn correlation(residuals: &[f64]) -> f64 {
    let inside: Vec<f64> = residuals.iter().map(|r| r.clamp(-OUTLIER, OUTLIER)).collect();
    let products: f64 = inside.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let squares: f64 = inside.iter().map(|r| r * r).sum();
    let found = products / squares.max(1e-12);
    let by_chance = 2.0 / (residuals.len() as f64).sqrt();
    if found > by_chance { found.min(MEMORY * residuals.len() as f64).min(LONGEST) } else { 0.0 }
}

fn carry_over(memory: f64, residual: f64) -> f64 {
    memory * residual.clamp(-OUTLIER, OUTLIER)
}

/// The density of residuals per standard deviation at the entries of the table, smoothed with a Gaussian kernel of this
/// width in standard deviations.
fn density(residuals: &[f64], scale: f64, width: f64) -> Vec<f64> {
    let size = (2.0 * REACH * FINE) as usize + 1;
    let mut counts = vec![0.0; size];
    let mut outside = [0.0, 0.0];
    for residual in residuals {
        let place = ((residual / scale + REACH) * FINE + 0.5).floor();
        if place >= 0.0 && place < size as f64 {
            counts[place as usize] += 1.0;
        } else {
            outside[usize::from(place > 0.0)] += 1.0;
        }
    }
    let width = width * FINE;
    let reach = (3.0 * width).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|i| (-0.5 * (i as f64 / width).powi(2)).exp()).collect();
    let total = (2.0 * kernel.iter().sum::<f64>() - kernel[0]) / FINE;
    let mut density = vec![0.0; size];
    for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        for (i, weight) in kernel.iter().enumerate() {
            let share = count * weight / total;
            if place >= i {
                density[place - i] += share;
            }
            if i > 0 && place + i < size {
                density[place + i] += share;
            }
        }
    }
    // A place outside the table is clamped to its first or last two entries, which therefore hold the density outside.
    density[..2].fill(outside[0] / FLAT);
    density[size - 2..].fill(outside[1] / FLAT);
    density
}

/// The density of Student's distribution with four degrees of freedom at the entries of the table.
static STUDENT: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let density = |z: f64| 0.375 * (1.0 + z * z / 4.0).powf(-2.5);
    (0..=(2.0 * REACH * FINE) as usize).map(|place| density(place as f64 / FINE - REACH)).collect()
});
