//! One measurement of a rate, and what it counts.

use scruple_stats::share_crossing::StretchCount;
use serde::{Deserialize, Serialize};

/// The outcome of one measurement of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateOutcome {
    /// Every limit was kept, and the server kept up with the rate.
    Good,
    /// A limit was broken, or the server fell behind.
    Bad,
    /// The measurement is void, for instance because the generator was late.
    Void,
}

/// One measurement of a rate, as the search uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The rate, in requests per second.
    pub rate: f64,
    /// The outcome of this measurement alone.
    pub outcome: RateOutcome,
    /// Whether the server answered at the rate at which requests were due.
    pub kept_up: bool,
    /// For each limit, the counts in each stretch of time.
    pub counts: Vec<Vec<LimitCount>>,
    /// The share of requests, from 0 to 1, with which the generator was late, or of the time in which other threads on
    /// its machine were, if server and generator share it. What keeps these from a core keeps the server from it, too.
    pub late: f64,
}

/// The counts for one limit in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitCount {
    /// The number of requests.
    pub requests: f64,
    /// The number of requests beyond the limit; for a limit on the mean, the sum of the responses as multiples of the
    /// limit.
    pub beyond: f64,
    /// The same without the delays of the generator that responses contain. The share that is due to the server lies
    /// between the two.
    pub least: f64,
}

impl LimitCount {
    /// The counts of requests without any delay of the generator.
    pub fn of(requests: f64, beyond: f64) -> LimitCount {
        LimitCount { requests, beyond, least: beyond }
    }
}

/// The counts of one limit in all stretches of time of these measurements, where `beyond` says what counts.
pub(super) fn stretch_counts<'a>(
    measurements: impl Iterator<Item = &'a Measurement>,
    limit: usize,
    beyond: fn(&LimitCount) -> f64,
) -> Vec<StretchCount> {
    let of_one = |(measurement, one): (usize, &'a Measurement)| {
        let counts = one.counts.get(limit).into_iter().flatten();
        counts.map(move |count| StretchCount {
            measurement,
            rate: one.rate,
            requests: count.requests,
            beyond: beyond(count),
        })
    };
    measurements.enumerate().flat_map(of_one).collect()
}
