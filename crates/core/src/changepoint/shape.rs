//! What the noise of a series looks like, and where in view of it a cut most probably is.
//!
//! A step of one standard deviation is blurred over several places if all that is used of the noise is its size. But
//! where noise has an edge, two humps or a memory, single values tell much more. So its density is estimated from the
//! residuals (Silverman, "Density Estimation" (1986), §3.4; mixed with Student's, since residuals are few and tails are
//! seen seldom) after its memory is taken out (an autoregression of order one), and the place is the likeliest one.

use crate::stats::quantile::{quantile, sorted};

/// Student's distribution of four degrees of freedom counts as much as so many residuals.
const PRIOR: f64 = 20.0;

/// The table of the density reaches so many standard deviations to either side.
const REACH: f64 = 8.0;

/// Entries of that table for each standard deviation.
const FINE: f64 = 32.0;

/// Noise: its memory, and the logarithm of the density of what is new in each value.
pub(super) struct Shape {
    /// Correlation of neighbours.
    memory: f64,
    scale: f64,
    table: Vec<f64>,
}

impl Shape {
    /// The noise of residuals in standard deviations; `memory` is the correlation of neighbours.
    pub(super) fn of(residuals: &[f64], memory: f64) -> Shape {
        let fresh: Vec<f64> = residuals.windows(2).map(|pair| pair[1] - memory * pair[0]).collect();
        let sorted = sorted(&fresh);
        let n = sorted.len() as f64;
        let spread = (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / 1.349;
        let scale = if spread > 1e-9 { spread } else { 1.0 };
        let size = (2.0 * REACH * FINE) as usize + 1;
        let middle = REACH * FINE;
        let mut counts = vec![0.0; size];
        for value in &sorted {
            let place = (value / scale * FINE + middle).round();
            if place >= 0.0 && place < size as f64 {
                counts[place as usize] += 1.0;
            }
        }
        let width = 0.9 * n.powf(-0.2) * FINE;
        let reach = (3.0 * width).ceil() as usize;
        let kernel: Vec<f64> = (0..=reach).map(|i| (-0.5 * (i as f64 / width).powi(2)).exp()).collect();
        let total = 2.0 * kernel.iter().sum::<f64>() - kernel[0];
        let mut table = vec![0.0; size];
        for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            for (i, weight) in kernel.iter().enumerate() {
                let share = count * weight / total * FINE;
                if place >= i {
                    table[place - i] += share;
                }
                if i > 0 && place + i < size {
                    table[place + i] += share;
                }
            }
        }
        let known = |(place, density): (usize, &f64)| {
            let z = (place as f64 - middle) / FINE;
            ((density + PRIOR * student(z)) / (n + PRIOR)).ln()
        };
        let table = table.iter().enumerate().map(known).collect();
        Shape { memory, scale, table }
    }

    /// The logarithm of the density at a fresh residual.
    fn log_density(&self, fresh: f64) -> f64 {
        let place = (fresh / self.scale + REACH) * FINE;
        let last = self.table.len() - 1;
        if place > 0.0 && place < last as f64 {
            let (below, part) = (place as usize, place.fract());
            self.table[below] * (1.0 - part) + self.table[below + 1] * part
        } else {
            student(fresh / self.scale).ln()
        }
    }

    /// The log likelihood of each place `1..n` for the cut of a part of a series, of which the residuals under the left
    /// and the right level are given, relative to the largest.
    pub(super) fn places(&self, left: &[f64], right: &[f64]) -> Vec<f64> {
        let n = left.len();
        // Before a place the series is at the left level, after it at the right one; at it, between them.
        let under = |side: &[f64], i: usize| self.log_density(side[i] - self.memory * side[i - 1]);
        let mut after: f64 = (2..n).map(|i| under(right, i)).sum();
        let mut before = 0.0;
        let mut found = Vec::with_capacity(n);
        for place in 1..n {
            let at = self.log_density(right[place] - self.memory * left[place - 1]);
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

/// The density of Student's distribution of four degrees of freedom.
fn student(z: f64) -> f64 {
    0.375 * (1.0 + z * z / 4.0).powf(-2.5)
}
