//! Weighs the cases of bench programs, in fresh processes with blocks of case and tare, and in a separate counting
//! pass.

pub mod answers;
pub mod calibrate;
pub mod counting;
pub mod cycle_times;
pub mod instructions;
mod introduce;
mod of_nodes;
pub mod readings;
pub mod same_iterations;
pub mod single_process;
pub mod timing;
mod warm_up;

pub use same_iterations::Alike;
pub use single_process::OfCase;

pub use crate::command::session::Stop;

use crate::address::Address;
use crate::fault::{Code, Fault};
use crate::new_run::Passes;
use crate::paths;
use crate::progress::Progress;
use crate::store::{RunWriter, Store, add_readings};
use scruple_core::budget::Budget;
use scruple_core::judge;
use scruple_core::metric::{Metric, Pass};
use scruple_core::protocol::{Case, Hello, Request};
use scruple_core::run::{Run, State};
use scruple_core::sample::{Figure, Reading};
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_measure::bench::{BenchError, BenchProgram, Start};
use scruple_measure::instructions::Instructions;
use scruple_measure::program::Program;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long and how often to measure.
#[derive(Clone, Debug)]
pub struct SuiteEffort {
    /// The smallest and the largest number of fresh processes.
    pub processes: (u32, u32),
    /// The number of blocks in each process.
    pub blocks: u32,
    /// Whether the user requested this number of processes, so that the budget does not limit it.
    pub exact_processes: bool,
    /// Whether the user requested this number of blocks, so that the budget does not limit it.
    pub exact_blocks: bool,
    /// The measuring time after which no further process is started.
    pub budget: Duration,
    /// The time limit of one batch.
    pub case_limit: Duration,
    /// The passes to run.
    pub passes: Passes,
    /// Whether cases are only listed.
    pub list_only: bool,
    /// Whether counts decide a gate, so that every case is counted, often enough, even beyond the budget.
    pub counts_decide: bool,
}

/// The shortest time in which a case can be calibrated and weighed.
const LEAST_TIME: Duration = Duration::from_micros(300);

impl SuiteEffort {
    /// Returns the largest number of cases that the budget may suffice for. Further cases get no arms.
    fn most_cases(&self) -> usize {
        match self.exact_processes || self.exact_blocks || self.list_only || self.counts_decide {
            true => usize::MAX,
            false => timing::MANY.max((self.budget.as_nanos() / LEAST_TIME.as_nanos()) as usize),
        }
    }
}

/// One of the bench programs that are compared. Usually there is only one.
#[derive(Debug)]
pub struct Side {
    /// The name of the program in tables, if there are several.
    pub label: Option<String>,
    /// The file to execute.
    pub program: Program,
    /// The words of the command line.
    pub argv: Vec<OsString>,
    /// The working folder of the program; `None` means that of Scruple.
    pub folder: Option<PathBuf>,
    /// The variables added to Scruple's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The whole environment of counting processes, if it has to be the same in every run.
    pub counted_env: Option<Vec<(OsString, OsString)>>,
    /// The description that the program gave of itself.
    pub hello: Option<Hello>,
}

/// One case of one program, with one number of threads.
#[derive(Debug)]
pub(crate) struct Weighed {
    side: usize,
    /// The index of the program, among those of a timing process, that runs the case: that of its side, or one of its
    /// own.
    place: usize,
    case: Case,
    threads: u32,
    arm: usize,
    tare: usize,
    iterations: u64,
    tare_iterations: u64,
    batch_time: Duration,
    failed: bool,
    /// The index of the same case in the first program that has it. Blocks of both have the same order.
    kin: usize,
}

/// The measurement of one or two bench programs.
pub struct Suite {
    sides: Vec<Side>,
    weighed: Vec<Weighed>,
    /// What the programs declared.
    pub declared: Declared,
    effort: SuiteEffort,
    /// The run, with the readings so far.
    pub run: Run,
    /// The writer to which readings are written.
    pub writer: RunWriter,
    /// How cases are run in the first program that has them.
    pub alike: Alike,
    calibrated: bool,
    /// The instruction counter, if the user requested it.
    instructions: Option<Instructions>,
    /// The length of a core cycle in earlier runs on this machine, in nanoseconds.
    earlier_cycles: Vec<f64>,
    screen: Screen,
    interrupted: Arc<AtomicBool>,
    work: PathBuf,
}

/// What the programs declared, whether it was selected or not.
#[derive(Default)]
pub struct Declared {
    /// The limits of cases.
    pub budgets: Vec<Budget>,
    /// The names of all cases.
    pub names: Vec<String>,
    /// Whether `names` is complete. A list that takes longer than the budget is not read to its end.
    pub complete: bool,
    /// The number of selected cases that the budget cannot suffice for.
    beyond: usize,
}

/// What the user sees during the measurement.
struct Screen {
    progress: Progress,
    look: Option<Look>,
}

impl Side {
    /// Creates the side of a program that starts in Scruple's working folder, before its description is known.
    pub fn new(label: Option<String>, program: Program, argv: Vec<OsString>) -> Side {
        Side { label, program, argv, folder: None, env: Vec::new(), counted_env: None, hello: None }
    }

    fn start<'a>(&'a self, padding: usize, count_in: Option<&'a Path>, counting: bool) -> Start<'a> {
        let pinned = self.counted_env.as_ref().filter(|_| counting);
        Start {
            path: &self.program.path,
            argv: &self.argv,
            padding,
            count_in,
            folder: self.folder.as_deref(),
            env: pinned.unwrap_or(&self.env),
            whole_env: pinned.is_some(),
        }
    }
}

/// A function that writes the run so far in this many columns.
pub type Look = Box<dyn Fn(&Run, usize) -> String>;

/// The criteria by which cases are selected.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Parts of names, or tags. An empty list selects all cases.
    pub filters: Vec<String>,
    /// The numbers of threads that replace the declared ones.
    pub threads: Vec<u32>,
}

impl Selection {
    fn wants(&self, case: &Case) -> bool {
        let full = full_name(case);
        self.filters.is_empty()
            || self.filters.iter().any(|filter| full.contains(filter.as_str()) || case.tags.contains(filter))
    }

    fn threads_of(&self, case: &Case) -> Vec<u32> {
        let parallel = case.threads.iter().any(|threads| *threads > 1);
        match self.threads.is_empty() || !parallel {
            true => case.threads.clone(),
            false => self.threads.clone(),
        }
    }
}

/// The time within which a program must describe itself and its cases.
const FIRST_WORDS: Duration = Duration::from_secs(60);

impl Suite {
    /// Asks the programs for their cases, and adds the arms to `run`, which must have none.
    pub fn open(
        mut sides: Vec<Side>,
        mut run: Run,
        selection: &Selection,
        effort: SuiteEffort,
        interrupted: Arc<AtomicBool>,
        work: &Path,
    ) -> Result<Suite, Fault> {
        let mut weighed = Vec::new();
        let mut declared = Declared { complete: true, ..Declared::default() };
        for (index, side) in sides.iter_mut().enumerate() {
            let label = side.label.clone();
            let (mut wanted, most) = (Vec::new(), effort.most_cases());
            let began = Instant::now();
            let (hello, whole) = introduce::introduce(side, &interrupted, |case| {
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
                declared.beyond == 0 || began.elapsed() < effort.budget
            })
            .map_err(|error| {
                let advice = match &error {
                    BenchError::Interrupted => {
                        return Fault { code: Code::Interrupted, message: "interrupted".to_owned() };
                    }
                    BenchError::Ended { .. } => "; a bench program declares its cases through one of the SDKs, and answers when it is asked",
                    _ => "",
                };
                Fault::program(format!("cannot bench ‘{}’: {error}{advice}", side.program.path.display()))
            })?;
            declared.complete &= whole;
            side.hello = Some(hello.clone());
            for (case, threads) in wanted {
                declared.budgets.extend(readings::budgets_of(
                    &case,
                    threads,
                    label.as_deref(),
                    &hello,
                    &mut run,
                ));
                weighed.push(lay_out(index, side, &case, threads, &mut run));
            }
        }
        let alone = weighed.iter_mut().filter(|weighed| weighed.case.fresh);
        alone.zip(sides.len()..).for_each(|(weighed, place)| weighed.place = place);
        if weighed.is_empty() {
            return Err(Fault::usage(match selection.filters.is_empty() {
                true => "the program declares no cases".to_owned(),
                false => format!(
                    "no case matches ‘{}’: `scruple bench --list` shows them",
                    selection.filters.join("’ or ‘")
                ),
            }));
        }
        Ok(Suite {
            sides,
            weighed,
            declared,
            effort,
            run,
            writer: RunWriter::default(),
            alike: Alike::default(),
            calibrated: false,
            instructions: None,
            earlier_cycles: Vec::new(),
            screen: Screen { progress: Progress::hidden(), look: None },
            interrupted,
            work: work.to_owned(),
        })
    }

    /// Uses this store for readings, once it is known which cases the budget suffices for.
    pub fn keep_in(&mut self, store: Store) {
        self.earlier_cycles = cycle_times::earlier(&store, &self.run.provenance.machine_class);
        self.writer = RunWriter::wait(store);
    }

    fn begin_writing(&mut self) -> Result<(), Stop> {
        self.writer.begin_waiting(&self.run).map_err(|error| Stop::Failed(Fault::from(error)))
    }

    /// Requests that the instructions of each case are counted as well.
    pub fn count_instructions(&mut self) {
        self.instructions = Some(Instructions::new(0, &self.work, &paths::calltree_folder()));
    }

    /// Shows progress from now on, and the results so far, which `look` writes.
    pub fn show_progress(&mut self, progress: Progress, look: Look) {
        self.screen = Screen { progress, look: Some(look) };
    }

    /// Shows the results so far, if standard error is a terminal with enough rows for them.
    fn show_so_far(&self) {
        if let (Some(look), Some(room)) = (&self.screen.look, self.screen.progress.room())
            && self.weighed.len() <= room.1
        {
            self.screen.progress.so_far(&look(&self.so_far(), room.0));
        }
    }

    /// Returns the names of the selected cases.
    pub fn names(&self) -> Vec<&str> {
        self.weighed.iter().map(|weighed| self.run.arms[weighed.arm].name.as_str()).collect()
    }

    /// Returns the metrics that the programs and their cases declare.
    pub fn brought(&self) -> Vec<Metric> {
        let counters =
            self.sides.iter().filter_map(|side| side.hello.as_ref()).flat_map(|hello| &hello.counters);
        let readings = self.weighed.iter().flat_map(|weighed| &weighed.case.readings);
        counters.chain(readings).map(counting::declaration).collect()
    }

    /// Runs every pass, then stores the run. Readings that were taken before a stop are kept.
    pub fn take(&mut self) -> Result<(), Stop> {
        let mut result = self.take_passes();
        self.screen.progress.clear();
        if matches!(result, Err(Stop::Interrupted)) && self.effort.passes.time() {
            self.leave_out_unweighed();
        }
        // The writer may not exist yet if the suite was stopped early.
        if let Err(fault) = self.begin_writing() {
            result = Err(fault);
        }
        self.run.state = match &result {
            Ok(()) => State::Complete,
            Err(Stop::Interrupted) => State::Interrupted,
            Err(Stop::Failed(_)) => State::Failed,
        };
        self.writer.finish(&self.run);
        result
    }

    /// Returns the flag that the user's interruption sets.
    pub fn interrupted(&self) -> &Arc<AtomicBool> {
        &self.interrupted
    }

    /// Returns the address of the stored run, if it is stored.
    pub fn stored_at(&self) -> Option<Address> {
        self.writer.address(&self.run)
    }

    /// Returns the cases that failed, each with the reason.
    pub fn failures(&self) -> Vec<(&str, &str)> {
        self.weighed
            .iter()
            .filter(|weighed| weighed.failed)
            .map(|weighed| &self.run.arms[weighed.arm])
            .map(|arm| {
                (arm.name.as_str(), arm.absent("time.wall").unwrap_or("it failed after it had been timed"))
            })
            .collect()
    }

    fn take_passes(&mut self) -> Result<(), Stop> {
        match self.effort.passes.time() {
            true => self.timing_pass()?,
            false => self.calibrate_only()?,
        }
        if self.effort.passes.count() {
            self.counting_pass()?;
        }
        self.instruction_pass()
    }

    /// Starts a fresh process of a side. `counting` is `None` in the timing pass; otherwise it says whether the
    /// allocation counter can be attached.
    fn start(&self, side: usize, padding: usize, counting: Option<bool>) -> Result<BenchProgram, BenchError> {
        let count_in = counting.filter(|countable| *countable).map(|_| self.work.as_path());
        let start = self.sides[side].start(padding, count_in, counting.is_some());
        let mut program = BenchProgram::start(&start)?;
        program.ask(&Request::Hello, FIRST_WORDS, &self.interrupted)?;
        Ok(program)
    }

    fn limit_of(&self, weighed: &Weighed) -> Duration {
        weighed.case.time_limit.map_or(self.effort.case_limit, Duration::from_nanos)
    }

    /// Marks a case as failed, and removes its times, so that partial figures are not shown as complete.
    fn fail(&mut self, index: usize, why: &str) {
        let weighed = &mut self.weighed[index];
        weighed.failed = true;
        let arm = &mut self.run.arms[weighed.arm];
        arm.figures.insert("time.wall".to_owned(), Figure::Absent { absent: why.to_owned() });
        arm.figures.remove("time.cpu");
    }

    fn keep(&mut self, position: usize, pass: Pass, block: u32, readings: Vec<Reading>) {
        self.writer.keep(&mut self.run, position, pass, block, readings);
    }
}

/// Turns an error about one case into a reason; an interruption stays an error.
fn reason(error: &BenchError) -> Result<String, Stop> {
    match error {
        BenchError::Interrupted => Err(Stop::Interrupted),
        other => Ok(other.to_string()),
    }
}

/// Whether the program can still answer requests after this error.
fn survives(error: &BenchError) -> bool {
    matches!(error, BenchError::Complained(complaint) if !complaint.fatal)
}

/// Returns the name of a case with the parameters that distinguish it from cases of the same name.
fn full_name(case: &Case) -> String {
    if case.params.is_empty() {
        return case.name.clone();
    }
    let params: Vec<String> = case.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{} ({})", case.name, params.join(", "))
}

/// Adds the arm of a case and that of its tare to the run.
fn lay_out(index: usize, side: &Side, case: &Case, threads: u32, run: &mut Run) -> Weighed {
    let name = arm_name(case, threads, side.label.as_deref());
    let subject = Subject::Case {
        name: case.name.clone(),
        program: side.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        shape: case.shape.clone().unwrap_or_default(),
        timing: case.timing,
    };
    let mut params: BTreeMap<String, Parameter> = case.params.clone();
    let has_number = params.values().any(|value| matches!(value, Parameter::Number(_)));
    if let Some(n) = judge::trailing_number(&case.name).filter(|_| !has_number) {
        params.insert("n".to_owned(), Parameter::Number(n));
    }
    if case.threads.len() > 1 || threads > 1 {
        params.insert("threads".to_owned(), Parameter::Number(f64::from(threads)));
    }
    let arm = |name: String, role: Role| {
        let mut arm = Arm::new(name, subject.clone(), role);
        arm.version.clone_from(&side.label);
        arm.params.clone_from(&params);
        arm
    };
    let position = run.arms.len();
    let mut subject_arm = arm(name.clone(), Role::Subject);
    add_readings(&mut subject_arm, readings::work_of(case), Pass::Counting, 0);
    run.arms.push(subject_arm);
    run.arms.push(arm(format!("{name} [tare]"), Role::Tare));
    Weighed {
        side: index,
        place: index,
        case: case.clone(),
        threads,
        arm: position,
        tare: position + 1,
        iterations: 1,
        tare_iterations: 1,
        batch_time: Duration::ZERO,
        failed: false,
        kin: position / 2,
    }
}

/// Returns the name of an arm in tables.
pub(crate) fn arm_name(case: &Case, threads: u32, label: Option<&str>) -> String {
    let mut name = full_name(case);
    if case.threads.len() > 1 || threads > 1 {
        name.push_str(&format!(" ×{threads} threads"));
    }
    if let Some(label) = label {
        name.push_str(&format!(" @{label}"));
    }
    name
}
