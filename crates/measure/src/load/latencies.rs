//! Distributions of latencies, and their exchange formats.

use super::latency_buckets::{LONGEST, bucket, occupied, place};
use hdrhistogram::Histogram;
use scruple_core::number_map::NumberMap;
use scruple_stats::sorting::SortedMap;
use std::fmt::Write;
use std::ops::AddAssign;

/// A distribution whose memory grows only with its content. Like the others it has three significant digits.
/// Recording a latency takes about 10 ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseHistogram(NumberMap<u64, u64>);

impl SparseHistogram {
    /// Adds one latency.
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        *self.0.entry(bucket(nanoseconds).1).or_default() += 1;
    }

    /// Adds the latencies of another distribution.
    pub(crate) fn add(&mut self, other: &SparseHistogram) {
        other.0.iter().for_each(|(value, count)| *self.0.entry(*value).or_default() += count);
    }

    /// The distribution so far.
    pub(crate) fn latencies(&self) -> Latencies {
        let mut buckets: Vec<(u64, u64)> = self.0.iter().map(|(value, count)| (*value, *count)).collect();
        buckets.sort_unstable();
        Latencies(buckets)
    }
}

/// A distribution of durations in nanoseconds, to three significant digits: the occupied buckets of an HdrHistogram in
/// increasing order, each with its highest value and its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies(Vec<(u64, u64)>);

impl Latencies {
    /// The distribution with these buckets, which must be in increasing order: the highest value of each, and its
    /// count.
    pub(super) fn of_buckets(buckets: Vec<(u64, u64)>) -> Latencies {
        Latencies(buckets)
    }

    /// The distribution of latencies in nanoseconds, each with its count. More than an hour counts as an hour.
    pub fn of(latencies: impl IntoIterator<Item = (u64, u64)>) -> Latencies {
        let mut counts: SortedMap<u64, u64> = SortedMap::new();
        for (latency, count) in latencies {
            *counts.entry(bucket(latency.min(LONGEST)).1).or_default() += count;
        }
        Latencies(counts.into_iter().collect())
    }

    /// Several distributions as one.
    pub(super) fn merge_all<'a>(all: impl IntoIterator<Item = &'a Latencies>) -> Latencies {
        let all: Vec<&Latencies> = all.into_iter().collect();
        let end = all.iter().filter_map(|one| one.max()).max().map_or(0, |max| place(max) + 1);
        let mut counts = vec![0; end];
        all.iter().flat_map(|one| &one.0).for_each(|(value, count)| counts[place(*value)] += count);
        Latencies(occupied(&counts))
    }

    /// The buckets in increasing order.
    pub fn each(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The latency that a share `q` (0 to 1) of all does not exceed, in nanoseconds; `None` if there are none.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = ((self.count() as f64 * q.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.0.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        found.map(|(value, _)| *value)
    }

    /// The longest latency in nanoseconds; `None` if there are none.
    pub fn max(&self) -> Option<u64> {
        self.0.last().map(|(value, _)| *value)
    }

    /// The sum of all latencies in nanoseconds.
    pub fn sum(&self) -> f64 {
        self.0.iter().map(|(value, count)| *value as f64 * *count as f64).sum()
    }

    /// The arithmetic mean in nanoseconds, each latency being in the middle of its bucket; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        let (middle, count) = (
            |value: u64| {
                let (low, high) = bucket(value);
                low + (high - low).div_ceil(2)
            },
            self.count(),
        );
        let sum: f64 = self.0.iter().map(|(value, count)| middle(*value) as f64 * *count as f64).sum();
        (count > 0).then(|| sum / count as f64)
    }

    /// The number of latencies of at least this many nanoseconds.
    pub fn from(&self, nanoseconds: u64) -> u64 {
        let first = self.0.partition_point(|(value, _)| *value < nanoseconds);
        self.0[first..].iter().map(|(_, count)| count).sum()
    }

    /// The percentile distribution in the text format of HdrHistogram (`.hgrm`), values in milliseconds, for its
    /// plotters.
    pub fn hgrm(&self) -> String {
        let counts = self.histogram();
        let mut text = format!(
            "{:>12} {:>14} {:>10} {:>14}\n\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let mut seen = 0;
        for step in counts.iter_quantiles(5) {
            seen += step.count_since_last_iteration();
            let quantile = step.quantile_iterated_to();
            let value = ms(step.value_iterated_to());
            // Writing to a String cannot fail.
            let _ = if quantile < 1.0 {
                writeln!(text, "{value:12.6} {quantile:2.12} {seen:10} {:14.2}", 1.0 / (1.0 - quantile))
            } else {
                writeln!(text, "{value:12.6} {quantile:2.12} {seen:10}")
            };
        }
        let (mean, sd) = (self.mean().unwrap_or(0.0) / 1e6, counts.stdev() / 1e6);
        let _ = writeln!(text, "#[Mean    = {mean:12.6}, StdDeviation   = {sd:12.6}]");
        let _ =
            writeln!(text, "#[Max     = {:12.6}, Total count    = {:12}]", ms(counts.max()), counts.len());
        let _ = writeln!(
            text,
            "#[Buckets = {:12}, SubBuckets     = {:12}]",
            counts.buckets(),
            counts.distinct_values() / usize::from(counts.buckets()).max(1)
        );
        text
    }

    /// The distribution as HdrHistogram keeps it.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        // The bounds and the precision are constants within what the format allows.
        let counts = Histogram::new_with_bounds(1, LONGEST, 3);
        let mut counts = counts.unwrap_or_else(|error| unreachable!("{error}"));
        self.0.iter().for_each(|(value, count)| counts.saturating_record_n(*value, *count));
        counts
    }

    /// The latencies without those of another distribution, which must be a subset.
    pub fn subtract(&self, some: &Latencies) -> Latencies {
        let mut gone = some.0.iter().peekable();
        let left = self.0.iter().filter_map(|(value, count)| {
            while gone.next_if(|(other, _)| other < value).is_some() {}
            let fewer = gone.next_if(|(other, _)| other == value).map_or(0, |(_, count)| *count);
            (*count > fewer).then(|| (*value, count - fewer))
        });
        Latencies(left.collect())
    }
}

/// Adds the latencies of another distribution.
impl AddAssign<&Latencies> for Latencies {
    fn add_assign(&mut self, other: &Latencies) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        let mut both = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let Some(next) = match (mine.peek(), theirs.peek()) {
            (Some(a), Some(b)) if a.0 <= b.0 => mine.next(),
            (_, Some(_)) => theirs.next(),
            (Some(_), None) => mine.next(),
            (None, None) => None,
        } {
            match both.last_mut() {
                Some((value, count)) if *value == next.0 => *count += next.1,
                _ => both.push(*next),
            }
        }
        self.0 = both;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latencies {
        Latencies::of(values.into_iter().map(|value| (value, 1)))
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let latencies = of((1..=1000).map(|i| i * 1_000_000));
        let p99 = latencies.quantile(0.99).expect("some") as f64;
        assert!((p99 / 990e6 - 1.0).abs() < 0.001, "{p99}");
        assert_eq!((latencies.count(), latencies.from(900_500_000)), (1000, 100));
        assert_eq!((Latencies::default().quantile(0.5), Latencies::default().mean()), (None, None));
    }

    #[test]
    fn buckets_bring_it_back() {
        let latencies = of([1, 50_000, 50_010, 7_000_000_000]);
        assert_eq!(Latencies::of(latencies.each().iter().copied()), latencies);
        let mut twice = latencies.clone();
        twice += &latencies;
        assert_eq!(twice.count(), 8);
    }

    #[test]
    fn figures_are_those_of_an_hdr_histogram() {
        let (low, high) = (of((1..=500).map(|i| i * i * 1_001)), of((501..=1000).map(|i| i * i * 1_001)));
        let mut both = high.clone();
        both += &low;
        assert_eq!(Latencies::merge_all([&low, &high]), both);
        let known = both.histogram();
        for q in [0.0, 0.01, 0.5, 0.99, 0.999, 1.0] {
            assert_eq!(both.quantile(q), Some(known.value_at_quantile(q)), "{q}");
        }
        let mean = both.mean().expect("some");
        assert!((mean / known.mean() - 1.0).abs() < 1e-12, "{mean} and {}", known.mean());
        assert_eq!((both.count(), both.max()), (known.len(), Some(known.max())));
    }

    #[test]
    fn the_text_format_has_its_head_and_foot() {
        let text = of((1..=100).map(|i| i * 1_000_000)).hgrm();
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"), "{text}");
        assert!(text.contains("1.000000000000        100\n"), "{text}");
        assert!(text.contains("#[Max     =   100."), "{text}");
    }
}
