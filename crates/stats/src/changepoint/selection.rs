//! Selects the cuts that are kept.
//!
//! Cuts that follow a drift hide it, and then each of them looks real next to the others. So cuts are not only judged
//! one by one: the weakest cut is removed until none is left, and the noise is fitted again each time. The number of
//! cuts is chosen that has the largest likelihood, minus what that number of cuts gains in noise alone. Without cuts, a
//! strong drift may explain the series at a lower price. The order (weakest first, its neighbours judged again) is that
//! of Fleming et al., "Hunter: Using Change Point Detection to Hunt for Performance Regressions" (2023).

use super::candidates;
use super::chance_order::{share_as_clear, tied_ranks};
use super::false_alarm::{chance, gain};
use super::fit::LevelFit;
use super::noise_shape::OUTLIER;
use super::scaled_series::Scaled;
use super::step_size::correlation_of_neighbours;
use super::stretches::bounds;
use std::ops::Range;

/// A correlation of neighbours above this is a strong drift.
const STRONG: f64 = 0.65;

/// In noise with a strong drift, a cut gains more by this factor times the excess of the correlation over [`STRONG`].
/// Found by simulating autoregressions of 0.7 to 0.9.
const STRICTER: f64 = 4.0;

/// In series of at least this many values, the cuts together are also compared with a strong drift without cuts.
const MANY: usize = 150;

/// The lengths of series in which a drift that cannot be distinguished from none makes cuts less certain.
const FEW: Range<usize> = 30..60;

/// The cuts that are kept.
pub(super) struct SelectedCuts {
    pub fit: LevelFit,
    /// For each cut, the probability that noise alone has such a cut.
    pub chances: Vec<f64>,
}

/// Selects the best fit in which each cut has a probability of at most `error` in noise alone.
pub(super) fn select(series: &Scaled, error: f64) -> SelectedCuts {
    let needed = gain(error, series.len());
    let mut best = best_of_fewer_cuts(series, LevelFit::of(series, candidates::rough(series)), needed);
    let cuts = candidates::likeliest(series, &best.shape);
    if cuts != best.cuts {
        let other = best_of_fewer_cuts(series, LevelFit::of(series, cuts), needed);
        if score(&other, needed) > score(&best, needed) {
            best = other;
        }
    }
    without_chance_cuts(series, best, error)
}

/// Removes the cuts whose probability in noise alone exceeds `error`, the weakest first.
pub(super) fn without_chance_cuts(series: &Scaled, mut best: LevelFit, error: f64) -> SelectedCuts {
    let needed = gain(error, series.len());
    let ranks = tied_ranks(&series.values);
    loop {
        let without: Vec<LevelFit> = (0..best.cuts.len()).map(|i| best.without_cut(series, i)).collect();
        let drift = drifting(best.shape.memory) * uncertain_drift(series, &best);
        let gain = |fit: &LevelFit| (best.likelihood - fit.likelihood) / drift;
        let ends = bounds(&best.cuts, series.len());
        let in_order = |i: usize| {
            let shared =
                |ranks: &Vec<f64>| share_as_clear(&ranks[ends[i]..ends[i + 2]], ends[i + 1] - ends[i], error);
            ranks.as_ref().map_or(0.0, shared)
        };
        let chance = |(i, fit): (usize, &LevelFit)| chance(gain(fit), series.len()).max(in_order(i));
        let chances: Vec<f64> = without.iter().enumerate().map(chance).collect();
        let weaker = |a: &usize, b: &usize| {
            let likelier = without[*a].likelihood.total_cmp(&without[*b].likelihood);
            chances[*a].total_cmp(&chances[*b]).then(likelier)
        };
        match (0..without.len()).max_by(weaker) {
            Some(weakest) if chances[weakest] > error => {
                let cuts = without[weakest].cuts.clone();
                best = LevelFit::of(series, cuts);
            }
            _ if is_more_than_drift(series, &best, needed) => return SelectedCuts { fit: best, chances },
            _ => return SelectedCuts { fit: LevelFit::of(series, Vec::new()), chances: Vec::new() },
        }
    }
}

/// The factor by which the gain of a cut is larger in noise that drifts strongly, since cuts follow the drift.
fn drifting(memory: f64) -> f64 {
    1.0 + STRICTER * (memory - STRONG).max(0.0)
}

/// The factor by which a drift that the noise does not account for may increase the gain of a cut. In few values,
/// correlations of up to two standard errors count as none; where the residuals show more than most independent noise
/// does, the factor grows with the excess. In fewer than 30 values this would hide too many real steps, and in 60 and
/// more a drift of this size is seldom taken for a step. The constants were found by simulation.
fn uncertain_drift(series: &Scaled, best: &LevelFit) -> f64 {
    let n = series.len();
    if !FEW.contains(&n) || series.known.is_some() {
        return 1.0;
    }
    let ends = bounds(&best.cuts, n);
    let parts = ends.windows(2).zip(&best.levels).map(|(pair, level)| {
        let residual = |place: usize| series.residual(place, *level).clamp(-OUTLIER, OUTLIER);
        (pair[0]..pair[1]).map(residual).collect()
    });
    let parts: Vec<Vec<f64>> = parts.collect();
    let excess = correlation_of_neighbours(&parts, 1e-12) - 1.5 / (n as f64).sqrt();
    1.0 + 2.0 * excess.clamp(0.0, 0.8)
}

/// Whether the cuts together gain more likelihood than cuts that only follow a drift would. In short series even true
/// cuts fail this test, so it is not applied.
fn is_more_than_drift(series: &Scaled, fit: &LevelFit, needed: f64) -> bool {
    if series.len() < MANY {
        return true;
    }
    let none = LevelFit::of(series, Vec::new());
    let price = needed * drifting(none.shape.memory) * fit.cuts.len() as f64;
    fit.cuts.is_empty() || fit.likelihood - none.likelihood > price
}

fn score(fit: &LevelFit, needed: f64) -> f64 {
    fit.likelihood - needed * fit.cuts.len() as f64
}

/// The fit with the best score among those that remain while the weakest cut is removed again and again, down to none.
fn best_of_fewer_cuts(series: &Scaled, all: LevelFit, needed: f64) -> LevelFit {
    let mut best = all;
    let mut weaker: Option<LevelFit> = None;
    loop {
        let now = weaker.as_ref().unwrap_or(&best);
        let losses: Vec<f64> = (0..now.cuts.len()).map(|i| now.loss(series, i)).collect();
        let Some(weakest) = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])) else {
            return best;
        };
        let next = now.without_cut(series, weakest);
        if score(&next, needed) > score(&best, needed) {
            (best, weaker) = (next, None);
        } else {
            weaker = Some(next);
        }
    }
}
