//! Moments in which the server stood still, told from the slow requests: those that were due while it did are answered
//! together when it goes on.

use super::record::Slow;
use super::result::LoadResult;
use serde::{Deserialize, Serialize};

/// A time in which nothing was answered, in nanoseconds since the start of the measured span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When the first of the requests that met it was due.
    pub from: u64,
    /// When the first of them was answered.
    pub to: u64,
    /// How many of the slowest requests met it.
    pub requests: usize,
}

/// Shorter stalls are not told from ordinary slowness, in nanoseconds.
const SHORTEST: u64 = 5_000_000;

/// A stall is met by at least so many requests.
const FEWEST: usize = 3;

impl LoadResult {
    /// The stalls among the slowest requests, in the order of time. Only those are seen that last at least 5 ms and ten
    /// times the median response.
    pub fn stalls(&self) -> Vec<Stall> {
        let shortest = SHORTEST.max(self.response.quantile(0.5).unwrap_or(0).saturating_mul(10));
        stalls(&self.slowest, shortest)
    }

    /// How many of the requests slower than `nanoseconds` were slow for these pauses, and how many there are; of the
    /// slowest requests that were kept. Pauses are times since the start of the measured span. A request was slow for
    /// them when those that fell into its time are at least half as long as it was longer than the median: one that was
    /// under way during a pause merely by chance, because it waited for something else, was not.
    pub fn met_a_pause(&self, pauses: &[(u64, u64)], nanoseconds: u64) -> (usize, usize) {
        let (pauses, median) = (apart(pauses), self.response.quantile(0.5).unwrap_or(0));
        let slow = || self.slowest.iter().filter(|slow| slow.response > nanoseconds);
        (slow().filter(|slow| is_slow_for(slow, &pauses, median)).count(), slow().count())
    }
}

/// Pauses in the order of time, those that overlap put together.
fn apart(pauses: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sorted = pauses.to_vec();
    sorted.sort_unstable();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (from, to) in sorted {
        match found.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => found.push((from, to)),
        }
    }
    found
}

fn is_slow_for(slow: &Slow, pauses: &[(u64, u64)], median: u64) -> bool {
    // The whole pause counts, since who is due late in it waits for those that it held up before.
    let within = pauses.iter().filter(|(from, to)| slow.intended < *to && *from < slow.done);
    let paused: u64 = within.map(|(from, to)| to - from).sum();
    paused > 0 && 2 * paused >= slow.response.saturating_sub(median)
}

fn stalls(slowest: &[Slow], shortest: u64) -> Vec<Stall> {
    let mut slow: Vec<&Slow> = slowest.iter().filter(|slow| slow.response >= SHORTEST).collect();
    slow.sort_by_key(|slow| slow.intended);
    let mut found: Vec<Stall> = Vec::new();
    for slow in slow {
        match found.last_mut() {
            // Due before any of the others was answered: it met the same stall.
            Some(stall) if slow.intended < stall.to => {
                stall.to = stall.to.min(slow.done);
                stall.requests += 1;
            }
            _ => found.push(Stall { from: slow.intended, to: slow.done, requests: 1 }),
        }
    }
    found.retain(|stall| stall.to - stall.from >= shortest && stall.requests >= FEWEST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(intended: u64, done: u64) -> Slow {
        Slow { response: done - intended, intended, sent: intended, done }
    }

    #[test]
    fn a_request_is_slow_for_a_pause_that_took_most_of_its_time() {
        let ms = 1_000_000;
        let pauses = apart(&[(300 * ms, 305 * ms), (100 * ms, 120 * ms), (110 * ms, 130 * ms)]);
        assert_eq!(pauses, [(100 * ms, 130 * ms), (300 * ms, 305 * ms)]);
        let slow_for = |intended: u64, done: u64| is_slow_for(&slow(intended * ms, done * ms), &pauses, ms);
        assert!(slow_for(101, 131) && slow_for(125, 150) && slow_for(90, 140));
        // It waited for ten seconds in a queue and met pauses of 35 ms by chance.
        assert!(!slow_for(50, 10_050));
        assert!(!slow_for(50, 180) && !slow_for(200, 250), "too little of it, or none");
    }

    #[test]
    fn requests_that_wait_for_the_same_end_make_one_stall() {
        let ms = 1_000_000;
        let mut slowest: Vec<Slow> = (0..100).map(|i| slow((500 + i) * ms, (600 + i / 20) * ms)).collect();
        slowest.extend((0..50).map(|i| slow((1500 + 2 * i) * ms, (1600 + i / 20) * ms)));
        slowest.push(slow(3000 * ms, 3080 * ms));
        let found = stalls(&slowest, 20 * ms);
        let shown: Vec<_> = found.iter().map(|stall| (stall.from / ms, stall.to / ms)).collect();
        assert_eq!(shown, [(500, 600), (1500, 1600)]);
        assert!(found[0].requests >= 95 && found[1].requests >= 45, "{found:?}");
        assert!(stalls(&[], 1).is_empty());
    }
}
