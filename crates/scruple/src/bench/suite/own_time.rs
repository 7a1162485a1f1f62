//! How long a visit takes by itself: without the time in which Scruple or the program was ready but waited for a core,
//! because other programs ran.

use scruple_measure::bench::BenchProgram;
use scruple_measure::scheduler_waits::{self, Threads};
use std::time::{Duration, Instant};

/// A stopwatch for a visit.
pub(super) struct OwnTime {
    began: Instant,
    /// How long Scruple had waited before, in nanoseconds.
    own: Option<u64>,
    /// The record of the program's threads at the start; empty if it did not run or is not watched.
    before: Threads,
}

/// How long a visit took, and for how much of that Scruple or the program waited for a core.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisitTime {
    pub(super) elapsed: Duration,
    pub(super) waited: Duration,
}

impl OwnTime {
    /// Starts. `program` is the process that is asked, if it runs already.
    pub(super) fn start(program: Option<&BenchProgram>) -> OwnTime {
        let before = program.and_then(BenchProgram::threads).unwrap_or_default();
        OwnTime { began: Instant::now(), own: scheduler_waits::own_wait(), before }
    }

    /// The time since the start.
    pub(super) fn so_far(&self, program: Option<&BenchProgram>) -> VisitTime {
        let elapsed = self.began.elapsed();
        let own = self.own.zip(scheduler_waits::own_wait()).map_or(0, |(then, now)| now.saturating_sub(then));
        VisitTime::of(elapsed, own, &self.before, program.and_then(BenchProgram::threads))
    }
}

impl VisitTime {
    /// Scruple and the program take turns, so their waits add up; `own` is Scruple's, in nanoseconds. Threads of the
    /// program wait at the same time, so only the wait of the one that ran most counts.
    fn of(elapsed: Duration, own: u64, before: &Threads, now: Option<Threads>) -> VisitTime {
        let of_program = now.map_or(0, |now| now.since(before).busiest_waited);
        VisitTime { elapsed, waited: Duration::from_nanos(own + of_program).min(elapsed) }
    }

    /// The time without the waits.
    pub(super) fn own(&self) -> Duration {
        self.elapsed - self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wait_of_the_busiest_thread_is_taken_off() {
        let ms = Duration::from_millis;
        let threads = |list: &[(u32, u64, u64)]| {
            Threads::of(list.iter().map(|(id, ran, waited)| (*id, ran * 1_000_000, waited * 1_000_000)))
        };
        let before = threads(&[(1, 5, 10), (2, 0, 3)]);
        let after = || Some(threads(&[(1, 7, 40), (2, 1, 90)]));
        let own = |took: u64, own: u64, before: &Threads, now| {
            VisitTime::of(ms(took), own * 1_000_000, before, now).own()
        };
        assert_eq!(own(40, 6, &before, after()), ms(4));
        assert_eq!(own(40, 0, &before, None), ms(40));
        assert_eq!(own(50, 0, &Threads::default(), after()), ms(10), "a program that started meanwhile");
        assert_eq!(own(20, 0, &before, after()), ms(0), "no visit waits longer than it takes");
    }
}
