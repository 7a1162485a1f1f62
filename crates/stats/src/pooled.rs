//! Quantiles, shares and means of requests that are correlated in time, with their intervals.
//!
//! The requests of a stall are slow together, so a thousand of them carry no more information than one. The interval of
//! a quantile is that of Woodruff ("Confidence intervals for medians and other position measures", 1952): it contains
//! every value whose share of slower requests is compatible with the requested share. The variance of that share is
//! estimated between blocks of time, including the correlation of neighbouring blocks for as long as it is positive
//! (Geyer 1992). It is never less than the variance for independent requests.

use super::normal;
use crate::sorting;

/// A figure of all requests together, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// The figure.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval; absent where there are too few requests for one.
    pub high: Option<f64>,
    /// The figure without the delays of the generator; equal to the figure where there are none.
    pub least: f64,
}

/// Requests in blocks of time, in order of their values.
#[derive(Clone, Debug)]
pub struct RequestBlocks {
    /// The number of requests of each block.
    sizes: Vec<f64>,
    /// Values, their blocks and their counts, in increasing order.
    steps: Vec<(u64, usize, f64)>,
}

impl RequestBlocks {
    /// Each block is an increasing list of values with their counts.
    pub fn of(blocks: &[&[(u64, u64)]]) -> RequestBlocks {
        let size = |block: &&[(u64, u64)]| block.iter().map(|(_, count)| *count as f64).sum();
        let mut steps: Vec<(u64, usize, f64)> = Vec::new();
        for (block, values) in blocks.iter().enumerate() {
            steps.extend(values.iter().map(|(value, count)| (*value, block, *count as f64)));
        }
        // A stable sort merges the blocks, which are in order already.
        sorting::by_key(&mut steps, |(value, ..)| *value);
        RequestBlocks { sizes: blocks.iter().map(size).collect(), steps }
    }

    /// The quantile `q`. `None` where there are no requests, or fewer than four blocks.
    pub fn quantile(&self, q: f64, level: f64) -> Option<Pooled> {
        let RequestBlocks { sizes, steps } = self;
        let all: f64 = sizes.iter().sum();
        if all == 0.0 || sizes.len() < 4 {
            return None;
        }
        let t = normal::student(level, (sizes.len() - 1) as f64);
        let wanted = 1.0 - q;
        let mut above = sizes.clone();
        let mut squares = Squares::of(sizes);
        let (mut value, mut low, mut high) = (None, None, None);
        for same in steps.chunk_by(|left, right| left.0 == right.0) {
            for (_, block, count) in same {
                squares.take(above[*block], *count, sizes[*block]);
                above[*block] -= count;
            }
            let at = same[0].0 as f64;
            let count: f64 = above.iter().sum();
            let share = count / all;
            let smooth = (count + 2.0) / (all + 4.0);
            let alone = smooth * (1.0 - smooth) / all;
            let half = |variance: f64| t * variance.max(alone).sqrt();
            // Bounds of the variance decide most values.
            if share - half(squares.most(share, all, sizes.len())) > wanted {
                continue;
            }
            let is_low = share <= wanted || low.is_some();
            let is_no_high = smooth.max(share) + half(0.0) >= wanted;
            let half = match is_low && is_no_high {
                true => half(0.0),
                false => half(variance(&above, sizes, share)),
            };
            // The small allowance keeps rounding errors from shifting a quantile up by one value.
            if value.is_none() && share <= wanted + 1e-9 {
                value = Some(at);
            }
            if low.is_none() && share - half <= wanted {
                low = Some(at);
            }
            if smooth.max(share) + half < wanted {
                high = Some(at);
                break;
            }
        }
        let value = value.or(steps.last().map(|(value, ..)| *value as f64))?;
        let high = high.map(|high| high.max(value));
        Some(Pooled { value, low: low.unwrap_or(value).min(value), high, least: value })
    }
}

/// The share of requests that failed. Each block has its number of failures and of requests. Where no request failed,
/// the share is exactly 0, with no uncertainty.
pub fn share(blocks: &[(u64, u64)], level: f64) -> Option<Pooled> {
    let failed: Vec<f64> = blocks.iter().map(|(failed, _)| *failed as f64).collect();
    let sizes: Vec<f64> = blocks.iter().map(|(_, all)| *all as f64).collect();
    let (count, all) = (failed.iter().sum::<f64>(), sizes.iter().sum::<f64>());
    if all == 0.0 || blocks.len() < 4 {
        return None;
    }
    let share = count / all;
    if count == 0.0 {
        return Some(Pooled { value: 0.0, low: 0.0, high: Some(0.0), least: 0.0 });
    }
    let alone = share * (1.0 - share) / all;
    let t = normal::student(level, (blocks.len() - 1) as f64);
    let half = t * variance(&failed, &sizes, share).max(alone).sqrt();
    let (low, high) = ((share - half).max(0.0), Some((share + half).min(1.0)));
    Some(Pooled { value: share, low, high, least: share })
}

/// The mean of requests in blocks of time. Each block has the sum of its values and their count.
pub fn mean(blocks: &[(f64, u64)], level: f64) -> Option<Pooled> {
    let sums: Vec<f64> = blocks.iter().map(|(sum, _)| *sum).collect();
    let sizes: Vec<f64> = blocks.iter().map(|(_, count)| *count as f64).collect();
    let all: f64 = sizes.iter().sum();
    if all == 0.0 || blocks.len() < 4 {
        return None;
    }
    let mean = sums.iter().sum::<f64>() / all;
    let half = normal::student(level, (blocks.len() - 1) as f64) * variance(&sums, &sizes, mean).sqrt();
    Some(Pooled { value: mean, low: mean - half, high: Some(mean + half), least: mean })
}

/// Sums of squares and products of the counts above a value and the sizes of the blocks.
struct Squares {
    counts: f64,
    both: f64,
    sizes: f64,
}

impl Squares {
    /// The sums where all requests are above the value.
    fn of(sizes: &[f64]) -> Squares {
        let sum = sizes.iter().map(|size| size * size).sum();
        Squares { counts: sum, both: sum, sizes: sum }
    }

    /// Takes requests of a block of this size from the `count` that were above the value.
    fn take(&mut self, count: f64, taken: f64, size: f64) {
        self.counts -= taken * (2.0 * count - taken);
        self.both -= taken * size;
    }

    /// The most that [`variance`] can be: no product of distant blocks is larger than that of blocks with themselves.
    fn most(&self, share: f64, all: f64, blocks: usize) -> f64 {
        let n = blocks as f64;
        let own = self.counts - 2.0 * share * self.both + share * share * self.sizes;
        // The sums are of whole numbers; the allowance is for what the products round.
        let own = own.max(0.0) + 1e-9 * self.sizes;
        own * n / (all * all) * n / (n - 1.0)
    }
}

/// The variance of a share or a mean, as a ratio of sums over blocks.
fn variance(counts: &[f64], sizes: &[f64], share: f64) -> f64 {
    let off: Vec<f64> = counts.iter().zip(sizes).map(|(count, size)| count - share * size).collect();
    let product = |lag: usize| off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>();
    let mut sum = product(0);
    for lag in 1..off.len() / 2 {
        let more = product(lag);
        if more <= 0.0 {
            break;
        }
        sum += 2.0 * more;
    }
    let (all, n) = (sizes.iter().sum::<f64>(), off.len() as f64);
    sum / (all * all) * n / (n - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pcg;

    fn of(blocks: &[Vec<(u64, u64)>], q: f64) -> Option<Pooled> {
        let blocks: Vec<&[(u64, u64)]> = blocks.iter().map(Vec::as_slice).collect();
        RequestBlocks::of(&blocks).quantile(q, 0.95)
    }

    #[test]
    fn the_interval_covers_the_quantile_of_independent_requests() {
        let mut covered = 0;
        for seed in 0..400 {
            let mut random = Pcg::new(seed);
            let blocks: Vec<Vec<(u64, u64)>> = (0..40)
                .map(|_| {
                    let mut block: Vec<(u64, u64)> =
                        (0..100).map(|_| ((-(1.0 - random.unit()).ln() * 1e6) as u64, 1)).collect();
                    block.sort_unstable();
                    block
                })
                .collect();
            let found = of(&blocks, 0.99).expect("many");
            let truth = 100_f64.ln() * 1e6;
            covered += u32::from(found.low <= truth && found.high.is_some_and(|high| truth <= high));
        }
        assert!(covered >= 376, "{covered} of 400");
    }

    /// The lower and the upper end of a quantile's interval, with the variance computed at every value.
    fn ends(blocks: &[Vec<(u64, u64)>], q: f64) -> (Option<f64>, Option<f64>) {
        let count = |block: &Vec<(u64, u64)>, beyond: Option<u64>| {
            let beyond = block.iter().filter(|(value, _)| beyond.is_none_or(|beyond| *value > beyond));
            beyond.map(|(_, count)| *count as f64).sum::<f64>()
        };
        let sizes: Vec<f64> = blocks.iter().map(|block| count(block, None)).collect();
        let all: f64 = sizes.iter().sum();
        let values: std::collections::BTreeSet<u64> =
            blocks.iter().flatten().map(|(value, _)| *value).collect();
        let t = normal::student(0.95, (blocks.len() - 1) as f64);
        let (mut low, mut high) = (None, None);
        for value in values {
            let above: Vec<f64> = blocks.iter().map(|block| count(block, Some(value))).collect();
            let beyond: f64 = above.iter().sum();
            let (share, smooth) = (beyond / all, (beyond + 2.0) / (all + 4.0));
            let half = t * variance(&above, &sizes, share).max(smooth * (1.0 - smooth) / all).sqrt();
            if share - half <= 1.0 - q {
                low = low.or(Some(value as f64));
            }
            if smooth.max(share) + half < 1.0 - q {
                high = high.or(Some(value as f64));
            }
        }
        (low, high)
    }

    #[test]
    fn bounds_of_the_variance_change_no_interval() {
        for seed in 0..60 {
            let mut random = Pcg::new(seed);
            let block = |at: u64| {
                let slow = if seed % 3 > 0 && at % 7 < seed % 5 { 8.0 } else { 1.0 };
                let size = 5 + (random.unit() * 60.0) as u64;
                let mut block: Vec<(u64, u64)> = (0..size)
                    .map(|_| ((random.unit() * slow * 400.0) as u64, 1 + (random.unit() * 3.0) as u64))
                    .collect();
                block.sort_unstable();
                block
            };
            let blocks: Vec<Vec<(u64, u64)>> = (0..8 + seed).map(block).collect();
            for q in [0.5, 0.9, 0.99, 0.999] {
                let found = of(&blocks, q).expect("many");
                let (low, high) = ends(&blocks, q);
                let low = low.unwrap_or(found.value).min(found.value);
                let high = high.map(|high| high.max(found.value));
                assert_eq!((found.low, found.high), (low, high), "{seed} {q}");
            }
        }
    }

    #[test]
    fn one_stall_leaves_no_upper_bound_below_itself() {
        // A second of five in which everything waits.
        let block = |at: u64| match (16..24).contains(&at) {
            true => {
                (0..125).map(|i| (1_000_000_000 - (at - 16) * 125_000_000 - i * 1_000_000, 1)).rev().collect()
            }
            false => vec![(100_000, 125)],
        };
        let blocks: Vec<Vec<(u64, u64)>> = (0..40).map(block).collect();
        let found = of(&blocks, 0.99).expect("many");
        assert!((found.value / 0.95e9 - 1.0).abs() < 0.01, "{found:?}");
        assert!(found.high.is_none_or(|high| high >= 0.95e9), "{found:?}");
    }

    #[test]
    fn few_requests_have_no_upper_bound_and_no_failures_are_known() {
        let blocks: Vec<Vec<(u64, u64)>> = (0..10).map(|i| vec![(100 + i, 10)]).collect();
        assert_eq!(of(&blocks, 0.99).map(|found| found.high), Some(None));
        assert!(of(&blocks, 0.5).is_some_and(|found| found.high.is_some()));
        assert_eq!(of(&blocks[..3], 0.5), None);
        assert_eq!(share(&[(0, 10); 4], 0.95).and_then(|found| found.high), Some(0.0));
        let found = share(&[(50, 100), (0, 100), (0, 100), (0, 100)], 0.95).expect("some");
        assert!(found.low == 0.0 && found.high.is_some_and(|high| high > 0.3), "{found:?}");
    }
}
