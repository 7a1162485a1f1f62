//! The cuts that stand.
//!
//! Cuts that follow a drift hide it, and each of them then looks real beside the others. So cuts are not only judged
//! one by one: the weakest is taken back until none is left, the noise is fitted anew each time, and that number of cuts
//! wins whose likelihood, less what noise alone would gain by as many, is largest. With none of them a strong drift may
//! be seen that explains the series at a lower price. The order (weakest first, its neighbours judged anew) is that of
//! Fleming et al., "Hunter: Using Change Point Detection to Hunt for Performance Regressions" (2023).

use super::chance::{chance, gain};
use super::fit::Fit;
use super::log::Log;
use super::segment;

/// Correlations of neighbours above this are a strong drift…
const STRONG: f64 = 0.65;

/// …of which noise gains more by so many times what it is above. Found by trying autoregressions of 0.7 to 0.9.
const STRICTER: f64 = 4.0;

/// In so many values cuts are also held against no cuts in a strong drift.
const MANY: usize = 150;

/// The best fit of which each cut is less probable in noise alone than `error`, and these probabilities.
pub(super) fn search(log: &Log, error: f64) -> (Fit, Vec<f64>) {
    let needed = gain(error, log.len());
    let mut best = fewer(log, Fit::of(log, segment::rough(log)), needed);
    let cuts = segment::likeliest(log, &best.shape);
    if cuts != best.cuts {
        let other = fewer(log, Fit::of(log, cuts), needed);
        if score(&other, needed) > score(&best, needed) {
            best = other;
        }
    }
    loop {
        let without: Vec<Fit> = (0..best.cuts.len()).map(|i| best.without(log, i)).collect();
        let gain = |fit: &Fit| (best.likelihood - fit.likelihood) / drifting(best.shape.memory);
        let chance = |fit: &Fit| chance(gain(fit), log.len());
        let chances: Vec<f64> = without.iter().map(chance).collect();
        let likely = |a: &&Fit, b: &&Fit| a.likelihood.total_cmp(&b.likelihood);
        match without.iter().max_by(likely) {
            Some(fit) if chance(fit) > error => {
                let cuts = fit.cuts.clone();
                best = Fit::of(log, cuts);
            }
            _ if stands(log, &best, needed) => return (best, chances),
            _ => return (Fit::of(log, Vec::new()), Vec::new()),
        }
    }
}

/// How many times more noise gains that drifts strongly: cuts follow it.
fn drifting(memory: f64) -> f64 {
    1.0 + STRICTER * (memory - STRONG).max(0.0)
}

/// Whether cuts gain more together than following a drift would; in few values true ones do not either.
fn stands(log: &Log, fit: &Fit, needed: f64) -> bool {
    if log.len() < MANY {
        return true;
    }
    let none = Fit::of(log, Vec::new());
    let price = needed * drifting(none.shape.memory) * fit.cuts.len() as f64;
    fit.cuts.is_empty() || fit.likelihood - none.likelihood > price
}

fn score(fit: &Fit, needed: f64) -> f64 {
    fit.likelihood - needed * fit.cuts.len() as f64
}

/// The best fit with some of the cuts, or none.
fn fewer(log: &Log, all: Fit, needed: f64) -> Fit {
    let mut best = all;
    let mut weaker: Option<Fit> = None;
    loop {
        let now = weaker.as_ref().unwrap_or(&best);
        let losses: Vec<f64> = (0..now.cuts.len()).map(|i| now.loss(log, i)).collect();
        let Some(weakest) = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])) else {
            return best;
        };
        let next = now.without(log, weakest);
        if score(&next, needed) > score(&best, needed) {
            (best, weaker) = (next, None);
        } else {
            weaker = Some(next);
        }
    }
}
