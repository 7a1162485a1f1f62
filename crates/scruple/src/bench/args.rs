//! The command line of `scruple bench`.

use crate::cli::shared_args::{ResultArgs, StoreArgs};
use crate::cli::values;
use crate::fault::FailingLimits;
use clap::Args;
use scruple_core::default_margins;

/// Weigh the cases of a bench program, less the cost of the harness.
///
/// The program declares cases through one of the SDKs. Each case is timed in several fresh processes, in blocks. A
/// block times every case and, beside it, its tare: the same loop around an identity body. Raw, tare and net are shown
/// separately. Allocations and collections are counted in separate processes.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple bench -- ./micro-bench
  scruple bench --filter parse --detail -- python3 bench.py
  scruple bench --against ./old/micro-bench -- ./new/micro-bench
  scruple bench --check --export report.xml -- ./micro-bench
")]
pub struct BenchArgs {
    /// The bench program and its arguments (default: the [[bench]] of scruple.toml).
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
    /// Only cases whose name contains this, or that have this tag.
    #[arg(short, long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// List the selected cases and end.
    #[arg(long)]
    pub list: bool,
    /// What the cases are compared with.
    #[command(flatten)]
    pub comparison: BenchComparisonArgs,
    /// Show details of each case: a least-squares line with R², outliers, the distribution.
    #[arg(short, long)]
    pub detail: bool,
    /// How much is measured.
    #[command(flatten)]
    pub effort: BenchEffortArgs,
    /// Run the cases that declare several numbers of threads with these numbers.
    #[arg(long, value_name = "N", value_delimiter = ',', hide_short_help = true)]
    pub threads: Vec<u32>,
    /// Treat differences within this margin as the same.
    #[arg(long, value_name = "PERCENT", default_value_t = values::percent(default_margins::CASES))]
    pub margin: String,
    /// The time limit of one batch, and of the program's first answer.
    ///
    /// A case that exceeds it fails, and the others continue. Scruple waits up to ten times as long for a program that
    /// had no core.
    #[arg(
        long = "time-limit",
        alias = "case-limit",
        value_name = "TIME",
        default_value = "60s",
        hide_short_help = true
    )]
    pub case_limit: String,
    /// What is measured.
    #[command(flatten)]
    pub passes: BenchPassArgs,
    /// The limits, and what they decide.
    #[command(flatten)]
    pub limits: BenchLimitArgs,
    /// The metrics to show; instructions are counted only if they are listed here.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// The seed of every random choice; it is printed with each result.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Where results are written.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Whether counts decide a gate, so that every case is counted even beyond the budget.
    #[arg(skip)]
    pub counts_decide: bool,
}

/// What the cases are compared with.
#[derive(Args, Debug)]
pub struct BenchComparisonArgs {
    /// Compare with another build of the suite, case by case.
    ///
    /// The first is the reference. Several programs, with or without names, give a matrix: --against c=./fnv-c
    /// --against clang=./fnv-clang.
    #[arg(long, value_name = "[NAME=]PROGRAM")]
    pub against: Vec<String>,
    /// The name of the program after `--` when several are compared.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "new",
        requires = "against",
        short = 'n',
        hide_short_help = true
    )]
    pub name: String,
    /// Compare with a stored run: an id, a label, ‘last’.
    #[arg(long, value_name = "RUN", conflicts_with = "against")]
    pub baseline: Option<String>,
    /// Compare every case with this one.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["against", "baseline"])]
    pub reference: Option<String>,
}

/// How much of the cases is measured.
#[derive(Args, Debug)]
pub struct BenchEffortArgs {
    /// Measure briefly: a few blocks in three processes, and in up to five more within the first second.
    #[arg(short, long)]
    pub quick: bool,
    /// Start no further process after this time.
    ///
    /// Counting may take the same time again. Cases that do not fit are not counted, and a remark names them.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Start exactly this many fresh processes.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub processes: Option<u32>,
    /// Measure this many blocks in each process.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub blocks: Option<u32>,
}

/// What of the cases is measured.
#[derive(Args, Debug)]
pub struct BenchPassArgs {
    /// Measure time only: no counting pass.
    #[arg(long, hide_short_help = true)]
    pub time_only: bool,
    /// Count only: allocations and collections, and no processes for time.
    #[arg(long, conflicts_with_all = ["time_only", "quick"], hide_short_help = true)]
    pub count_only: bool,
}

/// The limits of the cases, and what they decide.
#[derive(Args, Debug)]
pub struct BenchLimitArgs {
    /// Exit with code 3 when the readings cannot tell whether a limit is kept.
    ///
    /// The exit code is 1 when a limit is exceeded, with or without this option.
    #[arg(long)]
    pub check: bool,
    /// Report limits, but do not let them affect the exit code.
    #[arg(long, conflicts_with = "check", hide_short_help = true)]
    pub no_check: bool,
    /// Add a limit to those of the cases; implies --check.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
}

impl BenchLimitArgs {
    /// Returns which outcomes of the limits make the exit code other than 0.
    pub fn failing_limits(&self) -> FailingLimits {
        match (self.no_check, self.check || !self.limit.is_empty()) {
            (true, _) => FailingLimits::None,
            (false, true) => FailingLimits::NotKept,
            (false, false) => FailingLimits::Exceeded,
        }
    }
}
