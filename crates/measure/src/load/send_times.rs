//! Computes the times at which one thread of an open loop sends requests.

use super::plan::Arrivals;
use super::scenario::{Stage, time_of};
use scruple_stats::rng::Pcg;

/// The times of one thread. A rate is divided among threads so that their times together are evenly spaced; with
/// Poisson arrivals, so that the threads' streams add up to one with the whole rate.
pub(crate) struct SendSchedule {
    start: u64,
    end: u64,
    left: u64,
    gap: f64,
    offset: f64,
    sent: u64,
    random: Option<Pcg>,
    shape: RateCourse,
    next: Option<u64>,
}

/// How the rate changes over time.
pub(crate) enum RateCourse {
    /// The rate is constant.
    Constant,
    /// The rate changes in stages; `rate` must then be 1.
    Stages(Vec<Stage>),
    /// The times of this thread are listed: nanoseconds from the start, each with the number of what is due.
    Listed(Vec<(u64, u32)>),
}

/// The parameters of one thread's schedule. Times are in nanoseconds.
pub(crate) struct Share {
    pub(crate) rate: f64,
    pub(crate) arrivals: Arrivals,
    pub(crate) thread: u32,
    pub(crate) threads: u32,
    pub(crate) seed: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) limit: u64,
    pub(crate) shape: RateCourse,
}

impl SendSchedule {
    pub(crate) fn new(share: Share) -> SendSchedule {
        let (thread, threads) = (f64::from(share.thread), f64::from(share.threads));
        let random = match share.arrivals {
            Arrivals::Constant => None,
            Arrivals::Poisson => Some(Pcg::with_stream(share.seed, u64::from(share.thread))),
        };
        let gap = threads * 1e9 / share.rate;
        let mut schedule = SendSchedule {
            start: share.start,
            end: share.end,
            left: share.limit,
            gap,
            offset: if random.is_some() { 0.0 } else { gap * thread / threads },
            sent: 0,
            random,
            shape: share.shape,
            next: None,
        };
        schedule.advance();
        schedule
    }

    /// The next time in nanoseconds; `None` after the last.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next
    }

    /// The number of what is due next, if times are listed; else 0.
    pub(crate) fn number(&self) -> u32 {
        match &self.shape {
            RateCourse::Listed(times) => {
                times.get(self.sent.saturating_sub(1) as usize).map_or(0, |(_, number)| *number)
            }
            RateCourse::Constant | RateCourse::Stages(_) => 0,
        }
    }

    /// Ends the schedule.
    pub(crate) fn stop(&mut self) {
        (self.left, self.next) = (0, None);
    }

    /// Advances to the following time.
    pub(crate) fn advance(&mut self) {
        if self.left == 0 {
            self.next = None;
            return;
        }
        let offset = match &mut self.random {
            // A product with the count, instead of a running sum, accumulates no rounding errors.
            None => self.offset + self.gap * self.sent as f64,
            Some(random) => {
                self.offset -= (1.0 - random.unit()).ln() * self.gap;
                self.offset
            }
        };
        // At a rate of 1/s the offset in seconds is the number of sessions that have begun.
        let offset = match &self.shape {
            RateCourse::Constant => Some(offset as u64),
            RateCourse::Stages(stages) => time_of(stages, offset / 1e9),
            RateCourse::Listed(times) => times.get(self.sent as usize).map(|(at, _)| *at),
        };
        self.left -= 1;
        self.sent += 1;
        self.next = offset.map(|offset| self.start + offset).filter(|time| *time < self.end);
        if self.next.is_none() {
            self.left = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, threads: u32, limit: u64) -> Vec<u64> {
        let mut all = Vec::new();
        for thread in 0..threads {
            let mut schedule = SendSchedule::new(Share {
                rate: 2000.0,
                arrivals,
                thread,
                threads,
                seed: 5,
                start: 1_000,
                end: 1_000 + 10_000_000_000,
                limit,
                shape: RateCourse::Constant,
            });
            while let Some(time) = schedule.next() {
                all.push(time);
                schedule.advance();
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn threads_together_keep_even_gaps() {
        let times = times(Arrivals::Constant, 3, u64::MAX);
        assert_eq!(times.len(), 20_000);
        assert_eq!(times[0], 1_000);
        assert!(times.windows(2).all(|pair| (499_999..=500_001).contains(&(pair[1] - pair[0]))));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times = times(Arrivals::Poisson, 2, u64::MAX);
        assert!((19_400..20_600).contains(&times.len()), "{}", times.len());
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let sd = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((sd / mean - 1.0).abs() < 0.05, "{sd} / {mean}");
    }

    #[test]
    fn a_limit_ends_it() {
        assert_eq!(times(Arrivals::Constant, 2, 7).len(), 14);
    }
}
