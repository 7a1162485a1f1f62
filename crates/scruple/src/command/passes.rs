//! A measurement under way: visits arms pass by pass, keeps every reading, and decides when to stop.

mod few_launches;
mod given_launches;
mod memory_map;
mod remarks;
mod timing;

use super::arms::{Hooks, Prepared};
use super::deciding::Deciding;
use super::hooks;
use super::ignored_failures::IgnoredFailures;
use crate::fault::{Fault, Stop};
use crate::new_run::{self, Passes};
use crate::progress::Progress;
use crate::store::{RunWriter, Store};
use scruple_core::metric::Pass;
use scruple_core::run::{Run, RunState};
use scruple_core::sample::Reading;
use scruple_core::visit_order::VisitOrder;
use scruple_measure::command::{Job, WeighError, WeighedLaunch, Weigher};
use scruple_measure::launcher::{Ending, LaunchError};
use scruple_measure::runtimes::WITHOUT;
use scruple_measure::streams::Captured;
use scruple_stats::sorting;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long and how often to measure.
#[derive(Clone, Debug)]
pub struct RunEffort {
    /// The number of blocks that run before measurement starts.
    pub warmup: u32,
    /// The number of launches of each command in all passes together, if the user gave one.
    pub launches: Option<u32>,
    /// The smallest number of blocks, if the user gave one. The budget does not end the timing pass before.
    pub at_least: Option<u32>,
    /// The largest number of blocks.
    pub at_most: u32,
    /// The measuring time after which the timing pass ends.
    pub budget: Duration,
    /// The passes to run.
    pub passes: Passes,
    /// Whether each subject is launched once more to watch its memory.
    pub memory_map: bool,
    /// The metrics that decide the gate, if this measurement is for a gate.
    pub gate: Deciding,
}

/// A measurement under way.
pub struct CommandPasses {
    weigher: Box<dyn Weigher>,
    jobs: Vec<(Job, Hooks)>,
    /// The run, with the readings so far.
    pub run: Run,
    /// The writer to which readings are written.
    pub writer: RunWriter,
    ignored: IgnoredFailures,
    interrupted: Arc<AtomicBool>,
    progress: Progress,
    /// The time that the launches took.
    spent: Duration,
    /// The time of the clock at the first launch, moved on by the time that hooks took.
    began: Option<Instant>,
    /// The launches of each arm in the memory and counting passes.
    launched: Vec<u32>,
    /// Whether peak memory is read of timed launches, because there are no others.
    only_timed: bool,
    outputs: HashMap<usize, Vec<Captured>>,
}

impl CommandPasses {
    /// Prepares to weigh these arms; `run` must have none.
    pub fn new(
        weigher: Box<dyn Weigher>,
        prepared: Vec<Prepared>,
        mut run: Run,
        store: Option<Store>,
        interrupted: Arc<AtomicBool>,
        ignored: IgnoredFailures,
        progress: Progress,
    ) -> Result<CommandPasses, Fault> {
        let mut jobs = Vec::new();
        for one in prepared {
            run.arms.push(one.arm);
            jobs.push((one.job, one.hooks));
        }
        let writer = RunWriter::begin(store, &run)?;
        Ok(CommandPasses {
            launched: vec![0; jobs.len()],
            only_timed: false,
            weigher,
            jobs,
            run,
            writer,
            ignored,
            interrupted,
            progress,
            spent: Duration::ZERO,
            began: None,
            outputs: HashMap::new(),
        })
    }

    /// Runs every pass, then stores the run. Readings that were taken before a stop are kept.
    pub fn take(&mut self, effort: &RunEffort) -> Result<(), Stop> {
        let result = self.take_passes(effort);
        self.run.state = match &result {
            Ok(()) => RunState::Complete,
            Err(Stop::Interrupted) => RunState::Interrupted,
            Err(Stop::Failed(_)) => RunState::Failed,
        };
        self.progress.clear();
        self.remark_on_outputs();
        self.remark_on_waiting();
        self.remark_on_cold_start(effort.warmup);
        new_run::warn_of_changed_programs(&mut self.run, &[]);
        self.writer.finish(&self.run);
        result
    }

    /// Runs the passes one after the other. The budget applies to their total time.
    fn take_passes(&mut self, effort: &RunEffort) -> Result<(), Stop> {
        if let Some(shares) = self.shares(effort) {
            self.take_given_launches(effort, &shares)?;
        } else {
            self.take_until_clear(effort)?;
        }
        if effort.memory_map {
            self.watch_memory()?;
        }
        Ok(())
    }

    fn take_until_clear(&mut self, effort: &RunEffort) -> Result<(), Stop> {
        let mut block_time = None;
        if effort.passes.count() {
            block_time = Some(self.memory_pass(effort)?);
        }
        if effort.passes.time() {
            block_time = self.timing_pass(effort, block_time)?;
        }
        if effort.passes.count() {
            self.counting_pass(effort, block_time.unwrap_or_default())?;
        }
        Ok(())
    }

    /// Returns the time spent since the first launch, without that of hooks. On a busy machine Scruple itself waits for
    /// a core between launches, which the time of the launches does not contain.
    fn elapsed(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began.elapsed()).max(self.spent)
    }

    fn block(&mut self, plan: &VisitOrder, block: u32, of: Option<u32>) -> Result<(), Stop> {
        let arms = self.jobs.len();
        for (visited, index) in plan.order(block).into_iter().enumerate() {
            let name = self.run.arms[index].name.clone();
            match of {
                Some(of) => self.progress.show(Pass::Timing, block, of, visited, arms, &name),
                None => self.progress.warm_up(&name),
            }
            let weighing = self.visit(index, Pass::Timing, block, plan.padding(block))?;
            if of.is_some() {
                if self.only_timed {
                    self.keep_peak_of_timed(index, &weighing);
                }
                self.keep(index, Pass::Timing, block, weighing);
            }
        }
        Ok(())
    }

    /// Launches one arm once, with its hooks before and after.
    fn visit(&mut self, index: usize, pass: Pass, block: u32, padding: usize) -> Result<WeighedLaunch, Stop> {
        self.visit_by(index, pass, |weigher, job| weigher.weigh(job, pass, block, padding))
    }

    fn visit_by(
        &mut self,
        index: usize,
        pass: Pass,
        weigh: impl FnOnce(&mut dyn Weigher, &Job) -> Result<WeighedLaunch, WeighError>,
    ) -> Result<WeighedLaunch, Stop> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        self.hook(index, "--prepare", |hooks| &hooks.prepare)?;
        self.began.get_or_insert_with(Instant::now);
        let job = &self.jobs[index].0;
        let weighing =
            weigh(&mut *self.weigher, job).map_err(|error| Stop::Failed(not_weighed(&job.name, error)))?;
        self.hook(index, "--conclude", |hooks| &hooks.conclude)?;
        self.spent += weighing.wall;
        if pass != Pass::Timing && weighing.not_launched.is_none() {
            self.launched[index] += 1;
        }
        self.check_ending(index, pass, &weighing)?;
        if weighing.left_behind > 0 {
            let name = &self.run.arms[index].name;
            let text = format!(
                "‘{name}’ left processes behind, which Scruple ended: their further cost is not in the figures"
            );
            self.run.warn("left-behind", text);
        }
        if weighing.command_missing {
            let name = &self.run.arms[index].name;
            let text =
                format!("a part of ‘{name}’ exited with code 127, as if a command in it was not found");
            self.run.warn("command-missing", text);
        }
        if let Some(why) = &weighing.shield_lost {
            self.run.warn("shield", format!("not shielded all the time: {why}"));
        }
        Ok(weighing)
    }

    fn check_ending(&mut self, index: usize, pass: Pass, weighing: &WeighedLaunch) -> Result<(), Stop> {
        let name = self.run.arms[index].name.clone();
        let code = match weighing.ending {
            Ending::Exited(0) => return Ok(()),
            Ending::Interrupted => return Err(Stop::Interrupted),
            // A program that shares Scruple's terminal may have received the interruption itself.
            _ if self.interrupted.load(Ordering::Relaxed) => return Err(Stop::Interrupted),
            Ending::Exited(_) => "exit-code",
            Ending::Signaled(_) => "signal",
            Ending::TimedOut => "time-limit",
        };
        if self.ignored.covers(&weighing.ending) {
            self.run.warn(code, format!("‘{name}’ {}", weighing.ending));
            return Ok(());
        }
        let output = weighing.shown_error_output();
        let advice = match weighing.ending {
            Ending::TimedOut => "",
            _ if self.ignored == IgnoredFailures::Never => "",
            _ if output.is_empty() => " (-i measures it regardless, and --show-output shows what it prints)",
            _ => " (-i measures it regardless)",
        };
        Err(Stop::Failed(Fault::program(format!(
            "‘{name}’ {} in the {} pass{advice}{output}",
            weighing.ending,
            pass.word()
        ))))
    }

    /// Keeps the readings of one launch in memory, and writes them to the journal.
    fn keep(&mut self, index: usize, pass: Pass, block: u32, weighing: WeighedLaunch) {
        self.warn_of_parts(index, &weighing.readings);
        self.writer.keep(&mut self.run, index, pass, block, weighing.readings);
        if let Some(captured) = weighing.captured {
            self.outputs.entry(index).or_default().push(captured);
        }
    }

    /// Warns of figures that lack the part of some of the program's runtimes.
    fn warn_of_parts(&mut self, index: usize, readings: &[Reading]) {
        let of_part = |reading: &&Reading| reading.value.is_ok() && reading.source.contains(WITHOUT);
        let mut parts: Vec<&Reading> = readings.iter().filter(of_part).collect();
        sorting::by_key(&mut parts, |reading| reading.source.clone());
        let sources = parts.chunk_by(|one, other| one.source == other.source).map(|alike| {
            let keys: Vec<&str> = alike.iter().map(|reading| reading.key.as_str()).collect();
            let (source, silent) = alike[0].source.split_once(WITHOUT).unwrap_or_default();
            format!("{} of {source} without {silent}", keys.join(", "))
        });
        let sources: Vec<String> = sources.collect();
        if !sources.is_empty() {
            let name = &self.run.arms[index].name;
            let text = format!(
                "‘{name}’ has several language runtimes, and not all of them report everything: {}",
                sources.join("; ")
            );
            self.run.warn("partial", text);
        }
    }

    fn hook(&mut self, index: usize, flag: &str, pick: fn(&Hooks) -> &Option<String>) -> Result<(), Stop> {
        let Some(command) = pick(&self.jobs[index].1) else { return Ok(()) };
        let before = Instant::now();
        let result = hooks::run(flag, command, &self.interrupted);
        self.began = self.began.map(|began| began + before.elapsed());
        result
    }
}

/// Creates the fault for a launch that gave no readings. It says whether Scruple or the user's program is to blame.
fn not_weighed(name: &str, error: WeighError) -> Fault {
    let message = format!("cannot weigh ‘{name}’: {error}");
    match error {
        WeighError::Launch(LaunchError::Launcher(_)) => Fault::internal(message),
        _ => Fault::usage(message),
    }
}
