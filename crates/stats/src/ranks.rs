//! Shifts estimated from ranks: robust against the large readings of a busy machine, and nearly as precise as means.
//!
//! Sources: Hodges & Lehmann, "Estimates of Location Based on Rank Tests" (1963); Hollander, Wolfe & Chicken,
//! "Nonparametric Statistical Methods" (2014), §3.1-3.3 and §4.1-4.3, for the intervals obtained by inverting the
//! Wilcoxon signed-rank and Mann-Whitney tests. The intervals are closed, so ties make them cover more often.

use super::Interval;
use super::median_interval::tail_of;
use super::normal;
use super::pair_order_statistics::{Differences, Walsh, kth};
use super::quantile::sorted;

/// Up to this many readings (per arm on average) the exact null distribution is used. Beyond, the normal approximation
/// with continuity correction is used, whose level is wrong by less than 0.001.
pub const EXACT_UP_TO: usize = 50;

/// An estimated shift with its interval, in the unit of the readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The Hodges-Lehmann estimate.
    pub estimate: f64,
    /// The interval, from inverting the test.
    pub interval: Interval,
}

/// The Hodges-Lehmann estimate: the median of the Walsh averages (dᵢ + dⱼ)/2, i ≤ j; NaN when there are no differences.
///
/// It is exact for any number of differences: order statistics of the n(n+1)/2 averages are found by counting, in about
/// 64 passes over the sorted differences, without listing the averages.
pub fn hodges_lehmann(differences: &[f64]) -> f64 {
    centre(&Walsh::new(sorted(differences)))
}

/// The interval of the centre of symmetry of `differences`, by inverting the signed-rank test.
///
/// `None` when there are too few differences for `level` or one is not finite. The level is exact for continuous
/// differences, if there are at most [`EXACT_UP_TO`].
pub fn signed_rank_interval(differences: &[f64], level: f64) -> Option<Interval> {
    if differences.is_empty() || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let n = differences.len();
    let (rank, achieved) = if n <= EXACT_UP_TO {
        exact_rank(&signed_rank_distribution(n), level)?
    } else {
        let n = n as f64;
        approximate_rank(n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0, level)?
    };
    Some(between(&Walsh::new(sorted(differences)), rank, achieved))
}

/// The shift from `reference` to `arm`, two samples that were not taken in pairs.
///
/// The estimate is the median of all differences arm − reference; its interval inverts the Mann-Whitney test. `None` as
/// for [`signed_rank_interval`].
pub fn mann_whitney(reference: &[f64], arm: &[f64], level: f64) -> Option<Shift> {
    let finite = |readings: &[f64]| !readings.is_empty() && readings.iter().all(|r| r.is_finite());
    if !finite(reference) || !finite(arm) {
        return None;
    }
    let (m, n) = (reference.len(), arm.len());
    let (rank, achieved) = if m + n <= 2 * EXACT_UP_TO {
        exact_rank(&mann_whitney_distribution(m, n), level)?
    } else {
        let (m, n) = (m as f64, n as f64);
        approximate_rank(m * n / 2.0, m * n * (m + n + 1.0) / 12.0, level)?
    };
    let differences = Differences::new(sorted(reference), sorted(arm));
    Some(Shift { estimate: centre(&differences), interval: between(&differences, rank, achieved) })
}

/// The Mann-Whitney statistic U: the number of pairs in which the arm is above the reference; ties count one half.
pub fn mann_whitney_u(reference: &[f64], arm: &[f64]) -> f64 {
    let reference = sorted(reference);
    let pairs = |y: &f64| {
        let below = reference.partition_point(|x| x < y);
        let up_to = reference.partition_point(|x| x <= y);
        (below + up_to) as f64 / 2.0
    };
    arm.iter().map(pairs).sum()
}

/// The distribution P(T = t) of the signed-rank statistic of `n` differences without an effect, for t from 0 to
/// n(n+1)/2.
pub fn signed_rank_distribution(n: usize) -> Vec<f64> {
    let mut chances = vec![0.0; n * (n + 1) / 2 + 1];
    chances[0] = 1.0;
    let mut reached = 0;
    for rank in 1..=n {
        reached += rank;
        for t in (0..=reached).rev() {
            let with = if t >= rank { chances[t - rank] } else { 0.0 };
            chances[t] = (chances[t] + with) / 2.0;
        }
    }
    chances
}

/// The distribution P(U = u) of the Mann-Whitney statistic of samples of `m` and `n` without a shift, for u from 0 to
/// m·n.
///
/// The counts are the coefficients of the Gaussian binomial of m + n over m. They are computed in whole numbers, for
/// which 128 bits suffice as long as m + n is at most twice [`EXACT_UP_TO`]; callers must not exceed that.
fn mann_whitney_distribution(m: usize, n: usize) -> Vec<f64> {
    let mut counts = vec![0_i128; m * n + 1];
    counts[0] = 1;
    for i in 1..=m {
        for u in (n + i..counts.len()).rev() {
            counts[u] = counts[u].wrapping_sub(counts[u - n - i]);
        }
        for u in i..counts.len() {
            counts[u] = counts[u].wrapping_add(counts[u - i]);
        }
    }
    let total: f64 = counts.iter().map(|&c| c as f64).sum();
    counts.iter().map(|&c| c as f64 / total).collect()
}

/// The rank, counted from either end, that leaves at most half the error outside, and the level that it achieves.
fn exact_rank(chances: &[f64], level: f64) -> Option<(u64, f64)> {
    let tail = tail_of(level);
    let (mut rank, mut outside) = (0, 0.0);
    for chance in chances {
        if outside + chance > tail {
            break;
        }
        outside += chance;
        rank += 1;
    }
    (rank > 0 && level > 0.0).then_some((rank, 1.0 - 2.0 * outside))
}

fn approximate_rank(mean: f64, variance: f64, level: f64) -> Option<(u64, f64)> {
    let sd = variance.sqrt();
    let last = (mean + normal::quantile(tail_of(level)) * sd - 0.5).floor();
    (last >= 0.0 && level > 0.0).then(|| (last as u64 + 1, 1.0 - 2.0 * normal::cdf((last + 0.5 - mean) / sd)))
}

fn centre(values: &impl super::pair_order_statistics::Multiset) -> f64 {
    let total = values.total();
    if total == 0 {
        return f64::NAN;
    }
    let (low, high) = (kth(values, total.div_ceil(2)), kth(values, total / 2 + 1));
    if low == high { low } else { low + (high - low) / 2.0 }
}

fn between(values: &impl super::pair_order_statistics::Multiset, rank: u64, level: f64) -> Interval {
    Interval { low: kth(values, rank), high: kth(values, values.total() + 1 - rank), level }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approximation_takes_over_where_it_is_as_good_as_exact() {
        for n in EXACT_UP_TO + 1..=100 {
            let chances = signed_rank_distribution(n);
            let mean = (n * (n + 1)) as f64 / 4.0;
            let variance = mean * (2 * n + 1) as f64 / 6.0;
            for level in [0.9, 0.95, 0.99] {
                let (rank, stated) = approximate_rank(mean, variance, level).expect("n is large");
                let outside: f64 = chances[..rank as usize].iter().sum();
                assert!((stated - (1.0 - 2.0 * outside)).abs() < 0.001, "{n} at {level}");
                assert!(1.0 - 2.0 * outside > level - 0.001, "{n} at {level}: {outside}");
            }
        }
    }
}
