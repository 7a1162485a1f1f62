//! How often a random order of the values has a cut as clear as their own order.
//!
//! Where values come in ticks, residuals about a level take two or three values. Their distribution is then fitted much
//! better with a cut than without, so the likelihood gains more in noise than its formula says. In noise every order of
//! the values has the same probability (Pettitt, "A non-parametric approach to the change-point problem" (1979)).

use super::stretches::SHORTEST;
use crate::quantile::sorted;
use crate::rng::Pcg;

/// The seed of the orders that are tried.
const SEED: u64 = 1979;

/// The number of orders that are expected to be as clear as one with the accepted probability.
const EXPECTED: f64 = 20.0;

/// The largest number of orders that are tried.
const MOST: f64 = 40_000.0;

/// In more values than this, the formula for the gain in likelihood holds in ticks too.
const MANY: usize = 100;

/// The centred ranks of the values if at least half of them equal another one, or else `None`.
pub(super) fn tied_ranks(values: &[f64]) -> Option<Vec<f64>> {
    let sorted = sorted(values);
    let mut distinct = sorted.clone();
    distinct.dedup();
    if distinct.len() * 2 > values.len() {
        return None;
    }
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let not_above = sorted.partition_point(|other| other <= value);
        (below + not_above) as f64 - values.len() as f64
    };
    Some(values.iter().map(rank).collect())
}

/// The share of random orders of these ranks in which some cut divides them at least as clearly as the best cut of the
/// order given. There are enough orders to compare the share with `error`. The share is 0 where the values before and
/// after the cut at `cut` are constant: then they show no noise.
pub(super) fn share_as_clear(ranks: &[f64], cut: usize, error: f64) -> f64 {
    let constant = |side: &[f64]| side.windows(2).all(|pair| pair[0] == pair[1]);
    if ranks.len() > MANY || (constant(&ranks[..cut]) && constant(&ranks[cut..])) {
        return 0.0;
    }
    let mean = ranks.iter().sum::<f64>() / ranks.len() as f64;
    let mut order: Vec<f64> = ranks.iter().map(|rank| rank - mean).collect();
    // Rounding must not distinguish orders that are equally clear.
    let seen = clearest(&order) * (1.0 - 1e-9);
    let orders = (EXPECTED / error).min(MOST) as usize;
    let mut pcg = Pcg::new(SEED);
    let mut clear = 0;
    for _ in 0..orders {
        pcg.shuffle(&mut order);
        clear += usize::from(clearest(&order) >= seen);
    }
    clear as f64 / orders as f64
}

/// The largest squared sum of centred values before a cut, in units of its variance in random orders.
fn clearest(values: &[f64]) -> f64 {
    let n = values.len();
    let mut sum = 0.0;
    let mut best: f64 = 0.0;
    for (place, value) in values.iter().enumerate() {
        let before = place + 1;
        sum += value;
        if before >= SHORTEST && n - before >= SHORTEST {
            best = best.max(sum * sum / (before * (n - before)) as f64);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_clear_orders_is_that_of_all_orders() {
        // Two of the 20 orders of three and three divide them completely; in the others, nothing is as clear.
        let complete = tied_ranks(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]).expect("ties");
        let share = share_as_clear(&complete, 2, 0.001);
        assert!((share - 0.1).abs() < 0.01, "{share}");
        assert_eq!(share_as_clear(&complete, 3, 0.001), 0.0);
        let none = tied_ranks(&[1.0, 2.0, 1.0, 1.0, 2.0, 2.0]).expect("ties");
        assert!(share_as_clear(&none, 3, 0.001) > 0.9);
        assert_eq!(tied_ranks(&[1.0, 2.0, 2.0, 3.0]), None);
    }
}
