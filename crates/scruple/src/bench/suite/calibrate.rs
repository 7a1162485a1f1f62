//! Finds the number of iterations that makes a batch about a tenth of a millisecond long.

use super::answers::{fault_in, unexpected, wrong};
use super::{Stop, Suite, reason, survives};
use scruple_core::protocol::{Batch, BatchReply, Hello, LoopKind, Reply, Request};
use scruple_measure::bench::{BenchError, BenchProgram};
use std::time::{Duration, Instant};

/// The length of a batch: short enough that most batches fit between two interruptions by the scheduler.
const TARGET: f64 = 100_000.0;

/// The number of batches of each case, and as many of its tare, that should fit into the budget, and the length in
/// nanoseconds below which a batch consists mostly of clock reads.
const VISITS: f64 = 100.0;
const SHORTEST: f64 = 10_000.0;

/// Where every iteration has its own input, a batch takes at least this long, including its preparation, before a
/// budget makes it smaller.
const WHOLE: Duration = Duration::from_millis(1);

/// How often another number of iterations is tried: a few times to get from one iteration to enough, and as often again
/// where attempts are interrupted.
const ATTEMPTS: u32 = 16;

/// Concurrency cases move elements between threads: their batches must be long compared with starting threads.
const QUEUE_TARGET: f64 = 2_000_000.0;

/// How long a case runs at least before its times count; just-in-time compilers need longer to see it often enough. On
/// a busy machine this is the time in which the program had a core.
const WARM_UP: Duration = Duration::from_millis(2);
const COMPILED_WARM_UP: Duration = Duration::from_millis(40);

/// On a busy machine, the warm-up of a case with such a compiler takes at most this share of the budget.
const COMPILED_SHARE: u32 = 10;

/// A case that keeps getting faster is warmed up for up to this many times as long.
const PATIENCE: u32 = 8;

/// This share of the least time is enough: between batches the program waits for its next request.
const ENOUGH: f64 = 0.75;

/// A program's other threads are idle if they ran, or waited for a core, for at most this share of the time: a compiler
/// among them has nothing left to do.
const AT_REST: f64 = 0.1;

/// Below this share of its earlier value, the time of a batch has decreased.
const FASTER: f64 = 0.98;

impl Suite {
    /// Warms a case up in a fresh process. The first process also sets the iterations of case and tare, after the
    /// case's check has passed. False when the case failed; a program that has ended is replaced by a new one.
    pub(crate) fn settle(
        &mut self,
        index: usize,
        program: &mut BenchProgram,
        first: bool,
    ) -> Result<bool, Stop> {
        let result = if first { self.calibrate(index, program) } else { self.warm_up(index, program) };
        self.tolerate(index, program, result)
    }

    /// Records the failure of a case. The others continue, in a new process if this one has ended.
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
        // Without enough iterations the tare would not be warm when its number is found.
        self.weighed[index].tare_iterations = self.find_iterations(index, program, LoopKind::Tare, first)?;
        self.warm_up(index, program)?;
        let iterations = self.find_iterations(index, program, LoopKind::Case, first)?;
        self.weighed[index].iterations = iterations;
        // The tare is rarely slower than its case, so the case's iterations are a good start.
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

    /// Runs the case's check once, before any of its figures count.
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

    /// Tries batches, starting with `first` iterations, until one is about as long as it should be, and derives the number.
    fn find_iterations(
        &self,
        index: usize,
        program: &mut BenchProgram,
        kind: LoopKind,
        first: u64,
    ) -> Result<u64, BenchError> {
        let weighed = &self.weighed[index];
        let queue = weighed.case.concurrency.is_some();
        // Starting several threads takes time, too, and the first to arrive waits for the last.
        let target = if queue || weighed.threads > 1 { QUEUE_TARGET } else { self.batch_length() };
        let inputs = weighed.case.per_iteration_input;
        let most = weighed.case.max_iterations.unwrap_or(1 << 40).max(1);
        // A tare that walks over inputs is extremely cheap: a long batch would need far too many inputs.
        let most = if inputs && kind == LoopKind::Tare { most.min(first) } else { most };
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
                // One try is enough for a batch that is far from the required length.
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
            // A batch that is far too long was interrupted, or ran before its loop was compiled: a shorter one tells.
            let too_long = least > 2.0 * target && iterations > 1;
            let fits = !too_long && (least >= 0.5 * target || iterations >= most);
            if fits || attempt == ATTEMPTS {
                return Ok((wanted.round().max(1.0) as u64).clamp(1, most));
            }
            // A batch that is far too short is a poor basis: grow in steps, so that a slow case is not overshot.
            iterations = match too_long {
                true => (wanted as u64).clamp(1, most),
                false => (wanted.min(iterations as f64 * 100.0).ceil() as u64).clamp(iterations + 1, most),
            };
            attempt += 1;
        }
    }

    /// The required length of batches, in nanoseconds: shorter where there are so many cases that all of them together
    /// could not be visited several times within the budget.
    fn batch_length(&self) -> f64 {
        let visits = self.weighed.len() as f64 * VISITS;
        (self.effort.budget.as_nanos() as f64 / visits).clamp(SHORTEST, TARGET)
    }

    /// The longest time of a batch including making and destroying its inputs.
    fn whole_length(&self) -> Duration {
        (self.effort.budget / 2 / (self.weighed.len() as f64 * VISITS) as u32).max(WHOLE)
    }

    fn warm_up(&self, index: usize, program: &mut BenchProgram) -> Result<(), BenchError> {
        let weighed = &self.weighed[index];
        let cases = self.weighed.len().max(1) as f64;
        let compiled = self.sides[weighed.side].hello.as_ref().is_some_and(compiles_at_run_time);
        // With very many cases, each is warmed up by a batch or two.
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
        // The processor time of the busiest thread, and of all.
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

    /// A single batch.
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

    /// Case and tare as one block, in the order given.
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

/// How long a batch kept a core busy. With several threads this is the mean processor time, since the span from the
/// first start to the last end depends more on the scheduler than on the work.
pub(crate) fn length(reply: &BatchReply) -> Option<f64> {
    let wall = reply.reading("time.wall");
    match reply.threads.len() {
        0 | 1 => wall,
        threads => {
            reply.reading("time.cpu").map(|cpu| cpu / threads as f64).filter(|time| *time > 0.0).or(wall)
        }
    }
}

/// Whether functions become faster while the program runs, because of a just-in-time compiler.
fn compiles_at_run_time(hello: &Hello) -> bool {
    matches!(hello.language.as_str(), "java" | "javascript" | "js") || hello.runtime.starts_with("pypy")
}

/// Whether the second half of these times has no better one than the first.
fn steady(times: &[f64]) -> bool {
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let (first, second) = times.split_at(times.len() / 2);
    !first.is_empty() && least(second) >= FASTER * least(first)
}
