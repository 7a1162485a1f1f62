//! Estimates how much the builds of a range differ without a reason in their source.
//!
//! Each build lays out its code differently, which costs or saves a little. Differences of neighbouring versions show
//! how much, if few of them are steps; they do not if most neighbours differ. But the effect of layout is usually
//! small, while steps may have any size. The more values scatter about one level, the stronger is the evidence for
//! noise. So several sizes of the noise are tried, each with its most likely cuts, and the size that makes the range
//! most probable is chosen (MacKay, "Bayesian Interpolation" (1992)). It is limited to the size that the differences of
//! neighbours show.

use super::partition::{RunningSums, about_median, cheapest};
use scruple_stats::quantile::median;

/// The scale of the half-normal prior of the relative standard deviation between builds: 1 % is common, 3 % is rare,
/// and 10 % needs the evidence of many versions.
const USUAL: f64 = 0.012;

/// The scale of the prior of a new level: its distance from the old level, as a logarithm.
const WITHIN: f64 = 0.3;

/// The noise between builds is not estimated from fewer versions.
const FEWEST: usize = 8;

/// The number of versions that are judged together; the time taken grows with its square.
const TOGETHER: usize = 100;

/// The shares of neighbours with a step between them that are tried.
const SHARES: [f64; 4] = [0.02, 0.1, 0.3, 0.6];

/// The variance between versions beyond what their readings explain; 0 where it cannot be estimated.
/// `same_binary_variance` is the variance between visits of the same artefacts.
pub(super) fn extra(values: &[f64], variances: &[f64], same_binary_variance: f64) -> f64 {
    if values.len() < FEWEST {
        return 0.0;
    }
    // The estimate is at most the noise that neighbours show, so nothing is tried if they show none.
    let most = of_neighbours(values, variances);
    if most == 0.0 {
        return 0.0;
    }
    let sizes = (0..12).map(|i| 0.001 * 1.8_f64.powi(i));
    let variance = std::iter::once(0.0).chain(sizes).map(|size| size * size);
    let tried = variance.map(|extra| (extra, improbable(values, variances, same_binary_variance, extra)));
    let believed = tried.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |best| best.0);
    believed.min(most)
}

/// The variance between versions from the median difference of neighbours, which is too large where half of these are
/// steps.
fn of_neighbours(values: &[f64], variances: &[f64]) -> f64 {
    let apart: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let seen = (1.4826 * median(&apart)).powi(2) / 2.0;
    (seen - median(variances)).max(0.0)
}

/// Minus twice the log probability of the range if builds differ with the variance `extra`.
fn improbable(values: &[f64], variances: &[f64], same_binary_variance: f64, extra: f64) -> f64 {
    let parts = values.chunks(TOGETHER).zip(variances.chunks(TOGETHER));
    let parts = parts.map(|(values, variances)| improbable_part(values, variances, extra));
    let all = parts.fold([0.0; SHARES.len()], |sum, part| std::array::from_fn(|i| sum[i] + part[i]));
    all.into_iter().fold(f64::INFINITY, f64::min) + extra / (USUAL * USUAL + same_binary_variance)
}

/// The contribution of one part of the range to [`improbable`], for each share of neighbours with a step.
fn improbable_part(values: &[f64], variances: &[f64], extra: f64) -> [f64; SHARES.len()] {
    let variances: Vec<f64> = variances.iter().map(|variance| variance + extra).collect();
    let sums = RunningSums::of(&about_median(values), &variances);
    // The level of a stretch has a wide prior, so a precisely known level is penalised.
    let cost =
        |from: usize, to: usize| sums.cost(from, to) + (WITHIN * WITHIN * sums.part(from, to)[0]).ln_1p();
    // The cost of a stretch does not depend on the share, so it is computed once.
    let n = values.len();
    let mut costs = vec![0.0; n * (n + 1)];
    for to in 1..=n {
        for from in 0..to {
            costs[from * (n + 1) + to] = cost(from, to);
        }
    }
    let scatter = variances.iter().map(|variance| variance.ln()).sum::<f64>();
    SHARES.map(|share| {
        let uncut = -2.0 * (1.0 - share).ln();
        let cuts = cheapest(n, -2.0 * share.ln() - uncut, |from, to| costs[from * (n + 1) + to]).1;
        cuts + scatter + uncut * (n - 1) as f64
    })
}
