//! The timing pass of a suite: several short fresh processes, each with blocks that visit every case.

use super::cases::{Cases, Weighed};
use super::declarations::Introduced;
use super::earlier_core::EarlierCore;
use super::effort::{MANY, SuiteEffort};
use super::loaded_code::LoadedCode;
use super::neighbours::{CoreState, Neighbours};
use super::prepare::Preparation;
use super::programs::Programs;
use super::progress_screen::ProgressScreen;
use super::record::SuiteRecord;
use super::same_iterations::KnownIterations;
use super::{
    differing_processes, earlier_nets, few_readings, growing_costs, new_memory, rare_costs, readings,
    warm_up, wide_intervals,
};
use crate::fault::{Fault, Stop};
use scruple_core::judge;
use scruple_core::judge::undisturbed_blocks::MOST_WAITED;
use scruple_core::metric::Pass;
use scruple_core::protocol::{Batch, BatchReply, LoopKind};
use scruple_core::sample::BLOCKS_OF_A_PROCESS;
use scruple_core::subject::{Arm, Subject};
use scruple_core::verdict::Verdict;
use scruple_core::visit_order::VisitOrder;
use scruple_measure::bench::{BenchError, BenchProgram};
use scruple_stats::power;
use scruple_stats::quantile::median;
use scruple_stats::rng::Pcg;
use scruple_stats::tare::RESOLUTION;
use std::time::{Duration, Instant};

/// The factors by which the number of iterations varies around the calibrated one. The variation allows separating the
/// cost of a batch from the cost of an iteration.
const JITTER: [f64; 5] = [0.5, 0.75, 1.0, 1.25, 1.5];

/// The time that a slow case gets in each process, about three times that of a fast one. A slow case needs fewer
/// readings, since the clocks and the loop are negligible compared with it, and it should not take the time of all
/// others.
const SLOW_TIME: Duration = Duration::from_millis(20);

/// The smallest number of readings that a slow case gets in each process, if the budget allows.
const SLOW_BLOCKS: u32 = 12;

/// The length from which batches are sometimes interrupted on a busy machine.
const LONG: Duration = Duration::from_micros(200);

/// Of the blocks in which the program waited for a core, one in this many counts as undisturbed. On a machine that is
/// never idle, a slow case would otherwise take part in every block.
const MADE_UP: u32 = 3;

/// The time for each case after which only the smallest number of processes is started. If five processes took this
/// long on a busy machine, more would take too long and add little. Comparisons continue until they are decided.
const PATIENCE: Duration = Duration::from_millis(300);

/// The share of the budget for calibration if there are many cases. Cases that are not calibrated by then are left out,
/// so that the others can be weighed.
const CALIBRATION: f64 = 0.5;

/// The smallest number of processes that shows how processes differ. These processes are short, and give a first
/// answer.
pub const FEW: u32 = 3;

/// A first answer needs no further process if half the width of each interval is below this share of the net.
const RIGHT: f64 = 0.01;

/// The number of blocks in each process of the first answer.
pub const FIRST_BLOCKS: u32 = 12;

/// A body is light if it costs less than this many times the tare.
const LIGHT: f64 = 10.0;

/// How often a batch is run again whose threads had to wait for a core.
const AGAIN: u32 = 4;

/// The number of iterations of a batch up to which a cold one matters.
const FEW_ITERATIONS: u64 = 64;

/// The smallest number of blocks that gives an interval in a single process.
const LEAST_BLOCKS: u32 = 6;

/// The timing pass of a suite.
pub(super) struct TimingPass<'a> {
    pub(super) programs: &'a Programs,
    pub(super) cases: &'a mut Cases,
    pub(super) record: &'a mut SuiteRecord,
    pub(super) effort: &'a SuiteEffort,
    /// How cases are run in the first program that has them.
    pub(super) known_iterations: &'a mut KnownIterations,
    pub(super) introduced: &'a mut Introduced,
    pub(super) core: &'a EarlierCore,
    pub(super) loaded: &'a mut LoadedCode,
    pub(super) screen: &'a ProgressScreen,
    pub(super) neighbours: Neighbours,
    /// When the first program was started, and when the pass began.
    pub(super) opened: Instant,
    pub(super) began: Instant,
}

impl TimingPass<'_> {
    /// Times the cases in as many processes as it takes.
    pub(super) fn run(mut self) -> Result<(), Stop> {
        let (least, most) = self.effort.processes;
        let terms = &mut self.record.run.terms;
        // Verdicts do not end a first answer, so that there is one look.
        let first_look = if self.effort.answer_within.is_some() { most } else { least };
        let looks: Vec<u32> = power::looks(first_look as usize, most as usize, terms.level)
            .iter()
            .map(|look| look.blocks as u32)
            .collect();
        terms.looks = looks.len() as u32;
        let patience = match self.programs.sides.len() {
            1 => PATIENCE * self.cases.len() as u32,
            _ => self.effort.budget,
        };
        let mut longest = Duration::ZERO;
        for process in 0..most {
            let started = Instant::now();
            self.one_process(process)?;
            longest = longest.max(started.elapsed());
            let taken = process + 1;
            if self
                .cases
                .declared
                .tight_budget
                .is_some_and(|tight_budget| tight_budget.left() < started.elapsed())
            {
                break;
            }
            let out_of_time = !self.effort.exact_processes
                && self.began.elapsed() >= self.effort.budget
                && taken >= least.min(FEW);
            let out_of_patience = !self.effort.exact_processes && self.began.elapsed() >= patience;
            let may_end = self.effort.answer_within.is_none()
                && taken >= least
                && (out_of_patience || (looks.contains(&taken) && self.enough()));
            let next = self.opened.elapsed() + longest;
            let answered = self.effort.has_answered(taken, next, || self.is_right(), || self.is_vague());
            if out_of_time
                || answered
                || (may_end && !differing_processes::any(self.programs, self.cases, &self.record.run))
            {
                break;
            }
            if taken >= FEW {
                self.screen.show(self.cases.len(), || self.core.partial_run(self.cases, &self.record.run));
            }
        }
        self.core.add_to(self.cases, self.record);
        self.loaded.wait(&self.programs.interrupted);
        self.loaded.add_to(&mut self.record.run);
        earlier_nets::add(&self.programs.sides, self.cases, self.record);
        differing_processes::add_remarks(self.programs, self.cases, self.record);
        warm_up::add_remark(self.cases, self.record);
        few_readings::add_remark(self.cases, self.record);
        rare_costs::add_remark(self.cases, self.record);
        growing_costs::add_remark(self.cases, self.record);
        new_memory::add_remark(self.programs, self.cases, self.record);
        if self.effort.answer_within.is_some() && self.programs.sides.len() == 1 {
            wide_intervals::add_remark(self.cases, self.record);
        }
        Ok(())
    }

    /// Determines over how many iterations each case is counted, without timing any.
    pub(super) fn calibrate_only(mut self) -> Result<(), Stop> {
        self.ready_process(0)?.into_iter().for_each(BenchProgram::finish);
        Ok(())
    }

    /// Starts the programs of a process: one for each side, and one for each case that runs alone.
    fn start(&mut self, padding: usize) -> Result<Vec<BenchProgram>, Stop> {
        let sides = self.programs.sides.len();
        let alone = self.cases.weighed.iter().filter(|weighed| weighed.place >= sides);
        let programs = self.programs;
        let start = |side: usize| match programs.start(side, padding, None) {
            Ok((program, _)) => Ok(program),
            Err(BenchError::Interrupted) => Err(Stop::Interrupted),
            Err(other) => Err(Stop::Failed(Fault::program(format!(
                "cannot bench ‘{}’: {other}",
                programs.sides[side].program.path.display()
            )))),
        };
        let waiting = |side: usize| self.introduced.take(side).map_or_else(|| start(side), Ok);
        (0..sides).map(waiting).chain(alone.map(|weighed| start(weighed.side))).collect()
    }

    /// Starts the programs of a process, and gets their cases ready.
    fn ready_process(&mut self, process: u32) -> Result<Vec<BenchProgram>, Stop> {
        let mut programs = self.start(VisitOrder::new(1, self.record.run.seed).padding(process))?;
        // The time is taken after the start, because starting a program that declares very many cases takes long.
        let ready = Instant::now();
        let first = !self.cases.calibrated;
        let share = match self.cases.declared.tight_budget {
            Some(tight_budget) => tight_budget.calibration(self.effort.passes.count()),
            None => self.effort.budget.mul_f64(CALIBRATION),
        };
        for index in 0..self.cases.len() {
            self.programs.stop_if_interrupted()?;
            // If there are very many cases, those that the budget does not reach are left out. A small number of slow
            // cases is weighed completely.
            let many = self.cases.len() > MANY;
            let all = self.effort.exact_processes || self.effort.exact_blocks || self.effort.counts_decide;
            if many && !all && first && index > 0 && ready.elapsed() >= share {
                self.leave_out_from(index);
                break;
            }
            let (done, all) = (index, self.cases.len());
            let weighed = &mut self.cases.weighed[index];
            if weighed.is_open() {
                self.screen.progress.step("calibrating", process, done, all, self.record.name(weighed));
                Preparation::new(self.programs, self.record, (self.effort.budget, all), first)
                    .prepare_case(weighed, &mut programs[weighed.place])?;
            }
        }
        let scale = (self.effort.budget, self.cases.len());
        let mut preparation = Preparation::new(self.programs, self.record, scale, first);
        for (place, program) in programs.iter_mut().enumerate() {
            preparation.prepare_in_turn(place, &mut self.cases.weighed, program)?;
        }
        if first {
            if self.cases.declared.beyond > 0 {
                self.leave_out_from(self.cases.len());
            }
            self.known_iterations.apply(&mut self.cases.weighed);
            self.cases.calibrated = true;
            self.record.begin_writing()?;
        }
        // The earlier processes have answered and ended before anything is timed beside them.
        self.loaded.wait(&self.programs.interrupted);
        Ok(programs)
    }

    /// Times every case in one fresh process.
    pub(super) fn one_process(&mut self, process: u32) -> Result<(), Stop> {
        let mut programs = self.ready_process(process)?;
        let seed = self.record.run.seed.wrapping_add(u64::from(process));
        let plan = VisitOrder::new(self.cases.len(), seed);
        // A suite that spends most of its time outside the timed parts ends its processes early, because three short
        // processes are worth more than one long one.
        let due = self.effort.budget / self.effort.processes.0.clamp(1, FEW) * (process + 1);
        let mut at_once = vec![0; self.cases.len()];
        let blocks = self.blocks_of(process);
        for block in 0..blocks {
            if !self.effort.exact_blocks && block >= LEAST_BLOCKS && self.began.elapsed() > due {
                break;
            }
            self.screen.progress.step("timing", process, block as usize, blocks as usize, "");
            let core = match programs.first_mut() {
                Some(program) => self.neighbours.begin(program),
                None => CoreState::default(),
            };
            for index in plan.order(block) {
                self.programs.stop_if_interrupted()?;
                let weighed = &self.cases.weighed[index];
                if weighed.is_open() && self.takes_part(weighed, block, at_once[index]) {
                    let program = &mut programs[weighed.place];
                    let number = process * BLOCKS_OF_A_PROCESS + block;
                    let waited = self.visit(index, program, number, core)?;
                    at_once[index] += u32::from(waited.is_some_and(|share| share <= MOST_WAITED));
                }
            }
        }
        self.loaded.finish(process, self.cases, programs);
        Ok(())
    }

    /// Returns the number of blocks of a process. The first processes have few, to give an answer soon. In comparisons
    /// all processes have the same number, because each is one reading.
    fn blocks_of(&self, process: u32) -> u32 {
        let short = process < FEW && self.programs.sides.len() == 1 && !self.effort.exact_blocks;
        if short { self.effort.blocks.min(FIRST_BLOCKS) } else { self.effort.blocks }
    }

    /// Leaves out the cases from this one on, and adds a remark about that.
    fn leave_out_from(&mut self, index: usize) {
        let budget = self.effort.budget;
        let slow = self
            .cases
            .declared
            .tight_budget
            .map(|tight_budget| tight_budget.starting)
            .filter(|starting| *starting > budget / 4);
        let slow =
            slow.map_or(String::new(), |starting| format!(" (the program takes {starting:.0?} to start)"));
        let why = format!(
            "the budget of {budget:.0?} was spent first{slow}; raise --budget or select with --filter"
        );
        self.cases.leave_out(index, &why, &mut self.record.run);
    }

    /// Whether a case takes part in a block. Slow cases take part in fewer blocks, at least two, so that they do not
    /// use up the budget of all. Blocks in which the program had to wait for a core are replaced, as long as the budget
    /// allows.
    fn takes_part(&self, weighed: &Weighed, block: u32, at_once: u32) -> bool {
        let share = self.effort.budget / self.cases.len().max(1) as u32 / self.effort.processes.0.max(1);
        let time = weighed.batch_time.max(Duration::from_micros(1));
        let blocks = |share: Duration| (share.as_secs_f64() / time.as_secs_f64()) as u32;
        let (wanted, most) = (blocks(SLOW_TIME).max(SLOW_BLOCKS), blocks(share));
        let taken = if may_wait(weighed) { at_once + (block - at_once) / MADE_UP } else { block };
        taken < wanted.min(most).max(2) && (taken == block || block < most)
    }

    /// Runs one block and keeps its readings. Returns the share of the block in which the program waited for a core, if
    /// that was recorded.
    fn visit(
        &mut self,
        index: usize,
        program: &mut BenchProgram,
        number: u32,
        core: CoreState,
    ) -> Result<Option<f64>, Stop> {
        let weighed = &mut self.cases.weighed[index];
        let stream = u64::from(number) << 20 | weighed.kin as u64;
        let mut pcg = Pcg::with_stream(self.record.run.seed ^ 0x0b10_c4ed, stream);
        let most = weighed.case.max_iterations.unwrap_or(u64::MAX);
        let drawn = JITTER[pcg.below(JITTER.len() as u32) as usize];
        // If a batch costs far more than its start, there is nothing to separate, and a longer batch might exceed its
        // limit.
        let factor = if weighed.batch_time > SLOW_TIME { 1.0 } else { drawn };
        let jittered = |iterations: u64| ((iterations as f64 * factor).round().max(1.0) as u64).min(most);
        let case = weighed.batch(LoopKind::Case, jittered(weighed.iterations));
        let tare = weighed.batch(LoopKind::Tare, jittered(weighed.tare_iterations));
        let mut batches = if pcg.below(2) == 0 { vec![case, tare] } else { vec![tare, case] };
        let warming = batches.iter().position(|batch| *batch == case).filter(|_| starts_cold(weighed));
        if let Some(at) = warming {
            batches.insert(at, weighed.batch(LoopKind::Case, 1));
        }
        // Threads may also wait for each other, so the scheduler's record is not used if there are several.
        let watched = may_wait(weighed) && !weighed.has_threads();
        let before = if watched { program.threads() } else { None };
        let faults = new_memory::remedy(self.programs, weighed).and_then(|_| program.page_faults());
        let mut replies = match run_threaded_block(self.programs, weighed, program, batches) {
            Ok(replies) => replies,
            Err(error) => {
                self.programs.tolerate::<()>(weighed, self.record, program, Err(error))?;
                return Ok(None);
            }
        };
        if let Some((before, after)) = faults.and_then(|before| Some((before, program.page_faults()?))) {
            weighed.faults.0 += after.saturating_sub(before);
            weighed.faults.1 += case.iterations * u64::from(case.threads.max(1));
        }
        let by_scheduler =
            before.and_then(|before| Some(readings::waited_of_one(&replies, &before, &program.threads()?)));
        // A program with a witness of its own needs no other.
        let has_witness = replies.iter().any(|reply| reply.reading("witness").is_some());
        let beside = if has_witness { None } else { self.neighbours.after_block(program) };
        let waited = by_scheduler.or_else(|| readings::waited(&replies));
        let spent: f64 = replies.iter().filter_map(|reply| reply.reading("time.wall")).sum();
        let waited = waited.map(|waited| waited / spent.max(1.0));
        if let Some(at) = warming {
            replies.remove(at);
        }
        let beside = readings::readings_of_tare(&replies, beside, core, waited);
        for reply in replies {
            let position = if reply.kind == LoopKind::Case { weighed.arm } else { weighed.tare };
            if let (Some(declared), Subject::Case { timing, .. }) =
                (reply.timing, &mut self.record.run.arms[position].subject)
            {
                *timing = Some(declared);
            }
            let mut of_batch = readings::of_batch(&weighed.case, &reply);
            if reply.kind == LoopKind::Tare {
                of_batch.extend(beside.iter().cloned());
            }
            self.record.keep(position, Pass::Timing, number, of_batch);
        }
        Ok(waited)
    }

    /// Whether the interval of every case, or every comparison of two programs, is precise enough.
    fn enough(&self) -> bool {
        let level = 1.0 - (1.0 - self.record.run.terms.level) / f64::from(self.record.run.terms.looks.max(1));
        let pairs = judge::pairs(&self.record.run);
        if pairs.is_empty() {
            return self
                .cases
                .weighed
                .iter()
                .filter(|weighed| weighed.is_open())
                .all(|weighed| self.precise(weighed, level));
        }
        judge::compare_pairs(&pairs, &self.record.run.terms)
            .iter()
            .filter(|judged| judged.metric == "time.wall")
            .all(|judged| matches!(judged.comparison.verdict, Verdict::Different | Verdict::Same))
    }

    /// Whether the interval of the net of every case is so narrow that further processes would hardly change it. In
    /// comparisons every process adds evidence.
    fn is_right(&self) -> bool {
        let right = |weighed: &Weighed| {
            wide_intervals::reducible(&self.record.run, weighed)
                .is_some_and(|(net, half)| net.below_resolution.is_some() || half < RIGHT * net.estimate)
        };
        judge::pairs(&self.record.run).is_empty()
            && self.cases.weighed.iter().filter(|weighed| weighed.is_open()).all(right)
    }

    /// Whether the processes of some case disagree so much that it has no figure.
    fn is_vague(&self) -> bool {
        let vague = |weighed: &Weighed| {
            wide_intervals::reducible(&self.record.run, weighed).is_some_and(|(net, _)| net.unknown)
        };
        self.cases.weighed.iter().filter(|weighed| weighed.is_open()).any(vague)
    }

    /// Whether the interval of a case is narrow enough. For a light body, whose net cost depends on both batches, half
    /// its width must be below half the margin, relative to the raw time. For a heavy body it may be up to the margin,
    /// relative to the body, because on a busy machine a narrower interval would take the time of all other cases.
    fn precise(&self, weighed: &Weighed, level: f64) -> bool {
        let (arm, tare) = (&self.record.run.arms[weighed.arm], &self.record.run.arms[weighed.tare]);
        let middle = |arm: &Arm| arm.sample("time.wall").map_or(0.0, |sample| median(&sample.readings));
        let margin = self.record.run.terms.margin;
        judge::bench_cases::net_or_raw(arm, tare, "time.wall", level).is_some_and(|(value, interval)| {
            // The interval includes the possible difference between two copies of one loop, which no number of readings
            // reduces.
            let copies = RESOLUTION * middle(tare);
            match value < LIGHT * middle(tare) {
                true => power::precise((interval.half_width() - copies) / middle(arm), margin),
                false => interval.half_width() / value < margin,
            }
        })
    }
}

/// Runs a block. If one thread of a batch had no core for a while, the batch is run again a few times, and the run
/// counts in which threads waited least. How long a batch took does not matter for that.
fn run_threaded_block(
    programs: &Programs,
    weighed: &Weighed,
    program: &mut BenchProgram,
    batches: Vec<Batch>,
) -> Result<Vec<BatchReply>, BenchError> {
    let mut replies = programs.block(weighed, program, batches.clone())?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if (2..=cores as u32).contains(&batches[0].threads) {
        for (reply, batch) in replies.iter_mut().zip(&batches) {
            for _ in 0..AGAIN {
                if share_waited(reply).is_none_or(|share| share <= MOST_WAITED) {
                    break;
                }
                let other = programs.block(weighed, program, vec![*batch])?.remove(0);
                if share_waited(&other) < share_waited(reply) {
                    *reply = other;
                }
            }
        }
    }
    Ok(replies)
}

/// The share of a batch in which a thread waited for a core; `None` for a batch of one thread.
fn share_waited(reply: &BatchReply) -> Option<f64> {
    Some(reply.waited()? / reply.reading("time.wall")?.max(1.0))
}

/// Whether an iteration of the case runs before each batch and does not count. While a program waits for a request, other
/// programs use its core: the first iteration then finds neither its code nor its data in the caches. That matters only
/// in a batch of few iterations. If one takes long, a second one would be interrupted more often.
fn starts_cold(weighed: &Weighed) -> bool {
    let one = weighed.batch_time.div_f64(weighed.iterations as f64);
    weighed.iterations <= FEW_ITERATIONS && one <= LONG && !weighed.has_threads()
}

/// Whether the program may have to wait for a core during a batch of the case: the batches are long, or there are
/// several threads, which need a core each at the same time.
fn may_wait(weighed: &Weighed) -> bool {
    weighed.batch_time >= LONG || weighed.has_threads()
}
