//! The best piecewise constant through a series, for a price per cut.
//!
//! Sources: Fearnhead & Rigaill, "Changepoint Detection in the Presence of Outliers" (2019), for the bounded loss,
//! under which a lone outlier is cheaper than a segment of its own; Storath, Weinmann & Unser, "Jump-Penalized Least
//! Absolute Values Estimation" (2017), for solving it exactly over a grid of levels in time proportional to values
//! times levels.

use crate::stats::quantile::{quantile, sorted};

/// Stretches shorter than this are not levels.
pub(super) const SHORTEST: usize = 3;

/// Beyond this many standard deviations a value counts as an outlier and costs no more.
pub(super) const BOUND: f64 = 3.0;

/// More levels than this are not tried; they are then the quantiles of the values.
const LEVELS: usize = 300;

/// The cost of a residual given in standard deviations.
pub(super) fn loss(residual: f64) -> f64 {
    (residual * residual).min(BOUND * BOUND)
}

/// Places at which new segments start, in order, without 0.
///
/// `scales` are the standard deviations of the values, one for each. The sum of losses plus `price` for each cut is
/// minimal over all segmentations whose levels are on the grid.
pub(super) fn cuts(values: &[f64], scales: &[f64], price: f64) -> Vec<usize> {
    let levels = grid(values);
    let mut costs = vec![0.0; levels.len()];
    let mut came_from = vec![0_u32; values.len()];
    let mut stayed = vec![true; values.len() * levels.len()];
    for (place, (value, scale)) in values.iter().zip(scales).enumerate() {
        let (best, cheapest) = cheapest(&costs);
        came_from[place] = best as u32;
        let stays = &mut stayed[place * levels.len()..][..levels.len()];
        for ((cost, level), stays) in costs.iter_mut().zip(&levels).zip(stays) {
            *stays = place == 0 || *cost <= cheapest + price;
            let before = if *stays { *cost } else { cheapest + price };
            *cost = before + loss((value - level) / scale);
        }
    }
    let mut level = cheapest(&costs).0;
    let mut cuts = Vec::new();
    for place in (1..values.len()).rev() {
        if !stayed[place * levels.len() + level] {
            cuts.push(place);
            level = came_from[place] as usize;
        }
    }
    cuts.reverse();
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
