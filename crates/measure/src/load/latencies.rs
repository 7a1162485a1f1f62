//! Distributions of latencies, and their exchange formats.

use hdrhistogram::Histogram;
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::AddAssign;

/// The largest latency in nanoseconds that is distinguished from larger ones: an hour.
pub(super) const LONGEST: u64 = 3_600_000_000_000;

/// A distribution of durations in nanoseconds, to three significant digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    counts: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies::new()
    }
}

impl Latencies {
    /// An empty distribution.
    pub fn new() -> Latencies {
        // The bounds and the precision are constants within what the format allows.
        let counts = Histogram::new_with_bounds(1, LONGEST, 3);
        Latencies { counts: counts.unwrap_or_else(|error| unreachable!("{error}")) }
    }

    pub(super) fn counts(&self) -> &Histogram<u64> {
        &self.counts
    }

    /// Adds one latency.
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts.saturating_record(nanoseconds);
    }

    /// Adds the counts of buckets.
    pub fn add_buckets(&mut self, buckets: &Buckets) {
        for (value, count) in &buckets.0 {
            self.counts.saturating_record_n(*value, *count);
        }
    }

    /// The occupied buckets.
    pub fn buckets(&self) -> Buckets {
        Buckets(self.sparse())
    }

    /// The number of latencies.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The latency that a share `q` (0 to 1) of all does not exceed, in nanoseconds; `None` if there are none.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (!self.counts.is_empty()).then(|| self.counts.value_at_quantile(q.clamp(0.0, 1.0)))
    }

    /// The arithmetic mean in nanoseconds; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (!self.counts.is_empty()).then(|| self.counts.mean())
    }

    /// The longest latency in nanoseconds; `None` if there are none.
    pub fn max(&self) -> Option<u64> {
        (!self.counts.is_empty()).then(|| self.counts.max())
    }

    /// The number of latencies above a duration in nanoseconds.
    pub fn above(&self, nanoseconds: u64) -> u64 {
        self.counts.len() - self.counts.count_between(0, nanoseconds)
    }

    /// The occupied buckets, each with its highest value in nanoseconds and its count.
    pub fn sparse(&self) -> Vec<(u64, u64)> {
        self.counts
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect()
    }

    /// The distribution with these buckets: the highest value of each in nanoseconds, and its count.
    pub fn from_sparse(buckets: &[(u64, u64)]) -> Latencies {
        let mut latencies = Latencies::new();
        for (value, count) in buckets {
            latencies.counts.saturating_record_n(*value, *count);
        }
        latencies
    }

    /// The percentile distribution in the text format of HdrHistogram (`.hgrm`), values in milliseconds, for its
    /// plotters.
    pub fn hgrm(&self) -> String {
        let mut text = format!(
            "{:>12} {:>14} {:>10} {:>14}\n\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let mut seen = 0;
        for step in self.counts.iter_quantiles(5) {
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
        let (mean, sd) = (self.mean().unwrap_or(0.0) / 1e6, self.counts.stdev() / 1e6);
        let _ = writeln!(text, "#[Mean    = {mean:12.6}, StdDeviation   = {sd:12.6}]");
        let _ = writeln!(
            text,
            "#[Max     = {:12.6}, Total count    = {:12}]",
            ms(self.counts.max()),
            self.counts.len()
        );
        let _ = writeln!(
            text,
            "#[Buckets = {:12}, SubBuckets     = {:12}]",
            self.counts.buckets(),
            self.counts.distinct_values() / usize::from(self.counts.buckets()).max(1)
        );
        text
    }
}

/// A distribution whose memory grows only with its content. Like the others it has three significant digits.
/// Recording a latency takes about 10 ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sparse(HashMap<u64, u64, BuildHasherDefault<Mixed>>);

impl Sparse {
    /// Adds one latency.
    pub(crate) fn record(&mut self, nanoseconds: u64) {
        // Buckets have 11 significant binary digits and are identified by their highest value, as in HdrHistogram.
        let dropped = (64 - nanoseconds.leading_zeros()).saturating_sub(11);
        *self.0.entry(nanoseconds | ((1_u64 << dropped) - 1)).or_default() += 1;
    }

    /// Adds the latencies of another distribution.
    pub(crate) fn add(&mut self, other: &Sparse) {
        other.0.iter().for_each(|(value, count)| *self.0.entry(*value).or_default() += count);
    }

    /// The occupied buckets, in increasing order.
    pub(crate) fn buckets(&self) -> Buckets {
        let mut buckets: Vec<(u64, u64)> = self.0.iter().map(|(value, count)| (*value, *count)).collect();
        buckets.sort_unstable();
        Buckets(buckets)
    }
}

/// A hasher that spreads numbers over the table. It is not keyed, as its inputs are latencies and not attackers'
/// choices.
#[derive(Clone, Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

/// A distribution as its occupied buckets in increasing order: the highest value of each in nanoseconds, and its
/// count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets(Vec<(u64, u64)>);

impl Buckets {
    /// The distribution with these buckets, which must be in increasing order.
    pub fn of(buckets: Vec<(u64, u64)>) -> Buckets {
        Buckets(buckets)
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

    /// The number of latencies of at least this many nanoseconds.
    pub fn from(&self, nanoseconds: u64) -> u64 {
        let first = self.0.partition_point(|(value, _)| *value < nanoseconds);
        self.0[first..].iter().map(|(_, count)| count).sum()
    }

    /// All but those of another distribution, which are some of them.
    pub fn without(&self, some: &Buckets) -> Buckets {
        let mut gone = some.0.iter().peekable();
        let left = self.0.iter().filter_map(|(value, count)| {
            while gone.next_if(|(other, _)| other < value).is_some() {}
            let fewer = gone.next_if(|(other, _)| other == value).map_or(0, |(_, count)| *count);
            (*count > fewer).then(|| (*value, count - fewer))
        });
        Buckets(left.collect())
    }
}

/// Adds the latencies of another distribution.
impl AddAssign<&Latencies> for Latencies {
    fn add_assign(&mut self, other: &Latencies) {
        // All distributions have the same bounds, so this cannot fail.
        let _ = self.counts.add(&other.counts);
    }
}

/// Adds the latencies of another distribution.
impl AddAssign<&Buckets> for Buckets {
    fn add_assign(&mut self, other: &Buckets) {
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
        let mut latencies = Latencies::new();
        values.into_iter().for_each(|value| latencies.record(value));
        latencies
    }

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let latencies = of((1..=1000).map(|i| i * 1_000_000));
        let p99 = latencies.quantile(0.99).expect("some") as f64;
        assert!((p99 / 990e6 - 1.0).abs() < 0.001, "{p99}");
        assert_eq!(latencies.count(), 1000);
        assert_eq!(latencies.above(900_500_000), 100);
        assert_eq!(Latencies::new().quantile(0.5), None);
    }

    #[test]
    fn buckets_bring_it_back() {
        let latencies = of([1, 50_000, 50_010, 7_000_000_000]);
        assert_eq!(Latencies::from_sparse(&latencies.sparse()).sparse(), latencies.sparse());
        let mut twice = latencies.clone();
        twice += &latencies;
        assert_eq!(twice.count(), 8);
    }

    #[test]
    fn buckets_alone_tell_the_same() {
        let (low, high) = (of((1..=500).map(|i| i * 1_000_000)), of((501..=1000).map(|i| i * 1_000_000)));
        let mut both = high.buckets();
        both += &low.buckets();
        let whole = of((1..=1000).map(|i| i * 1_000_000));
        for q in [0.01, 0.5, 0.99, 1.0] {
            assert_eq!(both.quantile(q), whole.quantile(q), "{q}");
        }
        assert_eq!((both.count(), both.max()), (1000, whole.max()));
        assert_eq!((both.from(900_500_000), Buckets::default().quantile(0.5)), (100, None));
    }

    #[test]
    fn the_text_format_has_its_head_and_foot() {
        let text = of((1..=100).map(|i| i * 1_000_000)).hgrm();
        assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"), "{text}");
        assert!(text.contains("1.000000000000        100\n"), "{text}");
        assert!(text.contains("#[Max     =   100."), "{text}");
    }
}
