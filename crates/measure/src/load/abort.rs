//! Aborts a load when its limits are exceeded for some time.

use super::scenario::Abort;
use super::shared::LoadProgress;
use scruple_core::unit::{Unit, quantity, share};

/// The limits of a load, and since when each of them has been exceeded.
pub(crate) struct WatchedLimits {
    limits: Abort,
    /// Since when the error share and the 99th percentile have been exceeded, in seconds from the start; `None` if
    /// the limit is kept.
    since: [Option<f64>; 2],
    /// Why the load is aborted; `None` while it is not.
    pub(crate) why: Option<String>,
}

impl WatchedLimits {
    pub(crate) fn of(limits: Abort) -> WatchedLimits {
        WatchedLimits { limits, since: [None; 2], why: None }
    }

    /// Whether to abort the load. `before` is the progress at the previous call. An interval without answers and
    /// failures changes nothing.
    pub(crate) fn exceeded(&mut self, seen: &LoadProgress, before: &LoadProgress) -> bool {
        let failed = seen.failed.saturating_sub(before.failed);
        let all = failed + seen.answered.saturating_sub(before.answered);
        if all == 0 || self.why.is_some() {
            return self.why.is_some();
        }
        let errors = failed as f64 / all as f64;
        let exceeded = [
            self.limits.errors.is_some_and(|most| errors > most),
            self.limits.p99.is_some_and(|most| seen.p99 > most),
        ];
        let over = self.limits.over.as_secs_f64();
        for (since, exceeded) in self.since.iter_mut().zip(exceeded) {
            *since = exceeded.then(|| since.unwrap_or(before.elapsed));
        }
        let long = |since: Option<f64>| since.is_some_and(|since| seen.elapsed - since >= over);
        let time = quantity(over * 1e9, &Unit::Nanoseconds);
        if long(self.since[0]) {
            let most = self.limits.errors.unwrap_or(0.0);
            self.why = Some(format!("more than {} of the requests failed for {time}", share(most)));
        } else if long(self.since[1]) {
            let most = quantity(self.limits.p99.unwrap_or(0) as f64, &Unit::Nanoseconds);
            self.why = Some(format!("the 99th percentile was above {most} for {time}"));
        }
        self.why.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_what_lasts_ends_a_load() {
        let limits = Abort { errors: Some(0.1), p99: Some(1_000), over: Duration::from_secs(2) };
        let mut watched = WatchedLimits::of(limits);
        let mut before = LoadProgress::default();
        let mut at = |elapsed: f64, answered: u64, failed: u64, p99: u64| {
            let seen = LoadProgress { elapsed, answered, failed, p99, ..LoadProgress::default() };
            let exceeded = watched.exceeded(&seen, &before);
            before = seen;
            exceeded
        };
        // Half of the requests fail for a second, then none.
        assert!(!at(1.0, 10, 10, 0) && !at(2.0, 30, 10, 0) && !at(3.0, 50, 12, 0));
        // An interval without answers and failures changes nothing.
        assert!(!at(9.0, 50, 12, 0) && !at(9.5, 60, 13, 0));
        assert!(!at(10.0, 60, 23, 0) && !at(11.0, 60, 30, 0) && at(12.0, 60, 40, 0));
        assert!(watched.why.is_some_and(|why| why.contains("10 %")));
    }
}
