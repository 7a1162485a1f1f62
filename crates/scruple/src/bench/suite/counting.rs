//! The counting pass of a suite: the allocations and collections of one iteration of each case, net of its tare.

use super::cases::{Cases, Weighed};
use super::counting_plan::{self, CountingPlan, CountingVisit, SLOW};
use super::effort::SuiteEffort;
use super::own_time::OwnTime;
use super::programs::{Programs, reason};
use super::progress_screen::ProgressScreen;
use super::rare_events::{self, RareEvents, has_long_batches, is_rare};
use super::readings::{declaration, length, net_readings};
use super::record::SuiteRecord;
use super::uncounted::UncountedCases;
use super::warm_up::CaseWarmUp;
use crate::fault::Stop;
use crate::progress::in_words;
use scruple_core::metric::{Pass, Quality, metric};
use scruple_core::protocol::{Batch, BatchReply, Counter, Hello, LoopKind};
use scruple_core::sample::Reading;
use scruple_core::unit::{Unit, exact as text};
use scruple_measure::bench::{BenchError, BenchProgram};
use scruple_measure::heap;
use scruple_stats::quantile::median;
use std::time::Duration;

/// The required ratio of the count of a coarse counter to its resolution, and the length of a batch at which iterations
/// are no longer added to reach it.
const CLEAR: f64 = 100.0;
const LONGEST: Duration = Duration::from_millis(2);

/// The largest number of iterations over which a nearly exact counter is read, so that the error of a reading hardly
/// counts: Go counts 16 bytes for an object of 8 bytes that begins a block for two objects, and nothing for the second
/// object.
const IN_A_ROW: u64 = 64;

/// The counting pass of a suite.
pub(super) struct CountingPass<'a> {
    pub(super) programs: &'a Programs,
    pub(super) cases: &'a Cases,
    pub(super) record: &'a mut SuiteRecord,
    pub(super) effort: &'a SuiteEffort,
    pub(super) screen: &'a ProgressScreen,
}

impl CountingPass<'_> {
    /// Counts every case that the budget suffices for.
    pub(super) fn run(mut self) -> Result<(), Stop> {
        let cases = self.cases;
        let mut plan = CountingPlan::new(cases, self.effort, &cases.declared.starting);
        let mut running: Option<CountingProcess> = None;
        let mut findings = CountingFindings::default();
        let (mut next, mut is_announced, mut is_last) = (0, false, false);
        loop {
            if next == plan.len() && (is_last || !plan.once_more(&self.record.run, cases)) {
                break;
            }
            is_last |= plan.visit(next).process == counting_plan::PROCESSES;
            self.programs.stop_if_interrupted()?;
            if plan.share_from(next, cases) {
                next = 0;
                continue;
            }
            let at = next;
            next += 1;
            let visit = plan.visit(at);
            let weighed = &cases.weighed[visit.case];
            if !weighed.is_open() {
                continue;
            }
            let is_new = running.as_ref().is_none_or(|process| !process.serves(weighed.side, visit));
            if self.has_spent_tight_budget(is_new) {
                self.remark_on_rest(cases.len() - visit.case, visit.process);
                break;
            }
            let decides = || counting_plan::decides(&self.record.run.terms.limits, self.record.name(weighed));
            if let Some(time) = plan.too_long(at).filter(|_| !decides()) {
                self.leave_out(weighed, visit, time, &mut findings.uncounted);
                continue;
            }
            self.announce(&plan, at, &mut is_announced);
            let mut time = OwnTime::start(program_of(&running).filter(|_| !is_new));
            if is_new {
                if let Some(process) = running.take() {
                    process.program.finish();
                }
                running = self.start_for(weighed, visit)?;
                if !visit.alone {
                    plan.started(time.so_far(None).elapsed);
                    time = OwnTime::start(program_of(&running));
                }
            }
            let Some(process) = running.take() else { continue };
            running = self.carry_out(weighed, visit, process, &mut findings)?;
            plan.took(at, time.so_far(program_of(&running)));
        }
        if let Some(process) = running {
            process.program.finish();
        }
        if plan.counts_once() {
            let text = "allocations are counted in one process only: the program takes longer to start than --budget allows";
            self.record.run.warn("left-out", text.to_owned());
        }
        std::mem::take(&mut findings.rare).keep(self.record);
        findings.uncounted.add_remarks(self.record, self.effort.budget);
        self.remark_on_first(&findings.first);
        self.remark_on_many(&findings.over_many);
        Ok(())
    }

    /// Whether the budget of all passes together, if there is one, does not suffice for the next visit.
    fn has_spent_tight_budget(&self, starts_a_process: bool) -> bool {
        self.cases.declared.tight_budget.as_ref().is_some_and(|budget| {
            let needed = if starts_a_process { budget.starting } else { Duration::ZERO };
            !self.effort.counts_decide && budget.left() <= needed
        })
    }

    /// Shows which visit comes next, and says once how long all of them take if that is long.
    fn announce(&self, plan: &CountingPlan, at: usize, is_announced: &mut bool) {
        let time = plan.announcement(at);
        if let Some(time) = time.filter(|_| at > 0 && !*is_announced) {
            *is_announced = true;
            let unlimited = self.effort.counts_without_limit();
            self.screen.progress.say(&counting_plan::announced("allocations", time, unlimited));
        }
        let rest = time.map_or(String::new(), |time| format!(" · about {} left", in_words(time)));
        let name = self.record.name(&self.cases.weighed[plan.visit(at).case]);
        self.screen.progress.steps(&format!("counting{rest}"), at, plan.len(), name);
    }

    /// Starts the process of a visit; `None` if it does not start. The figures of the case then give the reason.
    fn start_for(
        &mut self,
        weighed: &Weighed,
        visit: CountingVisit,
    ) -> Result<Option<CountingProcess>, Stop> {
        match self.start(weighed.side) {
            Ok((program, hello)) => {
                Ok(Some(CountingProcess { side: weighed.side, first_visit: visit, program, hello }))
            }
            Err(error) => {
                self.absent(weighed, &reason(&error)?);
                Ok(None)
            }
        }
    }

    /// Counts a case in this process, and returns the process if it can serve others.
    fn carry_out(
        &mut self,
        weighed: &Weighed,
        visit: CountingVisit,
        mut process: CountingProcess,
        findings: &mut CountingFindings,
    ) -> Result<Option<CountingProcess>, Stop> {
        let more = match self.count(weighed, visit, &mut process.program, &process.hello) {
            Ok(more) => more.filter(|_| visit.process == 0),
            Err(error) => {
                let why = reason(&error)?;
                self.absent(weighed, &why);
                findings.uncounted.failed.insert(weighed.arm, why);
                return Ok(None);
            }
        };
        findings.first.extend(more.map(|bytes| (weighed.arm, bytes)));
        let over_many = self.over_many(weighed, visit, &mut process.program, &process.hello);
        let (rare, share) = (&mut findings.rare, self.effort.budget / self.cases.len().max(1) as u32);
        let found = over_many.and_then(|found| {
            let counters = &process.hello.counters;
            rare.read(self.programs, (weighed, visit, share), &mut process.program, counters).map(|()| found)
        });
        match found {
            Ok(found) => {
                findings.over_many.extend(found);
                Ok(Some(process))
            }
            Err(error) => {
                findings.uncounted.failed.insert(weighed.arm, reason(&error)?);
                Ok(None)
            }
        }
    }

    /// Leaves out one visit of a case, for which the budget does not suffice.
    fn leave_out(
        &mut self,
        weighed: &Weighed,
        visit: CountingVisit,
        time: Duration,
        uncounted: &mut UncountedCases,
    ) {
        if visit.process == 0 {
            let budget = in_words(self.effort.budget);
            let why = format!(
                "counting it takes about {}, and the budget of {budget} for counting was spent",
                in_words(time)
            );
            self.absent(weighed, &why);
            uncounted.whole.insert(weighed.arm);
        } else if visit.process < counting_plan::PROCESSES && !uncounted.whole.contains(&weighed.arm) {
            uncounted.in_part.insert(weighed.arm);
        }
    }

    /// Adds a remark about the cases that the budget did not suffice for, if there are very many.
    fn remark_on_rest(&mut self, rest: usize, process: u32) {
        let what = if process == 0 { "not counted" } else { "counted in one process only" };
        let text = format!("allocations of {rest} cases are {what}: the budget ended");
        self.record.run.warn("left-out", text);
    }

    /// Starts a fresh process, with the allocation counter if it can be attached.
    fn start(&self, side: usize) -> Result<(BenchProgram, Hello), BenchError> {
        let countable = heap::measurable(&self.programs.sides[side].program.path).is_ok();
        self.programs.start(side, 0, Some(countable))
    }

    /// Counts a case. Returns how many more bytes the first iteration allocated, if it allocated notably more.
    fn count(
        &mut self,
        weighed: &Weighed,
        visit: CountingVisit,
        program: &mut BenchProgram,
        hello: &Hello,
    ) -> Result<Option<f64>, BenchError> {
        let by_batch = |counter: &&Counter| is_rare(counter) && has_long_batches(weighed);
        let counters: Vec<Counter> = hello.counters.iter().filter(|one| !by_batch(one)).cloned().collect();
        if counters.is_empty() {
            return Ok(None);
        }
        if weighed.case.concurrency.is_some() {
            // The cost of an element is an average over many, because a queue allocates in chunks, and for waiting
            // threads.
            let noisy = |counter| Counter { quality: Quality::Noisy, ..counter };
            let counters: Vec<Counter> = counters.into_iter().map(noisy).collect();
            return self.count_these((weighed, visit), program, &counters, weighed.iterations);
        }
        let fine = counters.iter().all(|counter| counter.quality <= Quality::Near);
        let (coarse, others): (Vec<Counter>, Vec<Counter>) =
            counters.into_iter().partition(|counter| counter.granularity.is_some());
        let in_a_row = |counter: &Counter| {
            fine && counter.quality == Quality::Near && !counter.per_batch && !weighed.case.first
        };
        let (near, others): (Vec<Counter>, Vec<Counter>) = others.into_iter().partition(in_a_row);
        // Sampling counters need many iterations to show a difference; exact ones are clearest over one iteration.
        let mut groups =
            [(others, if fine { 1 } else { weighed.iterations }), (near, weighed.iterations.min(IN_A_ROW))];
        // The first iteration in the process is that of the first group.
        groups.sort_by_key(|(counters, _)| !counters.iter().any(allocates));
        let mut more = None;
        for (counters, iterations) in groups.iter().filter(|(counters, _)| !counters.is_empty()) {
            let found = self.count_these((weighed, visit), program, counters, *iterations)?;
            more = more.or(found);
        }
        if coarse.is_empty() {
            return Ok(more);
        }
        let iterations = self.clear_iterations(weighed, program, &coarse)?;
        self.count_these((weighed, visit), program, &coarse, iterations)?;
        Ok(more)
    }

    /// Returns the number of iterations at which the counts of coarse counters are large compared with their
    /// resolution.
    fn clear_iterations(
        &self,
        weighed: &Weighed,
        program: &mut BenchProgram,
        counters: &[Counter],
    ) -> Result<u64, BenchError> {
        let first = weighed.iterations.max(1);
        let batch = self.programs.batch(weighed, program, LoopKind::Case, first)?;
        let wanted = counters.iter().filter_map(|counter| {
            let step = counter.granularity?;
            Some(CLEAR * 2.0 * step / batch.reading(&counter.key)?.max(step))
        });
        let affordable = LONGEST.as_nanos() as f64 / length(&batch).unwrap_or(0.0).max(1.0);
        let times = wanted.fold(1.0, f64::max).min(affordable).max(1.0);
        let most = weighed.case.max_iterations.unwrap_or(u64::MAX);
        Ok(((first as f64 * times).ceil() as u64).min(most))
    }

    /// Reads these counters over this many iterations.
    fn count_these(
        &mut self,
        (weighed, visit): (&Weighed, CountingVisit),
        program: &mut BenchProgram,
        counters: &[Counter],
        iterations: u64,
    ) -> Result<Option<f64>, BenchError> {
        let pair = weighed.pair(iterations);
        let warm_up = CaseWarmUp::new(self.programs, self.effort.budget, self.cases.len(), false);
        let repeats = if weighed.case.first { 0 } else { visit.repeats };
        // Between two blocks, a runtime may move the program to a processor for which it keeps no objects to use again:
        // the first iteration there allocates them. A long batch has a block of its own, because of the time limit.
        let length = counting_plan::iteration_of(weighed).mul_f64(iterations as f64);
        let is_one_block = !warm_up.is_in_turn(weighed) && length <= SLOW;
        let together = if is_one_block { repeats } else { 0 };
        // The additional allocations of the first iteration show most clearly in a batch of one.
        let by_itself =
            iterations <= IN_A_ROW && counters.iter().all(|counter| counter.granularity.is_none());
        let first = pair.map(|batch| Batch { iterations: if by_itself { 1 } else { iterations }, ..batch });
        let batches = [first.to_vec(), pair.repeat(together as usize)].concat();
        let replies = self.programs.block(weighed, program, batches)?;
        let mut taken: Vec<Vec<BatchReply>> = replies.chunks(pair.len()).map(<[_]>::to_vec).collect();
        let first = taken[0].clone();
        if repeats > 0 {
            taken.remove(0);
            warm_up.before_counting(weighed, program)?;
        }
        for _ in together..repeats {
            taken.push(self.programs.block(weighed, program, pair.to_vec())?);
        }
        for (repeat, replies) in taken.iter().enumerate() {
            let mut readings = net_readings(counters, replies);
            if !weighed.case.first {
                rare_events::add_possible_errors(&mut readings, iterations);
            }
            self.record.keep(
                weighed.arm,
                Pass::Counting,
                visit.process * visit.repeats + repeat as u32,
                readings,
            );
        }
        Ok(taken.first().and_then(|warm| more_at_first(counters, &first, warm)))
    }

    /// Runs a batch of the length that is timed, once for each case. Returns the mean allocations of its iterations if
    /// they are more than the figure, which is that of a single iteration: a body whose state grows may allocate a lot
    /// now and then.
    fn over_many(
        &mut self,
        weighed: &Weighed,
        visit: CountingVisit,
        program: &mut BenchProgram,
        hello: &Hello,
    ) -> Result<Option<OverMany>, BenchError> {
        let counter = hello.counters.iter().find(|counter| allocates(counter));
        let Some(counter) = counter.filter(|counter| {
            visit.process == 0
                && counter.quality <= Quality::Near
                && counter.granularity.is_none()
                && weighed.iterations > 1
                && weighed.case.concurrency.is_none()
                && !weighed.case.first
        }) else {
            return Ok(None);
        };
        let [tare, case] = weighed.pair(weighed.iterations);
        let after_wait = Batch { iterations: 1, ..case };
        let replies = self.programs.block(weighed, program, vec![after_wait, tare, case])?;
        let mean = net_of(counter, &replies[1..]);
        let arm = &self.record.run.arms[weighed.arm];
        let one = arm.sample(&declaration(counter).key).map(|sample| median(&sample.readings));
        let swing = if counter.quality == Quality::Exact { 1.0 } else { 64.0 };
        Ok(mean
            .zip(one)
            .filter(|(mean, one)| *mean > one + swing && *mean > 1.05 * one)
            .map(|(mean, one)| OverMany { arm: weighed.arm, one, mean, iterations: weighed.iterations }))
    }

    /// Adds one remark about the cases whose counted iteration allocates less than the mean of many.
    fn remark_on_many(&mut self, found: &[OverMany]) {
        let share = |of: &&OverMany| of.mean / of.one.max(1.0);
        let Some(most) = found.iter().max_by(|a, b| share(a).total_cmp(&share(b))) else { return };
        let text = |bytes: f64| text(bytes.round(), &Unit::Bytes);
        let others = match found.len() {
            1 => String::new(),
            cases => format!(" (and {} more)", cases - 1),
        };
        let message = format!(
            "an iteration of ‘{}’{others} allocates {}, but {} iterations in a row allocate {} each on \
                average: the figure leaves out those that allocate more",
            self.record.run.arms[most.arm].name,
            text(most.one),
            most.iterations,
            text(most.mean)
        );
        self.record.run.warn("iterations-differ", message);
    }

    /// Adds one remark about how much the first iterations of all cases allocate beyond the later ones. This is
    /// one-time setup, which the figures do not include.
    fn remark_on_first(&mut self, more: &[(usize, f64)]) {
        let text = |bytes: f64| text(bytes, &Unit::Bytes);
        let name = |position: usize| &self.record.run.arms[position].name;
        let least = more.iter().map(|(_, bytes)| *bytes).fold(f64::INFINITY, f64::min);
        let Some((position, most)) = more.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        let message = match more.len() {
            1 => format!(
                "the first iteration of ‘{}’ allocates {} more than later ones, which the figures leave out",
                name(*position),
                text(*most)
            ),
            cases => format!(
                "the first iterations of {cases} cases allocate {} to {} (‘{}’) more than later ones, which the figures leave out",
                text(least),
                text(*most),
                name(*position)
            ),
        };
        self.record.run.warn("first-iteration", message);
    }

    fn absent(&mut self, weighed: &Weighed, why: &str) {
        let readings = ["alloc.bytes", "malloc.bytes"]
            .iter()
            .filter_map(|key| metric(key))
            .map(|metric| Reading::absent(metric, why))
            .collect();
        self.record.keep(weighed.arm, Pass::Counting, 0, readings);
    }
}

/// A process that counts, and the visit for which it was started.
struct CountingProcess {
    side: usize,
    first_visit: CountingVisit,
    program: BenchProgram,
    hello: Hello,
}

impl CountingProcess {
    /// Whether the process also serves another visit.
    fn serves(&self, side: usize, visit: CountingVisit) -> bool {
        let is_shared = !visit.alone && !self.first_visit.alone;
        self.side == side && is_shared && self.first_visit.process == visit.process
    }
}

fn program_of(process: &Option<CountingProcess>) -> Option<&BenchProgram> {
    process.as_ref().map(|process| &process.program)
}

/// What the remarks of the pass are about.
#[derive(Default)]
struct CountingFindings {
    /// The arms whose first iteration allocates notably more than later ones, and how many bytes more.
    first: Vec<(usize, f64)>,
    over_many: Vec<OverMany>,
    rare: RareEvents,
    uncounted: UncountedCases,
}

/// A case whose iterations in a row allocate more on average than a single one.
struct OverMany {
    arm: usize,
    /// The bytes of one iteration, and the mean over this many in a row.
    one: f64,
    mean: f64,
    iterations: u64,
}

/// Whether a counter counts the bytes that a body allocates.
fn allocates(counter: &Counter) -> bool {
    ["alloc.bytes", "malloc.bytes"].contains(&counter.key.as_str())
}

/// Returns the reading of a counter for one iteration, less the tare.
fn net_of(counter: &Counter, replies: &[BatchReply]) -> Option<f64> {
    let readings = net_readings(std::slice::from_ref(counter), replies);
    readings.into_iter().find(|reading| reading.key == counter.key).and_then(|reading| reading.value.ok())
}

/// Returns how many more bytes the first iteration allocated than a later one, if the difference is notable.
fn more_at_first(counters: &[Counter], first: &[BatchReply], warm: &[BatchReply]) -> Option<f64> {
    let counter = counters.iter().find(|counter| allocates(counter))?;
    let (cold, warm) = (net_of(counter, first)?, net_of(counter, warm)?);
    // Counters that are not exact vary by a few kilobytes even if the program does the same.
    let swing = if counter.quality <= Quality::Near { 64.0 } else { 8192.0 };
    (cold > warm + swing && cold > 1.05 * warm).then_some(cold - warm)
}
