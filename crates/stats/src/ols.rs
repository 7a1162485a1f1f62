//! Fits a straight line through batches: the cost per iteration is the slope, the fixed cost is the intercept.
//!
//! Source: ordinary least squares; intervals by the BCa bootstrap over batches, as in the criterion library. The line
//! is a diagnostic and not the headline, since the largest batches have the most leverage and are disturbed most often.

use serde::Serialize;

use super::bootstrap::{self, BootstrapEstimate, index};
use super::rng::Pcg;

/// A fitted line y = intercept + slope·x.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FittedLine {
    /// The value of y at x = 0, in the unit of y.
    pub intercept: f64,
    /// The change of y when x grows by 1.
    pub slope: f64,
    /// The share of the variance of y that the line explains; 1 when y does not vary.
    pub r_squared: f64,
}

/// A fitted line with an interval for each of its figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// The value of y at x = 0, in the unit of y.
    pub intercept: BootstrapEstimate,
    /// The change of y when x grows by 1.
    pub slope: BootstrapEstimate,
    /// The share of the variance of y that the line explains.
    pub r_squared: BootstrapEstimate,
}

/// Fits a line by least squares.
///
/// `None` when the lengths differ, when there are fewer than two distinct values of x, or when a number is not finite.
pub fn fit(x: &[f64], y: &[f64]) -> Option<FittedLine> {
    if x.len() != y.len() {
        return None;
    }
    fit_pairs(x.iter().copied().zip(y.iter().copied()))
}

fn fit_pairs(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Option<FittedLine> {
    let n = pairs.clone().count() as f64;
    let (sum_x, sum_y) = pairs.clone().fold((0.0, 0.0), |(sx, sy), (x, y)| (sx + x, sy + y));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (dx, dy) = (x - mean_x, y - mean_y);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    let slope = xy / xx;
    let r_squared = if yy == 0.0 { 1.0 } else { (xy * xy / (xx * yy)).min(1.0) };
    let line = FittedLine { intercept: mean_y - slope * mean_x, slope, r_squared };
    (xx > 0.0 && slope.is_finite() && line.intercept.is_finite() && r_squared.is_finite()).then_some(line)
}

/// Fits a line, with BCa intervals of slope, intercept and R² from resampled batches.
///
/// A replicate in which all x are equal has no line and is drawn again. `None` as for [`fit`], for fewer than three
/// batches, and when leaving one batch out leaves a single value of x.
pub fn panel(x: &[f64], y: &[f64], level: f64, replicates: usize, seed: u64) -> Option<Panel> {
    let line = fit(x, y)?;
    let n = x.len();
    let drawn: Vec<FittedLine> = (0..replicates as u64)
        .filter_map(|number| redraw(x, y, &mut Pcg::with_stream(seed, number)))
        .collect();
    let without = |left: usize| fit_pairs((0..n).filter(move |&i| i != left).map(|i| (x[i], y[i])));
    let left_out: Vec<FittedLine> = (0..n).map(without).collect::<Option<_>>()?;
    let interval = |figure: fn(&FittedLine) -> f64| {
        let of = |lines: &[FittedLine]| lines.iter().map(figure).collect::<Vec<f64>>();
        bootstrap::bca_of(figure(&line), &of(&drawn), &of(&left_out), level)
    };
    Some(Panel {
        intercept: interval(|line| line.intercept)?,
        slope: interval(|line| line.slope)?,
        r_squared: interval(|line| line.r_squared)?,
    })
}

fn redraw(x: &[f64], y: &[f64], pcg: &mut Pcg) -> Option<FittedLine> {
    // With three batches, one draw in nine has a single x, so a hundred failures in a row do not happen.
    (0..100).find_map(|_| {
        let places: Vec<usize> = (0..x.len()).map(|_| index(pcg, x.len())).collect();
        fit_pairs(places.iter().map(|&i| (x[i], y[i])))
    })
}
