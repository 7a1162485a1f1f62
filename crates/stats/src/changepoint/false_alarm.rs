//! The probability that some cut in noise alone gains as much likelihood as a cut that was found.
//!
//! Twice the gain of a cut at a fixed place is the square of a standard normal variable. The absolute value of that
//! variable, followed over all places, exceeds b if it starts above b or crosses b somewhere:
//!
//! P ≈ 2(1 − Φ(b)) + b φ(b) ∫ ν(b / √(n t(1 − t))) / (t(1 − t)) dt, with ν(x) ≈ exp(−0.583 x)
//!
//! where t is the share of values before the cut. Sources: James, James & Siegmund, "Tests for a change-point" (1987),
//! and Siegmund, "Sequential Analysis" (1985), for ν, which corrects for places that are close together.

use super::stretches::SHORTEST;
use crate::normal;

/// In a series of n values of noise the gain is larger by the factor 1 + SMALL/(n + 1), since the shape of the noise is
/// fitted too (in the manner of Bartlett, "Properties of Sufficiency and Statistical Tests" (1937)). The value was
/// found by simulating noise of 8 to 1000 values.
const SMALL: f64 = 10.0;

/// In series of n values longer than this, the probability is multiplied by n/PLACEABLE: a change must point to a
/// version, and steps so small that only hundreds of values show them cannot be placed.
const PLACEABLE: f64 = 60.0;

/// The number of steps of the numerical integral.
const STEPS: usize = 24;

/// The probability that a series of `n` values of noise has a cut anywhere with this gain in log likelihood; above
/// [`PLACEABLE`] values it is raised in proportion to the length.
pub(super) fn chance(gain: f64, n: usize) -> f64 {
    let count = n as f64;
    let b = (2.0 * gain.max(0.0) / (1.0 + SMALL / (count + 1.0))).sqrt();
    if b < 1.0 {
        return 1.0;
    }
    // In u = ln(t / (1 − t)), du is dt / (t(1 − t)).
    let edge = (count / SHORTEST as f64 - 1.0).ln();
    let width = 2.0 * edge / STEPS as f64;
    let rate = |step: usize| {
        let odds = (width * (step as f64 + 0.5) - edge).exp();
        let spread = odds / (1.0 + odds).powi(2);
        (-0.583 * b / (count * spread).sqrt()).exp() * width
    };
    let density = (-0.5 * b * b).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let crossings = b * density * (0..STEPS).map(rate).sum::<f64>();
    ((2.0 * normal::cdf(-b) + crossings) * (count / PLACEABLE).max(1.0)).min(1.0)
}

/// The gain in log likelihood whose [`chance`] in `n` values is `wanted`.
pub(super) fn gain(wanted: f64, n: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if chance(middle, n) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_in_a_long_series_has_to_be_large_enough_to_be_placed() {
        let more = gain(0.01, 1000) - gain(0.01, 60);
        assert!(more > 2.5, "{more}");
    }
}
