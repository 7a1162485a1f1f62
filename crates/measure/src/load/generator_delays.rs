//! Responses that contain a delay of the generator itself, and their lower bounds.

use super::latencies::{Latencies, SparseHistogram};

/// Shorter delays are not distinguished, in nanoseconds: the kernel's time to wake a thread.
pub(crate) const PUNCTUAL: u64 = 50_000;

/// The responses of one thread that contain a delay of the generator.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayedRecord {
    recorded: SparseHistogram,
    least: SparseHistogram,
}

impl DelayedRecord {
    /// A response was recorded. The generator itself was late by up to `late` nanoseconds of its time.
    #[inline]
    pub(crate) fn note(&mut self, response: u64, late: u64) {
        if late > PUNCTUAL {
            self.recorded.record(response);
            self.least.record(response.saturating_sub(late));
        }
    }

    /// Adds those of another thread.
    pub(crate) fn add(&mut self, other: &DelayedRecord) {
        self.recorded.add(&other.recorded);
        self.least.add(&other.least);
    }

    pub(crate) fn delayed(&self) -> Delayed {
        Delayed { recorded: self.recorded.latencies(), least: self.least.latencies() }
    }
}

/// Responses that contain a delay of the generator: it noticed late that they were due, or may have read the answer
/// late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delayed {
    recorded: Latencies,
    least: Latencies,
}

impl Delayed {
    /// These responses as recorded, and the same without the delays, both in increasing order and in nanoseconds.
    pub fn of(recorded: Latencies, least: Latencies) -> Delayed {
        Delayed { recorded, least }
    }

    /// The number of these responses.
    pub fn count(&self) -> u64 {
        self.recorded.count()
    }

    /// Adds others.
    pub fn add(&mut self, other: &Delayed) {
        self.recorded += &other.recorded;
        self.least += &other.least;
    }

    /// All responses, which include these, without the delays: the least that they can have been.
    pub fn least_of(&self, all: &Latencies) -> Latencies {
        let mut left = all.subtract(&self.recorded);
        left += &self.least;
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_delayed_responses_can_have_been_shorter() {
        let (mut all, mut record) = (SparseHistogram::default(), DelayedRecord::default());
        for i in 1..=1000_u64 {
            let late = if i > 995 { 200_000_000 } else { 20_000 };
            all.record(10_000_000 + i + late);
            record.note(10_000_000 + i + late, late);
        }
        let (delayed, all) = (record.delayed(), all.latencies());
        let least = delayed.least_of(&all);
        assert_eq!((delayed.count(), least.count()), (5, 1000));
        assert!(all.max().is_some_and(|max| max > 209_000_000));
        assert!(least.max().is_some_and(|max| max < 10_100_000), "{:?}", least.max());
        assert_eq!(least.quantile(0.5), all.quantile(0.5));
        assert_eq!(Delayed::default().least_of(&all), all);
    }
}
