//! Determines how many iterations make a batch about a tenth of a millisecond long.

use super::answers::{fault_in, unexpected, wrong};
use super::{Stop, Suite, reason, survives};
use scruple_core::protocol::{Batch, BatchReply, LoopKind, Reply, Request};
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

/// The largest number of attempts to find the number of iterations: a few to get from one iteration to enough, and as
/// many again because attempts may be interrupted.
const ATTEMPTS: u32 = 16;

/// The length of a batch of a concurrency case, in nanoseconds. Such cases move elements between threads, so their
/// batches must be long compared with the start of a thread.
const QUEUE_TARGET: f64 = 2_000_000.0;

impl Suite {
    /// Gets a case ready in a fresh process. The first process also determines the iterations of case and tare, after
    /// the check of the case has passed. Returns false if the case failed. Replaces a program that has ended by a new
    /// one. Cases that are warmed up in turn are not warm yet.
    pub(crate) fn settle(
        &mut self,
        index: usize,
        program: &mut BenchProgram,
        first: bool,
    ) -> Result<bool, Stop> {
        let mut result = if first { self.begin(index, program) } else { Ok(()) };
        if !self.warms_in_turn(index) {
            result = result.and_then(|()| self.warm_up(index, program));
            if first {
                result = result.and_then(|()| self.calibrate(index, program));
            }
        }
        self.tolerate(index, program, result)
    }

    /// Warms up the cases that are warmed up in turn, and does for these what [`Suite::settle`] leaves.
    pub(super) fn settle_in_turn(
        &mut self,
        place: usize,
        program: &mut BenchProgram,
        first: bool,
    ) -> Result<(), Stop> {
        self.warm_up_in_turn(place, program)?;
        for index in (0..self.weighed.len()).filter(|_| first) {
            let weighed = &self.weighed[index];
            if weighed.place == place && !weighed.failed && self.warms_in_turn(index) {
                let result = self.calibrate(index, program);
                self.tolerate(index, program, result)?;
            }
        }
        Ok(())
    }

    /// Records the failure of a case. The other cases continue, in a new process if this one has ended.
    pub(crate) fn tolerate<T>(
        &mut self,
        index: usize,
        program: &mut BenchProgram,
        result: Result<T, BenchError>,
    ) -> Result<bool, Stop> {
        let Err(error) = result else { return Ok(true) };
        let why = reason(&error)?;
        self.fail(index, &why);
        if !survives(&error) {
            *program = self.start(self.weighed[index].side, 0, None).map_err(|error| {
                Stop::Failed(crate::fault::Fault::program(format!("cannot start the program again: {error}")))
            })?;
        }
        Ok(false)
    }

    /// Runs the check of a case, and determines about how many iterations make a batch of cold code.
    fn begin(&mut self, index: usize, program: &mut BenchProgram) -> Result<(), BenchError> {
        self.check(index, program)?;
        let first = self.find_iterations(index, program, LoopKind::Case, 1)?;
        self.weighed[index].iterations = first;
        // The warm-up must run enough iterations of the tare, so that it is warm when its number is determined.
        self.weighed[index].tare_iterations = self.find_iterations(index, program, LoopKind::Tare, first)?;
        Ok(())
    }

    /// Determines the iterations of case and tare once both are warm.
    fn calibrate(&mut self, index: usize, program: &mut BenchProgram) -> Result<(), BenchError> {
        let first = self.weighed[index].iterations;
        let iterations = self.find_iterations(index, program, LoopKind::Case, first)?;
        self.weighed[index].iterations = iterations;
        // The iterations of the case are a good start, since the tare is rarely slower than its case.
        let first = self.weighed[index].tare_iterations.max(iterations);
        self.weighed[index].tare_iterations = self.find_iterations(index, program, LoopKind::Tare, first)?;
        // The shorter of two batches counts, since one may have been interrupted.
        let mut time = Duration::MAX;
        for _ in 0..2 {
            let began = Instant::now();
            let batch = self.batch(index, program, LoopKind::Case, iterations)?;
            let mut taken = Duration::from_nanos(length(&batch).unwrap_or(0.0) as u64);
            if self.weighed[index].case.per_iteration_input {
                self.batch(index, program, LoopKind::Tare, self.weighed[index].tare_iterations)?;
                taken = began.elapsed();
            }
            time = time.min(taken);
        }
        self.weighed[index].batch_time = time;
        Ok(())
    }

    /// Runs the check of the case once, before any of its figures count.
    fn check(&mut self, index: usize, program: &mut BenchProgram) -> Result<(), BenchError> {
        let weighed = &self.weighed[index];
        if !weighed.case.checked && weighed.case.concurrency.is_none() && weighed.case.readings.is_empty() {
            return Ok(());
        }
        let limit = self.limit_of(weighed);
        match program.ask(&Request::Once(weighed.case.id), limit, &self.interrupted)? {
            Reply::Once(once) if once.ok => {
                let readings = super::readings::of_once(&self.weighed[index].case, &once);
                let arm = self.weighed[index].arm;
                self.keep(arm, scruple_core::metric::Pass::Counting, 0, readings);
                Ok(())
            }
            Reply::Once(once) => Err(BenchError::Complained(scruple_core::protocol::Complaint {
                error: format!(
                    "its check failed: {}",
                    once.why.unwrap_or_else(|| "no reason given".to_owned())
                ),
                kind: "check".to_owned(),
                id: Some(once.once),
                fatal: false,
            })),
            other => Err(unexpected("once", &other)),
        }
    }

    /// Runs batches, starting with `first` iterations, until one has about the required length, and derives the number
    /// of iterations from it.
    fn find_iterations(
        &self,
        index: usize,
        program: &mut BenchProgram,
        kind: LoopKind,
        first: u64,
    ) -> Result<u64, BenchError> {
        let weighed = &self.weighed[index];
        let queue = weighed.case.concurrency.is_some();
        // Starting several threads takes time as well, and the first one to start waits for the last.
        let target = if queue || weighed.threads > 1 { QUEUE_TARGET } else { self.batch_length() };
        let inputs = weighed.case.per_iteration_input;
        let possible = (target / SHORTEST_ITERATION) as u64;
        let most = weighed.case.max_iterations.unwrap_or(possible).clamp(1, possible);
        // A tare that walks over inputs or elements is extremely cheap. A long batch would need far too many of them, which
        // are made and checked outside the timed part.
        let most = if (inputs || queue) && kind == LoopKind::Tare { most.min(first) } else { most };
        let mut iterations = if queue { 1000.min(most) } else { first.min(most) };
        let mut attempt = 1;
        loop {
            let mut least = f64::INFINITY;
            let mut whole = Duration::MAX;
            for _ in 0..3 {
                let began = Instant::now();
                let reply = self.batch(index, program, kind, iterations)?;
                whole = whole.min(began.elapsed());
                let time = length(&reply).unwrap_or(target);
                least = least.min(time.max(1.0));
                // One try suffices if the length of the batch is far from the required one.
                if time > 20.0 * target || time < 0.25 * target {
                    break;
                }
            }
            let wanted = iterations as f64 * target / least;
            // Inputs are made outside the timed part, but the user still waits for them.
            let room = self.whole_length().as_secs_f64() / whole.as_secs_f64();
            let most = match inputs {
                true => most.min((iterations as f64 * room).max(1.0) as u64),
                false => most,
            };
            // A batch that is far too long was interrupted, or ran before its loop was compiled. A shorter one is tried.
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

    /// Returns the required length of a batch, in nanoseconds. It is shorter if there are too many cases to visit all
    /// of them several times within the budget.
    fn batch_length(&self) -> f64 {
        let visits = self.weighed.len() as f64 * VISITS;
        (self.effort.budget.as_nanos() as f64 / visits).clamp(SHORTEST, TARGET)
    }

    /// Returns the longest time of a batch including the time to make and destroy its inputs.
    fn whole_length(&self) -> Duration {
        (self.effort.budget / 2 / (self.weighed.len() as f64 * VISITS) as u32).max(WHOLE)
    }

    /// Runs a single batch.
    pub(crate) fn batch(
        &self,
        index: usize,
        program: &mut BenchProgram,
        kind: LoopKind,
        iterations: u64,
    ) -> Result<BatchReply, BenchError> {
        let batch = self.batch_of(index, kind, iterations);
        let mut replies = self.block(index, program, vec![batch])?;
        replies.pop().ok_or_else(|| wrong("block", "it has no batches"))
    }

    /// Runs these batches as one block, in the given order.
    pub(crate) fn block(
        &self,
        index: usize,
        program: &mut BenchProgram,
        batches: Vec<Batch>,
    ) -> Result<Vec<BatchReply>, BenchError> {
        let weighed = &self.weighed[index];
        let request = Request::Block(batches.clone());
        let asked = Instant::now();
        match program.ask(&request, self.limit_of(weighed), &self.interrupted)? {
            Reply::Block { block, .. } => {
                match fault_in(&batches, &block, weighed.case.concurrency.is_some(), asked.elapsed()) {
                    None => Ok(block),
                    Some(why) => Err(wrong(&request.line(), why)),
                }
            }
            other => Err(unexpected(&request.line(), &other)),
        }
    }

    pub(crate) fn batch_of(&self, index: usize, kind: LoopKind, iterations: u64) -> Batch {
        let weighed = &self.weighed[index];
        let threads = if weighed.case.concurrency.is_some() { 1 } else { weighed.threads };
        Batch { id: weighed.case.id, kind, iterations, threads }
    }
}

/// Returns how long a batch kept a core busy, in nanoseconds. With several threads this is the mean processor time,
/// because the span from the first start to the last end depends more on the scheduler than on the work.
pub(crate) fn length(reply: &BatchReply) -> Option<f64> {
    let wall = reply.reading("time.wall");
    match reply.threads.len() {
        0 | 1 => wall,
        threads => {
            reply.reading("time.cpu").map(|cpu| cpu / threads as f64).filter(|time| *time > 0.0).or(wall)
        }
    }
}
