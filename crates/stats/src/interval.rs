//! Intervals of estimates.

use serde::{Deserialize, Serialize};

/// A range that holds the true value with at least the probability `level`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end, in the unit of what is estimated.
    pub low: f64,
    /// The upper end, in the unit of what is estimated.
    pub high: f64,
    /// The achieved level, between 0 and 1; for exact intervals a little above the requested level.
    pub level: f64,
}

/// Serializes an interval as a pair, the form of all intervals in JSON.
pub(crate) fn as_pair<S: serde::Serializer>(interval: &Interval, serializer: S) -> Result<S::Ok, S::Error> {
    [interval.low, interval.high].serialize(serializer)
}

/// Serializes an optional interval as a pair, or as null where it is absent.
pub(crate) fn as_pair_or_null<S: serde::Serializer>(
    interval: &Option<Interval>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    interval.map(|interval| [interval.low, interval.high]).serialize(serializer)
}

impl Interval {
    /// Half the width of the interval, in the unit of the estimate.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether `value` lies within the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The interval of an increasing function of the estimate, at the same level.
    pub fn map(&self, increasing: impl Fn(f64) -> f64) -> Interval {
        Interval { low: increasing(self.low), high: increasing(self.high), level: self.level }
    }
}
