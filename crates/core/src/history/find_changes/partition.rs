//! Finds the cheapest way to cut a row of values into stretches (Jackson et al., "An Algorithm for Optimal Partitioning
//! of Data on an Interval" (2005)).

use scruple_stats::quantile::median;

/// Running sums of the weights, the weighted values and the weighted squares of a row of values.
pub(super) struct RunningSums(Vec<[f64; 3]>);

impl RunningSums {
    pub(super) fn of(values: &[f64], variances: &[f64]) -> RunningSums {
        let mut sums = vec![[0.0; 3]];
        let mut now = [0.0; 3];
        for (value, variance) in values.iter().zip(variances) {
            add(&mut now, weighted(*value, *variance));
            sums.push(now);
        }
        RunningSums(sums)
    }

    pub(super) fn part(&self, from: usize, to: usize) -> [f64; 3] {
        [0, 1, 2].map(|i| self.0[to][i] - self.0[from][i])
    }

    /// The weighted residual sum of squares of the values `from..to` about their mean.
    pub(super) fn cost(&self, from: usize, to: usize) -> f64 {
        cost(self.part(from, to))
    }
}

/// The weight, the weighted value and the weighted square of one value.
pub(super) fn weighted(value: f64, variance: f64) -> [f64; 3] {
    let weight = 1.0 / variance;
    [weight, weight * value, weight * value * value]
}

pub(super) fn add(sums: &mut [f64; 3], more: [f64; 3]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// The weighted residual sum of squares about their mean of values with these sums.
pub(super) fn cost([weight, sum, squares]: [f64; 3]) -> f64 {
    (squares - sum * sum / weight).max(0.0)
}

/// The values relative to their median, since sums of squares of nearly equal large numbers lose precision.
pub(super) fn about_median(values: &[f64]) -> Vec<f64> {
    let centre = median(values);
    values.iter().map(|value| value - centre).collect()
}

/// The cuts of `n` values with the smallest total cost of stretches and cuts, and that cost.
pub(super) fn cheapest(n: usize, price: f64, cost: impl Fn(usize, usize) -> f64) -> (Vec<usize>, f64) {
    let mut best = vec![0.0; n + 1];
    let mut came_from = vec![0; n + 1];
    for to in 1..=n {
        let (mut cheapest, mut source) = (f64::INFINITY, 0);
        for (from, before) in best.iter().enumerate().take(to) {
            let cost = before + cost(from, to) + if from > 0 { price } else { 0.0 };
            if cost < cheapest {
                (cheapest, source) = (cost, from);
            }
        }
        (best[to], came_from[to]) = (cheapest, source);
    }
    let mut cuts = Vec::new();
    let mut place = came_from[n];
    while place > 0 {
        cuts.push(place);
        place = came_from[place];
    }
    cuts.reverse();
    (cuts, best[n])
}
