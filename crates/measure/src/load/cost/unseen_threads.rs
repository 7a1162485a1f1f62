//! Determines how much of a server's processor time belongs to threads that were never seen, because they started and
//! ended under load.

use super::window::LEVEL;
use scruple_core::per_request;
use scruple_core::unit::share;

/// Metrics whose counts are lost when threads end. They are absent if threads that were never seen used too much
/// time.
pub(super) const OF_THREADS: [&str; 3] = ["time.wait", "switches.voluntary", "switches.involuntary"];

/// The share of the processor time, and the nanoseconds, above which unseen threads used too much; both must be
/// exceeded.
const MOST: (f64, f64) = (0.05, 100_000.0);

/// The processor time of threads that were never seen, window by window.
#[derive(Clone, Debug, Default)]
pub(super) struct UnseenThreads {
    requests: Vec<f64>,
    unseen: Vec<f64>,
    all: Vec<f64>,
}

impl UnseenThreads {
    /// Adds a window: its requests, the nanoseconds of unseen threads, and the nanoseconds of all threads.
    pub(super) fn add(&mut self, requests: u64, unseen: u64, all: u64) {
        self.requests.push(requests as f64);
        self.unseen.push(unseen as f64);
        self.all.push(all as f64);
    }

    /// The reason why counts that are lost when threads end are absent; `None` if unseen threads did not use too much
    /// time.
    ///
    /// A few unseen threads in every window are not a cost of requests: each window starts with a connection that
    /// only tests whether the server answers, and some servers start a thread for it.
    pub(super) fn too_much(&self) -> Option<String> {
        let (unseen, all) = (self.unseen.iter().sum::<f64>(), self.all.iter().sum::<f64>());
        let part = unseen / all.max(1.0);
        let each = |costs: &[f64]| per_request::fit(&self.requests, costs, LEVEL).map(|cost| cost.each);
        let only_windows = || {
            let (unseen, all) = (each(&self.unseen)?, each(&self.all)?);
            Some(unseen.interval?.high <= MOST.0 * all.value)
        };
        (part > MOST.0 && unseen > MOST.1 && only_windows() != Some(true)).then(|| {
            format!(
                "threads that began and ended during the load used {} of the processor time",
                share(part.min(1.0))
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [u64; 6] = [100, 400, 200, 400, 100, 200];

    fn of(unseen: impl Fn(u64) -> u64) -> Option<String> {
        let mut sum = UnseenThreads::default();
        for (window, requests) in LENGTHS.into_iter().enumerate() {
            // An alternating term, so that no two windows are quite the same.
            sum.add(requests, unseen(requests) + 20_000 * (window as u64 % 2), 25_000 * requests + 500_000);
        }
        sum.too_much()
    }

    #[test]
    fn a_thread_in_each_window_says_nothing_about_requests() {
        assert_eq!(of(|_| 500_000), None);
    }

    #[test]
    fn a_thread_for_each_request_does() {
        let why = of(|requests| 20_000 * requests).expect("too much");
        assert_eq!(why, "threads that began and ended during the load used 74 % of the processor time");
    }

    #[test]
    fn little_is_not_too_much_and_windows_of_one_length_cannot_excuse_much() {
        assert_eq!(of(|_| 0), None);
        let mut same = UnseenThreads::default();
        (0..4).for_each(|_| same.add(100, 500_000, 2_500_000));
        assert!(same.too_much().is_some());
    }
}
