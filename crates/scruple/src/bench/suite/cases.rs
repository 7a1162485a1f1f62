//! The cases of a suite: which are selected, how each is run, and which are left out.

use super::bench_side::BenchSide;
use super::too_many_cases::TightBudget;
use crate::store::add_readings;
use scruple_core::judge;
use scruple_core::limit::Limit;
use scruple_core::metric::{Metric, Pass, Quality};
use scruple_core::protocol::{Batch, BatchReply, Case, LoopKind};
use scruple_core::run::Run;
use scruple_core::sample::Reading;
use scruple_core::subject::{Arm, Parameter, Role, Subject, with_values};
use scruple_core::unit::Unit;
use scruple_stats::sorting::SortedMap;
use std::time::Duration;

/// The most iterations of a batch in which each has its own input, unless the case says otherwise.
const MOST_INPUTS: u64 = 1000;

/// The criteria by which cases are selected.
#[derive(Clone, Debug, Default)]
pub struct CaseSelection {
    /// Parts of names, or tags. An empty list selects all cases.
    pub filters: Vec<String>,
    /// The numbers of threads that replace the declared ones.
    pub threads: Vec<u32>,
}

impl CaseSelection {
    pub(super) fn wants(&self, case: &Case) -> bool {
        let full = full_name(case);
        self.filters.is_empty()
            || self.filters.iter().any(|filter| full.contains(filter.as_str()) || case.tags.contains(filter))
    }

    pub(super) fn threads_of(&self, case: &Case) -> Vec<u32> {
        let parallel = case.threads.iter().any(|threads| *threads > 1);
        match self.threads.is_empty() || !parallel {
            true => case.threads.clone(),
            false => self.threads.clone(),
        }
    }
}

/// What the programs declared, whether it was selected or not.
#[derive(Default)]
pub struct Declared {
    /// The limits of cases.
    pub limits: Vec<Limit>,
    /// The names of all cases.
    pub names: Vec<String>,
    /// Whether `names` is complete. A list that takes too long for the budget is not read to its end.
    pub complete: bool,
    /// The number of selected cases that the budget cannot suffice for.
    pub(super) beyond: usize,
    /// How long a process of each program takes to start.
    pub(super) starting: Vec<Duration>,
    /// The remaining budget if it cannot suffice for all cases.
    pub(super) tight_budget: Option<TightBudget>,
}

/// The cases that are weighed, and what the programs declared.
pub struct Cases {
    pub(super) weighed: Vec<Weighed>,
    /// What the programs declared.
    pub declared: Declared,
    /// Whether the iterations of the cases are determined.
    pub(super) calibrated: bool,
}

impl Cases {
    pub(super) fn len(&self) -> usize {
        self.weighed.len()
    }

    /// Leaves out the cases from this index on, and adds a remark about that to the run.
    pub(super) fn leave_out(&mut self, index: usize, why: &str, run: &mut Run) {
        let all = self.len() + std::mem::take(&mut self.declared.beyond);
        if let Some(first) = self.weighed.get(index) {
            run.arms.truncate(first.arm);
        }
        self.weighed.truncate(index);
        let left_out = all - index;
        let text = match self.declared.complete {
            true => format!("{left_out} of {all} cases are left out: {why}"),
            false => format!("{left_out} of the first {all} cases, and all after these, are left out: {why}"),
        };
        run.warn("left-out", text);
    }
}

/// Why a case is no longer weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseEnd {
    /// It failed.
    Failed,
    /// It said that it cannot run here.
    Skipped,
}

/// One case of one program, with one number of threads.
#[derive(Clone, Debug)]
pub(crate) struct Weighed {
    pub(super) side: usize,
    /// The index of the program, among those of a timing process, that runs the case: that of its side, or one of its
    /// own.
    pub(super) place: usize,
    pub(super) case: Case,
    pub(super) threads: u32,
    pub(super) arm: usize,
    pub(super) tare: usize,
    pub(super) iterations: u64,
    pub(super) tare_iterations: u64,
    pub(super) batch_time: Duration,
    /// In how many processes the case was warmed up, and in how many of these it was not warm when that had to end.
    pub(super) warmed: u32,
    pub(super) not_warm: u32,
    /// The page faults of its program in the blocks so far in which these are counted, and the iterations in these.
    pub(super) faults: (u64, u64),
    /// Why the case is no longer weighed.
    pub(super) ended: Option<CaseEnd>,
    /// The index of the same case in the first program that has it. Blocks of both have the same order.
    pub(super) kin: usize,
}

impl Weighed {
    /// Whether the case has neither failed nor been skipped.
    pub(super) fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Adds the arm of a case and that of its tare to the run.
    pub(super) fn lay_out(
        index: usize,
        side: &BenchSide,
        case: &Case,
        threads: u32,
        run: &mut Run,
    ) -> Weighed {
        let name = arm_name(case, threads, side.label.as_deref());
        let subject = Subject::Case {
            name: case.name.clone(),
            program: side.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            group: case.group.clone(),
            shape: case.shape.clone().unwrap_or_default(),
            timing: case.timing,
        };
        let mut params: SortedMap<String, Parameter> = case.params.clone();
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
        add_readings(&mut subject_arm, work_of(case), Pass::Counting, 0);
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
            warmed: 0,
            not_warm: 0,
            faults: (0, 0),
            ended: None,
            kin: position / 2,
        }
    }

    /// Returns the request for one batch of the case or of its tare.
    pub(super) fn batch(&self, kind: LoopKind, iterations: u64) -> Batch {
        let threads = if self.case.concurrency.is_some() { 1 } else { self.threads };
        Batch { id: self.case.id, kind, iterations, threads }
    }

    /// Returns the requests for a batch of the tare and one of the case, whose difference is the net cost.
    pub(super) fn pair(&self, iterations: u64) -> [Batch; 2] {
        [LoopKind::Tare, LoopKind::Case].map(|kind| self.batch(kind, iterations))
    }

    /// Notes a property of the case that the program states only with a batch: every iteration has its own input.
    pub(super) fn learn(&mut self, reply: &BatchReply) {
        if reply.per_iteration_input && !self.case.per_iteration_input {
            self.case.per_iteration_input = true;
            self.case.max_iterations.get_or_insert(MOST_INPUTS);
        }
    }

    pub(super) fn has_threads(&self) -> bool {
        self.threads > 1 || self.case.concurrency.is_some()
    }
}

/// Returns a case with its name in this run.
pub(super) fn case_of(prefix: Option<&str>, case: Case) -> Case {
    match prefix {
        Some(prefix) => Case { name: format!("{prefix}/{}", case.name), ..case },
        None => case,
    }
}

/// Returns the name of a case with the parameters that distinguish it from cases of the same name.
pub(super) fn full_name(case: &Case) -> String {
    with_values(&case.name, &case.params)
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

/// Returns the work of one iteration. It is stored with the readings, so that throughput can be derived from a stored
/// run.
fn work_of(case: &Case) -> Option<Reading> {
    let throughput = case.throughput.as_ref()?;
    let (key, unit) = match throughput.unit.as_str() {
        "bytes" => ("work.bytes", Unit::Bytes),
        _ => ("work.items", Unit::Count),
    };
    Some(Reading::of(
        &Metric::custom(key, unit, Quality::Exact, Pass::Counting),
        throughput.amount,
        "declared",
    ))
}
