//! Counts of latencies while a load runs: recorded in a few nanoseconds, and read out only where there are any.

use super::latencies::{Buckets, LONGEST};

/// The number of significant binary digits of a bucket, which give three decimal ones.
const DIGITS: u32 = 11;

/// The number of the first buckets, which hold one value each.
const SINGLE: usize = 1 << DIGITS;

/// The counts that are examined at once for a latency.
const STRIDE: usize = 64;

/// The number of latencies in each bucket. The buckets are those of [`super::latencies::Latencies`].
#[derive(Clone, Debug)]
pub(crate) struct LatencyCounts {
    counts: Box<[u32]>,
    /// The end of the counts that are not 0.
    used: usize,
}

impl LatencyCounts {
    /// Creates counts that are all 0.
    pub(crate) fn new() -> LatencyCounts {
        LatencyCounts { counts: vec![0; place(LONGEST) + 1].into_boxed_slice(), used: 0 }
    }

    /// Adds one latency in nanoseconds. More than an hour counts as an hour.
    #[inline]
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        let place = place(nanoseconds.min(LONGEST));
        self.used = self.used.max(place + 1);
        // More than four billion in one bucket stay four billion.
        self.counts[place] = self.counts[place].saturating_add(1);
    }

    /// The occupied buckets, in increasing order.
    pub(crate) fn buckets(&self) -> Buckets {
        let mut buckets = Vec::new();
        for (stride, counts) in self.counts[..self.used].chunks(STRIDE).enumerate() {
            if counts.iter().all(|count| *count == 0) {
                continue;
            }
            let occupied = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            buckets.extend(occupied.map(|(at, count)| (highest(stride * STRIDE + at), u64::from(*count))));
        }
        Buckets::of(buckets)
    }
}

/// The place of the bucket of a value.
#[inline]
fn place(value: u64) -> usize {
    let dropped = (u64::BITS - value.leading_zeros()).saturating_sub(DIGITS);
    // Each further power of two has half as many buckets as there are single values.
    (value >> dropped) as usize + dropped as usize * (SINGLE / 2)
}

/// The highest value of the bucket at a place.
fn highest(place: usize) -> u64 {
    let dropped = (place / (SINGLE / 2)).saturating_sub(1);
    (((place - dropped * (SINGLE / 2)) as u64 + 1) << dropped) - 1
}

#[cfg(test)]
mod tests {
    use super::super::latencies::Latencies;
    use super::*;

    #[test]
    fn every_bucket_is_that_of_the_distributions() {
        let powers = (0..42).map(|power| 1_u64 << power);
        let near =
            powers.flat_map(|power| [power - 1, power, power + 1, power + power / 3, power + power / 7]);
        let values: Vec<u64> = near.chain([LONGEST - 1, LONGEST, LONGEST + 1, u64::MAX]).collect();
        let (mut counts, mut latencies) = (LatencyCounts::new(), Latencies::new());
        for value in &values {
            counts.record(*value);
            latencies.record(*value);
        }
        assert_eq!(counts.buckets(), latencies.buckets());
        for value in values {
            let value = value.min(LONGEST);
            let highest = highest(place(value));
            assert!(place(highest) == place(value) && place(highest + 1) == place(value) + 1, "{value}");
        }
    }
}
