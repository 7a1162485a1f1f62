//! Counts of latencies while a load runs: recorded in a few nanoseconds, and read out only where there are any.

use super::latencies::Latencies;
use super::latency_buckets::{LONGEST, occupied, place};

/// The number of latencies in each bucket. The buckets are those of [`Latencies`].
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

    /// The distribution so far.
    pub(crate) fn latencies(&self) -> Latencies {
        Latencies::of_buckets(occupied(&self.counts[..self.used]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::latency_buckets::{bucket, highest};
    use super::*;
    use hdrhistogram::Histogram;

    #[test]
    fn every_bucket_is_that_of_an_hdr_histogram() {
        let powers = (0..42).map(|power| 1_u64 << power);
        let near =
            powers.flat_map(|power| [power - 1, power, power + 1, power + power / 3, power + power / 7]);
        let values: Vec<u64> = near.chain([LONGEST - 1, LONGEST, LONGEST + 1, u64::MAX]).collect();
        let mut counts = LatencyCounts::new();
        let mut known: Histogram<u64> = Histogram::new_with_bounds(1, LONGEST, 3).expect("a histogram");
        for value in &values {
            counts.record(*value);
            known.saturating_record((*value).min(LONGEST));
        }
        let occupied = known.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value()));
        assert_eq!(counts.latencies().each(), occupied.collect::<Vec<_>>());
        assert_eq!(counts.latencies(), Latencies::of(values.iter().map(|value| (*value, 1))));
        for value in values {
            let value = value.min(LONGEST);
            let (low, high) = bucket(value);
            assert_eq!((low, high), (known.lowest_equivalent(value), known.highest_equivalent(value)));
            assert!(highest(place(value)) == high && place(high + 1) == place(value) + 1, "{value}");
        }
    }
}
