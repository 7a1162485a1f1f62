//! The smallest noise of a series whose values come in steps, such as ticks of a clock.

use crate::quantile::sorted;
use crate::sorting;

/// Returns the smallest difference between distinct values that may be noise; 0 if there is none. Where most values are
/// equal, differences of neighbours show no noise, and this step bounds it. A step is not noise if its two sides follow
/// each other in fewer runs than noise would leave with a probability of `error`: it is then a change of the level.
pub(super) fn least_step(values: &[f64], error: f64) -> f64 {
    let mut distinct = sorted(values);
    distinct.dedup();
    let mut pairs: Vec<[f64; 2]> = distinct.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    sorting::by(&mut pairs, |one, other| (one[1] - one[0]).total_cmp(&(other[1] - other[0])));
    let few = distinct.len() * 2 <= values.len();
    let may_be_noise = |[low, _]: &&[f64; 2]| {
        let above: Vec<bool> = values.iter().map(|value| value > low).collect();
        !few || probability_of_runs(&above) >= error
    };
    pairs.iter().find(may_be_noise).map_or(0.0, |[low, high]| high - low)
}

/// Returns the probability that so few runs, or fewer, occur where the order is random (Wald & Wolfowitz, "On a test
/// whether two samples are from the same population" (1940)).
fn probability_of_runs(above: &[bool]) -> f64 {
    let n = above.len();
    let ones = above.iter().filter(|above| **above).count();
    let zeros = n - ones;
    let runs = 1 + above.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if ones == 0 || zeros == 0 || (runs * n) as f64 >= (n + 2 * ones * zeros) as f64 {
        return 1.0;
    }
    let mut factorials = vec![0.0; n + 1];
    for i in 1..=n {
        factorials[i] = factorials[i - 1] + (i as f64).ln();
    }
    // The logarithm of the number of ways to divide `count` values into `parts`.
    let ways = |count: usize, parts: usize| match (1..=count).contains(&parts) {
        true => factorials[count - 1] - factorials[parts - 1] - factorials[count - parts],
        false => f64::NEG_INFINITY,
    };
    let all = factorials[n] - factorials[ones] - factorials[zeros];
    let of = |left: usize, right: usize| (ways(ones, left) + ways(zeros, right) - all).exp();
    let exactly = |runs: usize| of(runs / 2, runs - runs / 2) + of(runs - runs / 2, runs / 2);
    (2..=runs).map(exactly).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(parts: &[(f64, usize)]) -> Vec<f64> {
        parts.iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count)).collect()
    }

    #[test]
    fn the_probability_of_runs_is_that_of_all_orders() {
        // All orders of four ones and five zeros.
        let orders: Vec<Vec<bool>> = (0..512_u32)
            .filter(|bits| bits.count_ones() == 4)
            .map(|bits| (0..9).map(|bit| bits >> bit & 1 == 1).collect())
            .collect();
        let runs = |order: &[bool]| 1 + order.windows(2).filter(|pair| pair[0] != pair[1]).count();
        for order in &orders {
            let fewer = orders.iter().filter(|other| runs(other) <= runs(order)).count();
            let expected = fewer as f64 / orders.len() as f64;
            let found = probability_of_runs(order);
            // Orders with the mean number of runs, or more, are not distinguished.
            assert!(
                (found - expected).abs() < 1e-12 || (found == 1.0 && expected > 0.4),
                "{order:?} {found}"
            );
        }
    }

    #[test]
    fn a_change_of_the_level_is_no_noise() {
        assert_eq!(least_step(&series(&[(10.0, 8), (20.0, 6)]), 0.01), 0.0);
        assert_eq!(least_step(&series(&[(10.0, 8), (20.0, 6), (10.0, 1)]), 0.01), 0.0);
        let ticks = [10.0, 10.0, 20.0, 10.0, 10.0, 10.0, 20.0, 20.0, 10.0, 20.0, 10.0, 10.0];
        assert_eq!(least_step(&ticks, 0.01), 10.0);
        // Ticks at two levels, of which the lower one ends for good.
        let levels: Vec<f64> = ticks.iter().copied().chain(ticks.iter().map(|tick| tick + 95.0)).collect();
        assert_eq!(least_step(&levels, 0.01), 10.0);
        assert_eq!(least_step(&[5.0; 9], 0.01), 0.0);
    }
}
