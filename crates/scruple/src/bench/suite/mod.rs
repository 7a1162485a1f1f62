//! Weighs the cases of bench programs, in fresh processes with blocks of case and tare, and in a separate counting
//! pass.

mod answers;
mod bench_side;
mod calibrate;
mod cases;
mod counting;
mod counting_plan;
mod declarations;
mod differing_processes;
mod earlier_core;
mod earlier_nets;
mod effort;
mod few_readings;
mod growing_costs;
mod instructions;
mod loaded_code;
mod neighbours;
mod new_memory;
mod outside_work;
mod own_time;
mod prepare;
mod programs;
mod progress_screen;
mod rare_costs;
mod rare_events;
mod readings;
mod record;
mod same_iterations;
pub mod single_process;
pub mod timing;
mod too_many_cases;
mod uncounted;
mod warm_up;
mod wide_intervals;

pub use bench_side::BenchSide;
pub use cases::{CaseSelection, Cases, Declared};
pub use effort::SuiteEffort;
pub use record::SuiteRecord;
pub use same_iterations::KnownIterations;

use crate::address::StoreAddress;
use crate::farm::send_command_line::MeasuredByNodes;
use crate::fault::{Code, Fault, Stop};
use crate::new_run;
use crate::paths;
use crate::progress::Progress;
use crate::store::{RunWriter, Store};
use cases::{CaseEnd, Weighed, arm_name, case_of};
use counting::CountingPass;
use declarations::{Introduced, Introduction};
use earlier_core::EarlierCore;
use instructions::InstructionPass;
use loaded_code::LoadedCode;
use neighbours::Neighbours;
use programs::Programs;
use progress_screen::{ProgressScreen, WriteResults};
use scruple_core::metric::Metric;
use scruple_core::run::{Run, RunState};
use scruple_core::visit_order::VisitOrder;
use scruple_measure::bench::BenchError;
use scruple_measure::instructions::Instructions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use timing::TimingPass;
use too_many_cases::TightBudget;

/// The measurement of one or more bench programs. Each pass is a type of its own, which borrows what it needs of it.
pub struct Suite {
    programs: Programs,
    /// The cases, and what the programs declared.
    pub cases: Cases,
    effort: SuiteEffort,
    /// The run, with the readings so far, and its writer.
    pub record: SuiteRecord,
    /// How cases are run in the first program that has them.
    pub known_iterations: KnownIterations,
    introduced: Introduced,
    /// When the first program was started.
    opened: Instant,
    /// The instruction counter, if the user requested it.
    instructions: Option<Instructions>,
    core: EarlierCore,
    loaded: LoadedCode,
    screen: ProgressScreen,
}

impl Suite {
    /// Asks the programs for their cases, and adds the arms to `run`, which must have none.
    pub fn open(
        mut sides: Vec<BenchSide>,
        mut run: Run,
        selection: &CaseSelection,
        effort: SuiteEffort,
        interrupted: Arc<AtomicBool>,
        work: &Path,
    ) -> Result<Suite, Fault> {
        let mut weighed = Vec::new();
        let mut declared = Declared { complete: true, ..Declared::default() };
        let mut loaded = LoadedCode::default();
        let (opened, mut starting) = (Instant::now(), Duration::ZERO);
        let (padding, mut introduced) = (VisitOrder::new(1, run.seed).padding(0), Introduced::default());
        // Budgets that the base declares do not limit the change, which may have changed the budget or the code that
        // exceeds it.
        let first_limited = usize::from(sides.len() > 1);
        for (index, side) in sides.iter_mut().enumerate() {
            let (label, prefix) = (side.label.clone(), side.prefix.clone());
            let (mut wanted, most) = (Vec::new(), effort.most_cases());
            let introduction =
                declarations::introduce(side, padding, effort.case_limit, &interrupted, |case| {
                    let case = case_of(prefix.as_deref(), case);
                    let threads = selection.threads_of(&case);
                    for threads in &threads {
                        let names = &mut declared.names;
                        names.push(arm_name(&case, *threads, None));
                        names.extend(label.as_deref().map(|label| arm_name(&case, *threads, Some(label))));
                    }
                    match selection.wants(&case) {
                        true if wanted.len() + threads.len() <= most => {
                            wanted.extend(threads.into_iter().map(|threads| (case.clone(), threads)));
                        }
                        true => declared.beyond += threads.len(),
                        false => {}
                    }
                    declared.beyond == 0 || TightBudget::lists(effort.budget, opened.elapsed())
                })
                .map_err(|error| not_introduced(&error, &side.program.path))?;
            let Introduction { hello, starting: started, undisturbed, complete, program } = introduction;
            loaded.add_side();
            declared.complete &= complete;
            introduced.0.push(program);
            starting += started;
            declared.starting.push(undisturbed);
            side.hello = Some(hello.clone());
            for (case, threads) in wanted {
                if index >= first_limited {
                    let limits = readings::limits_of(&case, threads, label.as_deref(), &hello, &mut run);
                    declared.limits.extend(limits);
                }
                weighed.push(Weighed::lay_out(index, side, &case, threads, &mut run));
            }
        }
        if !effort.lists_in_first {
            introduced = Introduced::default();
        }
        declared.tight_budget =
            (declared.beyond > 0).then(|| TightBudget::new(opened, effort.budget, starting));
        let alone = weighed.iter_mut().filter(|weighed| weighed.case.fresh);
        alone.zip(sides.len()..).for_each(|(weighed, place)| weighed.place = place);
        if weighed.is_empty() {
            return Err(no_cases(selection));
        }
        Ok(Suite {
            programs: Programs { sides, case_limit: effort.case_limit, work: work.to_owned(), interrupted },
            cases: Cases { weighed, declared, calibrated: false },
            effort,
            record: SuiteRecord { run, writer: RunWriter::default() },
            known_iterations: KnownIterations::default(),
            introduced,
            opened,
            instructions: None,
            core: EarlierCore::default(),
            loaded,
            screen: ProgressScreen { progress: Progress::hidden(), write: None },
        })
    }

    /// Uses this store for readings, once it is known which cases the budget suffices for.
    pub fn keep_in(&mut self, store: Store) {
        self.core = EarlierCore::read(&store, &self.record.run.provenance.machine_class);
        if self.cases.len() <= effort::MANY {
            self.loaded.want(&self.programs.sides);
        }
        self.record.writer = RunWriter::wait(store);
    }

    /// Requests that the instructions of each case are counted as well.
    pub fn count_instructions(&mut self) -> Result<(), Fault> {
        self.instructions = Some(Instructions::new(0, &self.programs.work, &paths::calltree_folder()?));
        Ok(())
    }

    /// Ends the processes that listed the cases, since others measure them.
    pub fn end_introduced(&mut self) {
        self.introduced = Introduced::default();
    }

    /// Shows progress from now on, and the results so far, which `look` writes.
    pub fn show_progress(&mut self, progress: Progress, write: WriteResults) {
        self.screen = ProgressScreen { progress, write: Some(write) };
    }

    /// Returns the names of the selected cases.
    pub fn names(&self) -> Vec<&str> {
        self.cases.weighed.iter().map(|weighed| self.record.run.arms[weighed.arm].name.as_str()).collect()
    }

    /// Returns the metrics that the programs and their cases declare.
    pub fn brought(&self) -> Vec<Metric> {
        let counters = self
            .programs
            .sides
            .iter()
            .filter_map(|side| side.hello.as_ref())
            .flat_map(|hello| &hello.counters);
        let readings = self.cases.weighed.iter().flat_map(|weighed| &weighed.case.readings);
        counters.chain(readings).map(readings::declaration).collect()
    }

    /// Runs every pass, then stores the run. Readings that were taken before a stop are kept.
    pub fn take(&mut self) -> Result<(), Stop> {
        let mut result = self.take_passes();
        self.screen.progress.clear();
        if matches!(result, Err(Stop::Interrupted)) && self.effort.passes.time() {
            self.leave_out_unweighed();
        }
        // The writer may not exist yet if the suite was stopped early.
        if let Err(fault) = self.record.begin_writing() {
            result = Err(fault);
        }
        self.record.run.state = match &result {
            Ok(()) => RunState::Complete,
            Err(Stop::Interrupted) => RunState::Interrupted,
            Err(Stop::Failed(_)) => RunState::Failed,
        };
        new_run::warn_of_changed_programs(&mut self.record.run, &self.loaded.changed_files());
        self.record.writer.finish(&self.record.run);
        result
    }

    fn take_passes(&mut self) -> Result<(), Stop> {
        match self.effort.passes.time() {
            true => self.timing_pass().run()?,
            false => self.timing_pass().calibrate_only()?,
        }
        match self.effort.passes.count() {
            true => self.count(),
            false => self.count_instructions_if_asked(),
        }
    }

    fn timing_pass(&mut self) -> TimingPass<'_> {
        TimingPass {
            programs: &self.programs,
            cases: &mut self.cases,
            record: &mut self.record,
            effort: &self.effort,
            known_iterations: &mut self.known_iterations,
            introduced: &mut self.introduced,
            core: &self.core,
            loaded: &mut self.loaded,
            screen: &self.screen,
            neighbours: Neighbours::new(),
            opened: self.opened,
            began: Instant::now(),
        }
    }

    /// Runs the passes that count.
    fn count(&mut self) -> Result<(), Stop> {
        let Suite { programs, cases, effort, record, screen, .. } = self;
        CountingPass { programs, cases, record, effort, screen }.run()?;
        self.count_instructions_if_asked()
    }

    fn count_instructions_if_asked(&mut self) -> Result<(), Stop> {
        let Suite { programs, cases, effort, record, screen, instructions: Some(counter), .. } = self else {
            return Ok(());
        };
        InstructionPass { programs, cases, effort, record, screen, counter }.run()
    }

    /// After an interruption, leaves out the cases that it prevented, if there are very many.
    fn leave_out_unweighed(&mut self) {
        let run = &mut self.record.run;
        let weighed = |weighed: &Weighed| run.arms[weighed.arm].sample("time.wall").is_some();
        // At least one case is kept, because a run without arms would not show what was measured.
        let first = self.cases.weighed.iter().rposition(weighed).map_or(1, |last| last + 1);
        if self.cases.len() > effort::MANY && first < self.cases.len() {
            self.cases.leave_out(first, "the run was interrupted first", run);
        }
    }

    /// Returns the flag that the user's interruption sets.
    pub fn interrupted(&self) -> &Arc<AtomicBool> {
        &self.programs.interrupted
    }

    /// Returns the address of the stored run, if it is stored.
    pub fn stored_at(&self) -> Option<StoreAddress> {
        self.record.writer.address(&self.record.run)
    }

    /// Whether a case neither failed nor was skipped or left out.
    pub fn has_measured(&self) -> bool {
        self.cases.weighed.iter().any(Weighed::is_open)
    }

    /// Returns the cases that failed, each with the reason.
    pub fn failures(&self) -> Vec<(&str, &str)> {
        self.cases
            .weighed
            .iter()
            .filter(|weighed| weighed.ended == Some(CaseEnd::Failed))
            .map(|weighed| &self.record.run.arms[weighed.arm])
            .map(|arm| {
                (arm.name.as_str(), arm.absent("time.wall").unwrap_or("it failed after it had been timed"))
            })
            .collect()
    }

    /// Replaces the run of the suite by that of the nodes of a farm that have weighed it, and stores it.
    pub fn adopt(&mut self, measured: MeasuredByNodes, store: Option<Store>) -> Result<(), Fault> {
        for weighed in &mut self.cases.weighed {
            let name = &self.record.run.arms[weighed.arm].name;
            let failed = measured.failed.iter().any(|(failed, _)| failed == name);
            weighed.ended = failed.then_some(CaseEnd::Failed);
            // The index of the arm in the run of the nodes may differ.
            weighed.arm = measured.run.arms.iter().position(|arm| arm.name == *name).unwrap_or(weighed.arm);
        }
        (self.record.run, self.record.writer) = measured.store_in(store)?;
        Ok(())
    }
}

/// The error that a bench program did not list its cases.
fn not_introduced(error: &BenchError, program: &Path) -> Fault {
    let advice = match error {
        BenchError::Interrupted => {
            return Fault { code: Code::Interrupted, message: "interrupted".to_owned() };
        }
        BenchError::Ended { .. } => {
            "; a bench program declares its cases through one of the SDKs, and answers requests"
        }
        BenchError::Hangs { .. } => {
            "; a bench program answers requests, by one of the SDKs; one that starts slowly needs a larger --time-limit"
        }
        _ => "",
    };
    Fault::program(format!("cannot bench ‘{}’: {error}{advice}", program.display()))
}

fn no_cases(selection: &CaseSelection) -> Fault {
    Fault::usage(match selection.filters.is_empty() {
        true => "the program declares no cases".to_owned(),
        false => format!(
            "no case matches ‘{}’: `scruple bench --list` shows them",
            selection.filters.join("’ or ‘")
        ),
    })
}
