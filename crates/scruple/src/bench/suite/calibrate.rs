//! Determines how many iterations make a batch about a tenth of a millisecond long.

use super::cases::Weighed;
use super::outside_work;
use super::own_time::OwnTime;
use super::programs::Programs;
use super::readings::length;
use scruple_core::protocol::{BatchReply, LoopKind};
use scruple_measure::bench::{BenchError, BenchProgram};
use std::time::{Duration, Instant};

/// The length of a batch, in nanoseconds: short enough that most batches fit between two interruptions by the
/// scheduler.
const TARGET: f64 = 100_000.0;

/// The number of batches of each case, and of its tare, that should fit into the budget; and the shortest length of a
/// batch, in nanoseconds. A batch that is shorter consists mostly of clock reads.
const VISITS: f64 = 100.0;
const SHORTEST: f64 = 10_000.0;

/// The shortest time of an iteration that has not been removed by a compiler, in nanoseconds: a small part of a cycle.
/// Without this bound a removed loop would get so many iterations that a process which does run them never ends.
const SHORTEST_ITERATION: f64 = 0.01;

/// If every iteration has its own input, the budget does not limit a batch, including its preparation, to less than
/// this time.
const WHOLE: Duration = Duration::from_millis(1);

/// The least time that a batch with its preparation is taken to need.
const SHORTEST_WHOLE: Duration = Duration::from_micros(1);

/// The largest number of attempts to find the number of iterations: a few to get from one iteration to enough, and as
/// many again because attempts may be interrupted.
const ATTEMPTS: u32 = 16;

/// A batch of this share of the required length is much too short.
const MUCH_TOO_SHORT: f64 = 0.25;

/// The length of a batch of a concurrency case, in nanoseconds. Such cases move elements between threads, so their
/// batches must be long compared with the start of a thread.
const QUEUE_TARGET: f64 = 2_000_000.0;

/// How the iterations of the cases of a suite are determined.
pub(super) struct Calibration<'a> {
    programs: &'a Programs,
    /// The measuring time of the suite, and the number of its cases.
    budget: Duration,
    cases: usize,
}

impl<'a> Calibration<'a> {
    pub(super) fn new(programs: &'a Programs, budget: Duration, cases: usize) -> Calibration<'a> {
        Calibration { programs, budget, cases }
    }

    /// Determines about how many iterations make a batch of cold code.
    pub(super) fn of_cold(
        &self,
        weighed: &mut Weighed,
        program: &mut BenchProgram,
    ) -> Result<(), BenchError> {
        weighed.iterations = self.find_iterations(weighed, program, LoopKind::Case, 1)?;
        // The warm-up must run enough iterations of the tare, so that it is warm when its number is determined.
        weighed.tare_iterations =
            self.find_iterations(weighed, program, LoopKind::Tare, weighed.iterations)?;
        Ok(())
    }

    /// Doubles the iterations of a case, or of its tare, whose batch has become much too short while its code was
    /// compiled. Otherwise a warm-up would consist of requests more than of iterations.
    pub(super) fn grow(&self, weighed: &mut Weighed, case: &BatchReply, tare: &BatchReply) {
        if weighed.case.per_iteration_input || weighed.case.concurrency.is_some() {
            return;
        }
        let target = self.target_of(weighed);
        let most = weighed.case.max_iterations.unwrap_or(u64::MAX).min((target / SHORTEST_ITERATION) as u64);
        let grown = |iterations: u64, reply: &BatchReply| match length(reply) {
            Some(time) if time < 0.5 * target => (2 * iterations).min(most).max(iterations),
            _ => iterations,
        };
        weighed.iterations = grown(weighed.iterations, case);
        weighed.tare_iterations = grown(weighed.tare_iterations, tare);
    }

    /// Determines the iterations of case and tare once both are warm.
    pub(super) fn of_warm(
        &self,
        weighed: &mut Weighed,
        program: &mut BenchProgram,
    ) -> Result<(), BenchError> {
        let iterations = self.find_iterations(weighed, program, LoopKind::Case, weighed.iterations)?;
        weighed.iterations = iterations;
        // The iterations of the case are a good start, since the tare is rarely slower than its case.
        let first = weighed.tare_iterations.max(iterations);
        weighed.tare_iterations = self.find_iterations(weighed, program, LoopKind::Tare, first)?;
        // The shorter of two batches counts, since one may have been interrupted.
        let mut time = Duration::MAX;
        for _ in 0..2 {
            let began = Instant::now();
            let batch = self.programs.batch(weighed, program, LoopKind::Case, iterations)?;
            let mut taken = Duration::from_nanos(length(&batch).unwrap_or(0.0) as u64);
            if weighed.case.per_iteration_input {
                self.programs.batch(weighed, program, LoopKind::Tare, weighed.tare_iterations)?;
                taken = began.elapsed();
            }
            time = time.min(taken);
        }
        weighed.batch_time = time;
        Ok(())
    }

    /// Determines the iterations of a case again if a batch has become much too short: its code was not compiled when
    /// the first process determined them. A comparison keeps the numbers that its programs share.
    pub(super) fn of_late(
        &self,
        weighed: &mut Weighed,
        program: &mut BenchProgram,
    ) -> Result<(), BenchError> {
        let is_full = weighed.case.max_iterations.is_some_and(|most| weighed.iterations >= most);
        if self.programs.sides.len() > 1 || is_full {
            return Ok(());
        }
        let batch = self.programs.batch(weighed, program, LoopKind::Case, weighed.iterations)?;
        match length(&batch).is_some_and(|time| time < MUCH_TOO_SHORT * self.target_of(weighed)) {
            true => self.of_warm(weighed, program),
            false => Ok(()),
        }
    }

    /// Runs batches, starting with `first` iterations, until one has about the required length, and derives the number
    /// of iterations from it.
    fn find_iterations(
        &self,
        weighed: &mut Weighed,
        program: &mut BenchProgram,
        kind: LoopKind,
        first: u64,
    ) -> Result<u64, BenchError> {
        let queue = weighed.case.concurrency.is_some();
        let target = self.target_of(weighed);
        let mut inputs = weighed.case.per_iteration_input;
        let most = self.most_iterations(weighed, kind, first);
        let mut iterations = if queue { 1000.min(most) } else { first.min(most) };
        let mut attempt = 1;
        loop {
            let mut least = f64::INFINITY;
            let mut whole = Duration::MAX;
            let began = Instant::now();
            for _ in 0..3 {
                // A look at the program's threads takes time, so it is saved where it is not needed.
                let watched = inputs;
                let time = OwnTime::start(Some(&*program).filter(|_| watched));
                let reply = self.programs.batch(weighed, program, kind, iterations)?;
                // On a busy machine the waits would leave room for so few inputs that only cold code is timed.
                whole = whole.min(time.so_far(Some(&*program).filter(|_| watched)).own().max(SHORTEST_WHOLE));
                weighed.learn(&reply);
                inputs = weighed.case.per_iteration_input;
                let time = length(&reply).unwrap_or(target);
                least = least.min(time.max(1.0));
                // One try suffices if the length of the batch is far from the required one, and if only that counts.
                if time > 20.0 * target || (time < MUCH_TOO_SHORT * target && !inputs) {
                    break;
                }
            }
            let may_be_outside = !inputs && !queue && least < MUCH_TOO_SHORT * target;
            if may_be_outside && began.elapsed() > outside_work::LONG_ANSWER {
                outside_work::check(self.programs, weighed, program, kind, iterations)?;
            }
            let wanted = iterations as f64 * target / least;
            // Inputs are made outside the timed part, but the user still waits for them.
            let room = self.whole_length().as_secs_f64() / whole.as_secs_f64();
            let most = self.most_iterations(weighed, kind, first);
            let most = match inputs {
                true => most.min((iterations as f64 * room).max(1.0) as u64),
                false => most,
            };
            // A batch that is far too long was interrupted, or ran before its loop was compiled. A shorter one is
            // tried.
            let too_long = least > 2.0 * target && iterations > 1;
            let fits = !too_long && (least >= 0.5 * target || iterations >= most);
            if fits || attempt == ATTEMPTS {
                return Ok((wanted.round().max(1.0) as u64).clamp(1, most));
            }
            // A batch that is far too short gives a poor estimate. The number of iterations grows at most a hundredfold
            // at a time, so that batches of a slow case do not become too long.
            iterations = match too_long {
                true => (wanted as u64).clamp(1, most),
                false => (wanted.min(iterations as f64 * 100.0).ceil() as u64).clamp(iterations + 1, most),
            };
            attempt += 1;
        }
    }

    /// Returns the largest number of iterations of a batch of the case or its tare, whose search begins with `first`.
    fn most_iterations(&self, weighed: &Weighed, kind: LoopKind, first: u64) -> u64 {
        let possible = (self.target_of(weighed) / SHORTEST_ITERATION) as u64;
        let most = weighed.case.max_iterations.unwrap_or(possible).clamp(1, possible);
        // A tare that walks over inputs or elements is extremely cheap. A long batch would need far too many of them,
        // which are made and checked outside the timed part.
        let outside = weighed.case.per_iteration_input || weighed.case.concurrency.is_some();
        if outside && kind == LoopKind::Tare { most.min(first) } else { most }
    }

    /// Returns the required length of a batch of a case, in nanoseconds. Starting several threads takes time as well,
    /// and the first one to start waits for the last.
    fn target_of(&self, weighed: &Weighed) -> f64 {
        if weighed.has_threads() { QUEUE_TARGET } else { self.batch_length() }
    }

    /// Returns the usual required length of a batch, in nanoseconds. It is shorter if there are too many cases to visit
    /// all of them several times within the budget.
    fn batch_length(&self) -> f64 {
        let visits = self.cases as f64 * VISITS;
        (self.budget.as_nanos() as f64 / visits).clamp(SHORTEST, TARGET)
    }

    /// Returns the longest time of a batch including the time to make and destroy its inputs.
    fn whole_length(&self) -> Duration {
        (self.budget / 2 / (self.cases as f64 * VISITS) as u32).max(WHOLE)
    }
}
