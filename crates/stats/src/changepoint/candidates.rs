//! Finds the best piecewise constant through a series, with a price for each cut.
//!
//! Sources: Fearnhead & Rigaill, "Changepoint Detection in the Presence of Outliers" (2019), for the bounded loss,
//! under which a lone outlier is cheaper than a segment of its own; Storath, Weinmann & Unser, "Jump-Penalized Least
//! Absolute Values Estimation" (2017), for the exact solution over a grid of levels, in time proportional to values
//! times levels.

use super::noise_shape::NoiseShape;
use super::scaled_series::Scaled;
use super::stretches::drop_short;
use crate::quantile::{quantile, sorted};

/// A residual beyond this many standard deviations costs no more than one at this distance, since it is an outlier.
const BOUND: f64 = 3.0;

/// The price of a cut in log likelihood is this times ln n. It is low, so that few true cuts are missed; the later test
/// removes the false ones.
const PRICE: f64 = 1.0;

/// The largest number of levels in the grid. Where there are more distinct values, their quantiles are used instead.
const LEVELS: usize = 64;

/// Finds cuts when only the size of the noise is known: the cost is half the squared residuals, each up to a bound.
pub(super) fn rough(series: &Scaled) -> Vec<usize> {
    let loss = |place: usize, level: f64| {
        let residual = series.residual(place, level);
        (residual * residual).min(BOUND * BOUND) / 2.0
    };
    cuts(series, |place, _, level| [loss(place, level); 2])
}

/// Finds the most likely cuts, given the shape and the correlation of the noise.
pub(super) fn likeliest(series: &Scaled, shape: &NoiseShape) -> Vec<usize> {
    cuts(series, |place, from, level| {
        let residual = series.residual(place, level);
        if place == 0 {
            return [-shape.first(residual); 2];
        }
        let jumps = -shape.log_density(residual - shape.carried_over(series.residual(place - 1, from)));
        if shape.memory == 0.0 {
            return [jumps; 2];
        }
        [-shape.log_density(residual - shape.carried_over(series.residual(place - 1, level))), jumps]
    })
}

/// Finds the places at which new segments start, in order, without 0.
///
/// `cost(place, level before, own level)` gives the cost of the value at a place twice: if the level stayed the same,
/// and if the series jumped there from the level before. The sum of these costs and the price of cuts is minimal over
/// all segmentations with levels on the grid, with one approximation: a jump is assumed to come from the level that was
/// the cheapest up to that place.
fn cuts(series: &Scaled, cost: impl Fn(usize, f64, f64) -> [f64; 2]) -> Vec<usize> {
    let n = series.len();
    let price = PRICE * (n as f64).ln();
    let levels = grid(&series.values);
    let mut costs: Vec<f64> = levels.iter().map(|&level| cost(0, level, level)[0]).collect();
    let mut came_from = vec![0_u32; n];
    let mut stayed = vec![true; n * levels.len()];
    for place in 1..n {
        let (best, least) = cheapest(&costs);
        came_from[place] = best as u32;
        let from = levels[best];
        let stays = &mut stayed[place * levels.len()..][..levels.len()];
        for ((sum, &level), stays) in costs.iter_mut().zip(&levels).zip(stays) {
            let [keeps, jumps] = cost(place, from, level);
            let (keeps, jumps) = (*sum + keeps, least + price + jumps);
            *stays = keeps <= jumps;
            *sum = keeps.min(jumps);
        }
    }
    let mut level = cheapest(&costs).0;
    let mut cuts = Vec::new();
    for place in (1..n).rev() {
        if !stayed[place * levels.len() + level] {
            cuts.push(place);
            level = came_from[place] as usize;
        }
    }
    cuts.reverse();
    drop_short(&mut cuts, &series.values);
    cuts
}

fn cheapest(costs: &[f64]) -> (usize, f64) {
    let least = |best: (usize, f64), (i, &cost): (usize, &f64)| if cost < best.1 { (i, cost) } else { best };
    costs.iter().enumerate().fold((0, f64::INFINITY), least)
}

fn grid(values: &[f64]) -> Vec<f64> {
    let mut sorted = sorted(values);
    sorted.dedup();
    if sorted.len() > LEVELS {
        sorted = (0..LEVELS).map(|i| quantile(&sorted, i as f64 / (LEVELS - 1) as f64)).collect();
    }
    sorted
}
