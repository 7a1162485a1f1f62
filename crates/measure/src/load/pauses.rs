//! Compares slow requests with pauses of the server that are known from elsewhere.

use super::result::{LoadResult, SlowRequest};

impl LoadResult {
    /// How many of the requests above `nanoseconds` were slow because of pauses, and how many such requests there
    /// are, both among the slowest requests that were kept. Pauses are given in nanoseconds since the start of the
    /// measured span. A request was slow because of pauses if those that overlap it are at least half as long as its
    /// excess over the median. A request that was in flight during a pause by chance, because it waited for something
    /// else, does not count.
    pub fn met_a_pause(&self, pauses: &[(u64, u64)], nanoseconds: u64) -> (usize, usize) {
        let (pauses, median) = (merge_overlapping(pauses), self.times.response.quantile(0.5).unwrap_or(0));
        let slow = || self.slowest.iter().filter(|slow| slow.response > nanoseconds);
        (slow().filter(|slow| is_slow_for(slow, &pauses, median)).count(), slow().count())
    }
}

/// The pauses in order of time, with overlapping ones merged.
fn merge_overlapping(pauses: &[(u64, u64)]) -> Vec<(u64, u64)> {
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

fn is_slow_for(slow: &SlowRequest, pauses: &[(u64, u64)], median: u64) -> bool {
    // The whole pause counts: a request that is due late in it also waits for the requests that it delayed before.
    let within = pauses.iter().filter(|(from, to)| slow.intended < *to && *from < slow.done);
    let paused: u64 = within.map(|(from, to)| to - from).sum();
    paused > 0 && 2 * paused >= slow.response.saturating_sub(median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(intended: u64, done: u64) -> SlowRequest {
        SlowRequest { response: done - intended, intended, sent: intended, done }
    }

    #[test]
    fn a_request_is_slow_for_a_pause_that_took_most_of_its_time() {
        let ms = 1_000_000;
        let pauses = merge_overlapping(&[(300 * ms, 305 * ms), (100 * ms, 120 * ms), (110 * ms, 130 * ms)]);
        assert_eq!(pauses, [(100 * ms, 130 * ms), (300 * ms, 305 * ms)]);
        let slow_for = |intended: u64, done: u64| is_slow_for(&slow(intended * ms, done * ms), &pauses, ms);
        assert!(slow_for(101, 131) && slow_for(125, 150) && slow_for(90, 140));
        // It waited ten seconds in a queue, and met pauses of 35 ms by chance.
        assert!(!slow_for(50, 10_050));
        assert!(!slow_for(50, 180) && !slow_for(200, 250), "too little of it, or none");
    }
}
