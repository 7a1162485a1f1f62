//! Determines how many iterations make a batch about a tenth of a millisecond long.

use super::answers::{fault_in, unexpected, wrong};
use super::{Stop, Suite, reason, survives};
use scruple_core::protocol::{Batch, BatchReply, Hello, LoopKind, Reply, Request};
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

/// The shortest warm-up of a case in a process. Just-in-time compilers need the longer one, until they have seen the
/// code often enough. On a busy machine, only time in which the program had a core counts.
const WARM_UP: Duration = Duration::from_millis(2);
const COMPILED_WARM_UP: Duration = Duration::from_millis(40);

/// The largest share of the budget that the warm-up of a case takes if the program has a just-in-time compiler and the
/// machine is busy. A share that is divided among the cases is too short: on a busy machine code is not compiled by then.
const COMPILED_SHARE: u32 = 10;

/// The largest multiple of the shortest warm-up that a case gets while it keeps becoming faster.
const PATIENCE: u32 = 8;

/// The share of the shortest warm-up that suffices as running time, because the program waits for requests between
/// batches.
const ENOUGH: f64 = 0.75;

/// The other threads of a program count as idle if they ran, or waited for a core, for at most this share of the time.
/// A compiler among them has then finished its work.
const AT_REST: f64 = 0.1;

/// The time of a batch has decreased if it is below this share of its earlier value.
const FASTER: f64 = 0.98;

impl Suite {
    /// Warms a case up in a fresh process. The first process also determines the iterations of case and tare, after the
    /// check of the case has passed. Returns false if the case failed. Replaces a program that has ended by a new one.
    pub(crate) fn settle(
        &mut self,
        index: usize,
        program: &mut BenchProgram,
        first: bool,
    ) -> Result<bool, Stop> {
        let result = if first { self.calibrate(index, program) } else { self.warm_up(index, program) };
        self.tolerate(index, program, result)
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

    fn calibrate(&mut self, index: usize, program: &mut BenchProgram) -> Result<(), BenchError> {
        self.check(index, program)?;
        let first = self.find_iterations(index, program, LoopKind::Case, 1)?;
        self.weighed[index].iterations = first;
        // The warm-up must run enough iterations of the tare, so that it is warm when its number is determined.
        self.weighed[index].tare_iterations = self.find_iterations(index, program, LoopKind::Tare, first)?;
        self.warm_up(index, program)?;
        let iterations = self.find_iterations(index, program, LoopKind::Case, first)?;
        self.weighed[index].iterations = iterations;
        // The iterations of the case are a good start, since the tare is rarely slower than its case.
        let first = self.weighed[index].tare_iterations.max(iterations);
        self.weighed[index].tare_iterations = self.find_iterations(index, program, LoopKind::Tare, first)?;
        let began = Instant::now();
        let batch = self.batch(index, program, LoopKind::Case, iterations)?;
        let mut time = Duration::from_nanos(length(&batch).unwrap_or(0.0) as u64);
        if self.weighed[index].case.per_iteration_input {
            self.batch(index, program, LoopKind::Tare, self.weighed[index].tare_iterations)?;
            time = began.elapsed();
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

    fn warm_up(&self, index: usize, program: &mut BenchProgram) -> Result<(), BenchError> {
        let weighed = &self.weighed[index];
        let cases = self.weighed.len().max(1) as f64;
        let compiled = self.sides[weighed.side].hello.as_ref().is_some_and(compiles_at_run_time);
        // Very many cases are warmed up by one or two batches each.
        let (time, round, most) = match compiled {
            true => {
                let time = COMPILED_WARM_UP.min((self.effort.budget / 20).div_f64(cases));
                (time, time / 2, self.effort.budget / COMPILED_SHARE)
            }
            false => {
                let time = WARM_UP.min((self.effort.budget / 50).div_f64(cases));
                (time, time, PATIENCE * time)
            }
        };
        let began = Instant::now();
        // `had` is the time that the busiest thread ran, and `all` the time that all threads ran.
        let (mut times, mut had, mut all) = (Vec::new(), Duration::ZERO, Duration::ZERO);
        loop {
            let (started, before) = (Instant::now(), program.threads().filter(|_| compiled));
            loop {
                let batch = self.batch(index, program, LoopKind::Case, weighed.iterations)?;
                self.batch(index, program, LoopKind::Tare, weighed.tare_iterations)?;
                times.push(length(&batch).unwrap_or(0.0));
                if started.elapsed() >= round {
                    break;
                }
            }
            let elapsed = started.elapsed();
            let since = before.and_then(|before| Some(program.threads()?.since(&before)));
            had += since.map_or(elapsed, |since| Duration::from_nanos(since.busiest_ran));
            all += since.map_or(elapsed, |since| Duration::from_nanos(since.ran));
            let at_rest =
                since.is_none_or(|since| since.others as f64 <= AT_REST * elapsed.as_nanos() as f64);
            let enough = had >= time.mul_f64(ENOUGH) && at_rest && steady(&times);
            if enough || all >= PATIENCE * time || began.elapsed() >= most.max(time) {
                return Ok(());
            }
        }
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

/// Whether functions become faster while the program runs, because it has a just-in-time compiler.
fn compiles_at_run_time(hello: &Hello) -> bool {
    matches!(hello.language.as_str(), "java" | "javascript" | "js") || hello.runtime.starts_with("pypy")
}

/// Whether the times have stopped decreasing: the second half has none that is notably below the best of the first
/// half.
fn steady(times: &[f64]) -> bool {
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let (first, second) = times.split_at(times.len() / 2);
    !first.is_empty() && least(second) >= FASTER * least(first)
}
