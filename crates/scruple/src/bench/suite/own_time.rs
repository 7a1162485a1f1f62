//! How long a visit takes by itself: without the time in which Scruple and the program were ready but waited for a core,
//! because other programs ran.

use scruple_measure::bench::BenchProgram;
use scruple_measure::scheduler_waits;
use std::time::{Duration, Instant};

/// A stopwatch for a visit.
pub(super) struct OwnTime {
    began: Instant,
    /// How long Scruple and the program had waited before, in nanoseconds.
    before: u64,
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
        OwnTime { began: Instant::now(), before: waited(program) }
    }

    /// The time since the start. Threads that wait at the same time wait no longer than the visit takes.
    pub(super) fn so_far(&self, program: Option<&BenchProgram>) -> VisitTime {
        let elapsed = self.began.elapsed();
        let waited = Duration::from_nanos(waited(program).saturating_sub(self.before));
        VisitTime { elapsed, waited: waited.min(elapsed) }
    }
}

fn waited(program: Option<&BenchProgram>) -> u64 {
    let of_program = program.and_then(BenchProgram::waited).unwrap_or_default();
    of_program + scheduler_waits::own_wait().unwrap_or_default()
}
