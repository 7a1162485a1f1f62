//! Finds cases whose iterations run outside the timed part of their batch, for example because a lazy value is evaluated
//! before the clock is first read. Their times do not grow with the iterations, so the search for a batch that is long
//! enough would take minutes, and its result would be wrong.

use super::cases::Weighed;
use super::own_time::OwnTime;
use super::programs::Programs;
use super::readings::length;
use scruple_core::protocol::{BenchRequest, LoopKind};
use scruple_measure::bench::{BenchError, BenchProgram, garbled};
use std::time::Duration;

/// The time of an answer from which on a batch that is much too short is examined.
pub(super) const LONG_ANSWER: Duration = Duration::from_millis(100);

/// The work outside the timed part is that of the iterations if it takes at least this time more than with one
/// iteration, and this many times the time that the batch reports.
const LEAST_OUTSIDE: Duration = Duration::from_millis(50);
const TIMES_REPORTED: u32 = 100;

/// How often all of this must be true, since a single answer may be late for many reasons.
const LOOKS: u32 = 3;

/// Fails if the iterations of a case, or of its tare, run outside the timed part of a batch.
pub(super) fn check(
    programs: &Programs,
    weighed: &Weighed,
    program: &mut BenchProgram,
    kind: LoopKind,
    iterations: u64,
) -> Result<(), BenchError> {
    let mut ask = |iterations: u64| -> Result<(Duration, Duration), BenchError> {
        let time = OwnTime::start(Some(&*program));
        let reply = programs.batch(weighed, program, kind, iterations)?;
        let reported = Duration::from_nanos(length(&reply).unwrap_or(0.0) as u64);
        Ok((reported, time.so_far(Some(&*program)).own().saturating_sub(reported)))
    };
    let mut least = Duration::MAX;
    let mut longest = Duration::ZERO;
    for _ in 0..LOOKS {
        let (_, of_one) = ask(1)?;
        let (reported, of_all) = ask(iterations)?;
        let outside = of_all.saturating_sub(of_one);
        if outside < LEAST_OUTSIDE.max(TIMES_REPORTED * reported) {
            return Ok(());
        }
        least = least.min(outside);
        longest = longest.max(reported);
    }
    let request = BenchRequest::Block(vec![weighed.batch(kind, iterations)]).line();
    Err(garbled(
        &request,
        format!(
            "it says that {iterations} iterations took {longest:.1?}, but they took {least:.1?} outside the timed part"
        ),
    ))
}
