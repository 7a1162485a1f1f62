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
        let chance = |fit: &Fit| chance(best.likelihood - fit.likelihood, log.len());
        let chances: Vec<f64> = without.iter().map(chance).collect();
        let likely = |a: &&Fit, b: &&Fit| a.likelihood.total_cmp(&b.likelihood);
        match without.iter().max_by(likely) {
            Some(fit) if chance(fit) > error => {
                let cuts = fit.cuts.clone();
                best = Fit::of(log, cuts);
            }
            _ => return (best, chances),
        }
    }
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
