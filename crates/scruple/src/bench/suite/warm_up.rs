//! Runs cases in a fresh process before they are timed. Code of a just-in-time compiler becomes faster meanwhile.

use super::calibrate::Calibration;
use super::cases::{Cases, Weighed};
use super::effort::MANY;
use super::programs::Programs;
use super::readings::length;
use super::record::SuiteRecord;
use crate::fault::Stop;
use scruple_core::harmless_text::list_names;
use scruple_core::protocol::{Hello, LoopKind};
use scruple_measure::bench::{BenchError, BenchProgram};
use scruple_measure::scheduler_waits::ThreadTimes;
use std::time::{Duration, Instant};

/// The shortest warm-up of a case in a process. Just-in-time compilers need the longer one, until they have seen the
/// code often enough. On a busy machine, only time in which the program had a core counts.
const WARM_UP: Duration = Duration::from_millis(2);
const COMPILED_WARM_UP: Duration = Duration::from_millis(10);

/// The smallest number of iterations in JavaScript, if a batch has at least `SEVERAL`. While a loop runs for long at each
/// call but was not called for many iterations, V8 compiles only its rest; later the whole loop, with the body in it. In
/// Node.js 20 that happens after 1800 to 2240 iterations, and a body of 1.26 µs then takes 1.09 µs. The longer a body, the
/// smaller is the difference: 1.5 % for 5 µs, and nothing for 30 µs.
const COMPILED_ITERATIONS: u64 = 2500;
const SEVERAL: u64 = 12;

/// The smallest number of iterations in Java, unless they take longer than `CALLED_PATIENCE` times the shortest warm-up.
/// HotSpot interprets a method until its 200th call, and optimises it after 600 to 5000 calls. A body that is not called
/// often enough in the shortest warm-up is in a steady state, but not in its last: String.format took 147 µs, and takes
/// 6.6 µs after 10,000 calls.
const CALLED: u64 = 10_000;
const CALLED_PATIENCE: u32 = 8;

/// The smallest number of iterations in Java, unless they alone take longer than twice that. The compiler's threads may
/// have had the running time of a case that was hardly called.
const CALLED_AT_LEAST: u64 = 700;

/// The largest share of the budget that the warm-up of a case takes if the program has a just-in-time compiler and the
/// machine is busy. A share that is divided among the cases is too short: on a busy machine code is not compiled by
/// then.
const COMPILED_SHARE: u32 = 10;

/// The largest multiple of the shortest warm-up that a case gets while it keeps becoming faster.
const PATIENCE: u32 = 8;
const COMPILED_PATIENCE: u32 = 64;

/// The share of the shortest warm-up that suffices as running time, because the program waits for requests between
/// batches.
const ENOUGH: f64 = 0.75;

/// The threads of a program count as idle if they ran, or waited for a core, for at most this share of the time. A
/// compiler among them has then finished its work.
const AT_REST: f64 = 0.1;

/// The pause between two readings of a program's threads while its compiler works.
const LOOK: Duration = Duration::from_millis(1);

/// The time of a batch has decreased if it is below this share of its earlier value.
const FASTER: f64 = 0.98;

/// A case whose second half is faster by this share when the warm-up has to end is called cold. A smaller share may come
/// from other programs on the machine.
const MUCH_FASTER: f64 = 0.9;

/// The warm-up of one case so far.
#[derive(Default)]
struct Warmth {
    /// The times of an iteration of the case and of the tare in the batches, in nanoseconds.
    times: [Vec<f64>; 2],
    /// The iterations of the case.
    iterations: u64,
    /// How long the case was run, how long the busiest thread ran meanwhile, and how long all threads ran.
    elapsed: Duration,
    had: Duration,
    all: Duration,
}

impl Warmth {
    /// Whether so many iterations ran that a compiler of Java has seen the body, or as many as fit into this time at the
    /// best speed so far.
    fn is_called(&self, time: Duration) -> bool {
        let fastest = least(&self.times[0]);
        self.iterations >= CALLED_AT_LEAST || self.iterations as f64 * fastest >= time.as_nanos() as f64
    }

    /// Whether neither the case nor the tare still becomes faster: see [`steady`].
    fn is_steady(&self, share: f64) -> bool {
        self.times.iter().all(|times| steady(times, share))
    }
}

/// How the cases of a suite are warmed up.
pub(super) struct CaseWarmUp<'a> {
    programs: &'a Programs,
    /// The measuring time of the suite, and the number of its cases.
    budget: Duration,
    cases: usize,
    /// In the first process, how iterations are added while cases become faster.
    calibration: Option<Calibration<'a>>,
}

impl<'a> CaseWarmUp<'a> {
    pub(super) fn new(programs: &'a Programs, budget: Duration, cases: usize, first: bool) -> CaseWarmUp<'a> {
        let calibration = first.then(|| Calibration::new(programs, budget, cases));
        CaseWarmUp { programs, budget, cases, calibration }
    }

    /// Whether the cases of this program are warmed up in turn, since its compiler works on all of them at once. Very
    /// many cases are warmed up by one or two batches each.
    pub(super) fn is_in_turn(&self, weighed: &Weighed) -> bool {
        self.cases <= MANY && self.compiles(weighed)
    }

    fn compiles(&self, weighed: &Weighed) -> bool {
        self.hello(weighed).is_some_and(compiles_at_run_time)
    }

    fn hello(&self, weighed: &Weighed) -> Option<&Hello> {
        self.programs.sides[weighed.side].hello.as_ref()
    }

    /// Warms up a case before it is counted, if its code is compiled while it runs: optimised code may not create
    /// objects that other code creates.
    pub(super) fn before_counting(
        &self,
        weighed: &Weighed,
        program: &mut BenchProgram,
    ) -> Result<(), BenchError> {
        match self.is_in_turn(weighed) {
            true => self.alone(&mut weighed.clone(), program),
            false => Ok(()),
        }
    }

    /// Warms up one case.
    pub(super) fn alone(&self, weighed: &mut Weighed, program: &mut BenchProgram) -> Result<(), BenchError> {
        let mut warmth = Warmth::default();
        let mut compiler = Compiler::of(self.compiles(weighed), self.longest());
        while !self.round(weighed, program, &mut warmth, compiler.is_at_rest)? {
            warmth.elapsed += compiler.wait(program);
        }
        Ok(())
    }

    /// Warms up these cases of one program round by round: while its compiler works on one case, the next one runs.
    pub(super) fn in_turn(
        &self,
        cases: &mut [&mut Weighed],
        record: &mut SuiteRecord,
        program: &mut BenchProgram,
    ) -> Result<(), Stop> {
        let mut cold: Vec<(usize, Warmth)> =
            (0..cases.len()).map(|index| (index, Warmth::default())).collect();
        let mut compiler = Compiler::of(true, self.longest());
        loop {
            for (index, mut warmth) in std::mem::take(&mut cold) {
                self.programs.stop_if_interrupted()?;
                let weighed = &mut *cases[index];
                if !weighed.is_open() {
                    continue;
                }
                let result = self.round(weighed, program, &mut warmth, compiler.is_at_rest);
                let warm = *result.as_ref().unwrap_or(&true);
                self.programs.tolerate(weighed, record, program, result)?;
                if !warm {
                    cold.push((index, warmth));
                }
            }
            let waited = compiler.wait(program);
            if cold.is_empty() {
                return Ok(());
            }
            cold.iter_mut().for_each(|(_, warmth)| warmth.elapsed += waited);
        }
    }

    /// The longest warm-up of a case if the program has a just-in-time compiler.
    fn longest(&self) -> Duration {
        self.budget / COMPILED_SHARE
    }

    /// Runs batches for a part of the shortest warm-up, and returns whether the case is warm. `at_rest` says whether the
    /// program's compiler had finished its work before.
    fn round(
        &self,
        weighed: &mut Weighed,
        program: &mut BenchProgram,
        warmth: &mut Warmth,
        at_rest: bool,
    ) -> Result<bool, BenchError> {
        let cases = self.cases.max(1) as f64;
        let compiled = self.compiles(weighed);
        let (time, round, most, patience) = match compiled {
            true => {
                let time = COMPILED_WARM_UP.min((self.budget / 20).div_f64(cases));
                (time, time / 2, self.longest(), COMPILED_PATIENCE)
            }
            false => {
                let time = WARM_UP.min((self.budget / 50).div_f64(cases));
                (time, time, PATIENCE * time, PATIENCE)
            }
        };
        let (started, before) = (Instant::now(), program.threads().filter(|_| compiled));
        loop {
            let batch = self.programs.batch(weighed, program, LoopKind::Case, weighed.iterations)?;
            let tare = self.programs.batch(weighed, program, LoopKind::Tare, weighed.tare_iterations)?;
            let each = |batch, iterations| length(batch).unwrap_or(0.0) / iterations as f64;
            warmth.times[0].push(each(&batch, weighed.iterations));
            warmth.times[1].push(each(&tare, weighed.tare_iterations));
            warmth.iterations += weighed.iterations;
            if let (Some(calibration), true) = (&self.calibration, compiled) {
                calibration.grow(weighed, &batch, &tare);
            }
            if started.elapsed() >= round {
                break;
            }
        }
        let elapsed = started.elapsed();
        let since = before.and_then(|before| Some(program.threads()?.since(&before)));
        warmth.elapsed += elapsed;
        warmth.had += since.map_or(elapsed, |since| Duration::from_nanos(since.busiest_ran));
        warmth.all += since.map_or(elapsed, |since| Duration::from_nanos(since.ran));
        // Whether the body was called often, and at least so often that it is not called cold.
        let (called, seen) = match self.hello(weighed) {
            Some(hello) if compiles_a_running_loop(hello) => {
                let whole = is_compiled_whole(weighed.iterations, warmth.times[0].len() as u64);
                (whole, whole)
            }
            Some(hello) if hello.language == "java" => {
                let most = CALLED_PATIENCE * time;
                let often = warmth.had >= most && warmth.is_called(2 * most);
                (warmth.iterations >= CALLED || often, warmth.is_called(most / 2))
            }
            _ => (true, true),
        };
        let enough = warmth.had >= time.mul_f64(ENOUGH) && at_rest && called && warmth.is_steady(FASTER);
        let ends = enough || warmth.all >= patience * time || warmth.elapsed >= most.max(time);
        if ends && compiled {
            weighed.warmed += 1;
            weighed.not_warm += u32::from(!seen || !warmth.is_steady(MUCH_FASTER));
        }
        Ok(ends)
    }
}

/// Adds a remark about the cases that were not warm when they were timed, in at least half of the processes.
pub(super) fn add_remark(cases: &Cases, record: &mut SuiteRecord) {
    let is_cold = |weighed: &&Weighed| weighed.not_warm > 0 && 2 * weighed.not_warm >= weighed.warmed;
    let cold = cases.weighed.iter().filter(|weighed| weighed.is_open()).filter(is_cold);
    let names: Vec<&str> = cold.map(|weighed| record.name(weighed)).collect();
    if names.is_empty() {
        return;
    }
    let (was, them) = if names.len() == 1 { ("was", "it") } else { ("were", "them") };
    let text = format!(
        "{} {was} timed before the compiler had seen {them} often enough, and may be faster in a program that runs for \
         longer; a larger --budget warms up for longer",
        list_names(&names)
    );
    record.run.warn("not-warm", text);
}

/// The just-in-time compiler of a program, which works in threads of its own.
struct Compiler {
    /// Whether it had finished its work when that was last looked at; true if there is none.
    is_at_rest: bool,
    /// The longest wait for that.
    most: Duration,
}

impl Compiler {
    fn of(exists: bool, most: Duration) -> Compiler {
        Compiler { is_at_rest: !exists, most: if exists { most } else { Duration::ZERO } }
    }

    /// Waits until it has finished its work: it does that sooner if the program itself does not run. Returns the time
    /// that this took.
    fn wait(&mut self, program: &BenchProgram) -> Duration {
        let began = Instant::now();
        let mut before = program.threads();
        while began.elapsed() < self.most {
            let started = Instant::now();
            std::thread::sleep(LOOK);
            let now = program.threads();
            let since = now.as_ref().zip(before.as_ref()).map(|(now, before)| now.since(before));
            let idle =
                |since: ThreadTimes| since.active as f64 <= AT_REST * started.elapsed().as_nanos() as f64;
            self.is_at_rest = since.is_none_or(idle);
            if self.is_at_rest {
                break;
            }
            before = now;
        }
        began.elapsed()
    }
}

/// Whether functions become faster while the program runs, because it has a just-in-time compiler.
fn compiles_at_run_time(hello: &Hello) -> bool {
    hello.language == "java" || compiles_a_running_loop(hello) || hello.runtime.starts_with("pypy")
}

/// Whether the rest of a loop that runs is compiled in another way than the whole loop.
fn compiles_a_running_loop(hello: &Hello) -> bool {
    matches!(hello.language.as_str(), "javascript" | "js")
}

/// Whether enough batches, with enough iterations, ran that a compiler has compiled the whole loop.
const fn is_compiled_whole(iterations: u64, batches: u64) -> bool {
    iterations < SEVERAL || iterations.saturating_mul(batches) >= COMPILED_ITERATIONS
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Whether the times have stopped decreasing: the second half has none below this share of the best of the first half.
fn steady(times: &[f64], share: f64) -> bool {
    let (first, second) = times.split_at(times.len() / 2);
    !first.is_empty() && least(second) >= share * least(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_java_is_called_often_unless_it_takes_long() {
        let after = |iterations, time| Warmth {
            iterations,
            times: [vec![2.0 * time, time], vec![]],
            ..Warmth::default()
        };
        let most = Duration::from_millis(160);
        assert!(!after(300, 243_000.0).is_called(most), "String.format in the interpreter, after 73 ms");
        assert!(after(700, 7_000.0).is_called(most) && after(160, 1e6).is_called(most));
    }

    #[test]
    fn a_loop_of_a_compiler_is_run_for_many_iterations_unless_its_body_is_long() {
        assert!(!is_compiled_whole(92, 25), "the loop around a body of a microsecond, after 10 ms");
        assert!(is_compiled_whole(92, 28) && is_compiled_whole(u64::MAX, 2));
        assert!(is_compiled_whole(3, 1), "a body of 30 µs");
    }
}
