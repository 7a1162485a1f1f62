//! The command line: types only.

mod history;
mod inspect;
mod load;

pub use history::{
    AcceptArgs, BUILD_LIMIT, BuildArgs, CleanArgs, HistoryArgs, HistoryVerb, PageArgs, SelectArgs,
    StoredArgs, TIME_LIMIT, TakeArgs,
};
pub use inspect::{Cost, GhcArgs, GhcPart, HeapArgs, LeakArgs, MemoryArgs, PausesArgs, ProfileArgs};
pub use load::LoadArgs;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Weighs programs: time, allocations and memory, side by side, with honest intervals.
///
/// A difference is reported with one of four verdicts: different, same (within the margin), small (surely not zero,
/// maybe below the margin), or don't know (and about how many more blocks would tell).
#[derive(Debug, Parser)]
#[command(name = "scruple", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    // What these four say of themselves stands with their options.
    Run(Box<RunArgs>),
    Bench(Box<BenchArgs>),
    Load(Box<LoadArgs>),
    Compare(Box<CompareArgs>),
    History(Box<HistoryArgs>),
    /// Show a stored run again, in any format.
    Show(ShowArgs),
    /// Read the results of other benchmark tools into the store.
    Import(ImportArgs),
    /// List the stored runs.
    List(ListArgs),
    // What these say of themselves stands with their options.
    Memory(MemoryArgs),
    Leak(LeakArgs),
    Ghc(GhcArgs),
    /// Say what this machine can and cannot measure, why, and how noisy it is now.
    Doctor(DoctorArgs),
    /// List the metrics, with their units and meanings.
    Metrics,
    /// Burn processor time, for doctor's own comparison.
    #[command(hide = true)]
    Burn {
        /// How many rounds.
        rounds: u64,
    },
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Weigh commands side by side.
///
/// Each command is one argument, split into words as a shell would, but run without a shell. All commands are arms of
/// one interleaved comparison: every block runs each of them once, in an order drawn from the seed. Time is read from
/// untouched runs; memory and allocations are read in runs of their own.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple run 'gzip -k -c big.txt' 'zstd -c big.txt'
  scruple run -L level 1,6,9 'gzip -{level} -c big.txt'
  scruple run -P size 1000 5000 -D 1000 './sort {size}'
  scruple run --limit 'malloc.bytes<4MB' --limit 'time.cpu<+3%' ./old ./new
  scruple run -S sh 'sort big.txt | uniq -c'
")]
pub struct RunArgs {
    /// The commands to weigh (default: the [[command]]s of scruple.toml).
    #[arg(value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// What and how long to measure.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// What surrounds each run.
    #[command(flatten)]
    pub hooks: HookArgs,
    /// Parameters.
    #[command(flatten)]
    pub scan: ScanArgs,
    /// How the programs are run.
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Play readings from a file instead of measuring (for tests).
    #[arg(long, hide = true, value_name = "FILE")]
    pub scripted: Option<PathBuf>,
}

/// What and how long to measure.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Run each command this many times first, without measuring.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub warmup: u32,
    /// Measure exactly this many blocks.
    #[arg(short, long, value_name = "N", conflicts_with_all = ["min_runs", "max_runs"])]
    pub runs: Option<u32>,
    /// Measure at least this many blocks.
    #[arg(short, long, value_name = "N")]
    pub min_runs: Option<u32>,
    /// Measure at most this many blocks.
    #[arg(short = 'M', long, value_name = "N")]
    pub max_runs: Option<u32>,
    /// Stop measuring time after about this long, even if the verdict is open.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub budget: String,
    /// Differences within this margin do not matter.
    #[arg(long, value_name = "PERCENT", default_value = "2%")]
    pub margin: String,
    /// Also weigh the reference against itself; no margin is then narrower than what that shows.
    #[arg(long = "self")]
    pub twin: bool,
    /// Seed of every random choice; printed with each result.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The metrics to show: keys, families such as ‘malloc’, or ‘all’ (see `scruple metrics`).
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Fail with exit code 1 when a metric exceeds a limit, which itself may be reached: an amount or, with a sign, a
    /// change from the reference in percent.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// Measure time only: no runs for memory, allocations and output.
    #[arg(long)]
    pub time_only: bool,
    /// Run each command once more and watch its memory map: by class, permission, shared or private, clean or dirty.
    #[arg(long, conflicts_with = "time_only")]
    pub memory_map: bool,
}

/// What surrounds each run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Around the runs")]
pub struct HookArgs {
    /// Run this (in a shell) before each run; give it once for all commands or once for each.
    #[arg(short, long, value_name = "CMD")]
    pub prepare: Vec<String>,
    /// Run this after each run; give it once for all commands or once for each.
    #[arg(short = 'C', long, value_name = "CMD")]
    pub conclude: Vec<String>,
    /// Run this once for each command, before its first run.
    #[arg(short, long, value_name = "CMD")]
    pub setup: Option<String>,
    /// Run this once for each command, after its last run.
    #[arg(short, long, value_name = "CMD")]
    pub cleanup: Option<String>,
}

/// Parameters.
#[derive(Args, Debug)]
#[command(next_help_heading = "Parameters")]
pub struct ScanArgs {
    /// Replace {VAR} by every number from MIN to MAX.
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], allow_negative_numbers = true)]
    pub parameter_scan: Vec<String>,
    /// The step of the scan.
    #[arg(
        short = 'D',
        long,
        value_name = "STEP",
        requires = "parameter_scan",
        allow_negative_numbers = true
    )]
    pub parameter_step_size: Option<String>,
    /// Replace {VAR} by every value of a comma-separated list; several lists give all combinations.
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"])]
    pub parameter_list: Vec<String>,
}

/// How the programs are run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Running")]
pub struct LaunchArgs {
    /// Run commands in this shell (‘sh’, ‘bash --norc’, or ‘none’); its own cost is then shown as a row.
    #[arg(short = 'S', long, value_name = "SHELL")]
    pub shell: Option<String>,
    /// Run without a shell: the default here, accepted for the habit.
    #[arg(short = 'N', conflicts_with = "shell")]
    pub no_shell: bool,
    /// Go on when a command exits with another code than 0.
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// Give a command another name; in the order of the commands.
    #[arg(short = 'n', long, value_name = "NAME")]
    pub command_name: Vec<String>,
    /// Compare with this command, which becomes the first arm (default: the first one given).
    #[arg(long, value_name = "CMD")]
    pub reference: Option<String>,
    /// Where standard input comes from: ‘null’, ‘inherit’, ‘pipe:FILE’, or a file.
    #[arg(long, value_name = "WHERE", default_value = "null")]
    pub input: String,
    /// Where standard output goes: ‘null’, ‘pipe’, ‘inherit’, or a file.
    #[arg(long, value_name = "WHERE", default_value = "null")]
    pub output: String,
    /// Show what the commands print (the same as --output=inherit).
    #[arg(long, conflicts_with = "output")]
    pub show_output: bool,
    /// End a run that takes longer, and call it a failure.
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<String>,
    /// Run with real-time priority, on these cores if any are named (‘--shield=1’); falls back where not permitted.
    #[arg(long, value_name = "CORES", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub shield: Option<String>,
    /// Turn off address randomisation in the memory and counting passes, so that their figures repeat.
    #[arg(long)]
    pub no_aslr: bool,
    /// Copy each program into the work folder first, the same way and under names of the same length.
    #[arg(long)]
    pub pin: bool,
}

/// Where results go.
#[derive(Args, Debug)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Write JSON to a file (‘-’ for standard output, and the table to standard error).
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Write CSV to a file.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// Write a Markdown table to a file.
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
    /// Write an AsciiDoc table to a file.
    #[arg(long, value_name = "FILE")]
    pub export_asciidoc: Option<PathBuf>,
    /// Write an Org table to a file.
    #[arg(long, value_name = "FILE")]
    pub export_org: Option<PathBuf>,
    /// When to use colour.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where runs are kept.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Store")]
pub struct StoreArgs {
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "FILE", env = "SCRUPLE_STORE")]
    pub store: Option<PathBuf>,
    /// Keep nothing, whatever store is named.
    #[arg(long)]
    pub no_store: bool,
    /// A name for this run, to find it by.
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
}

/// Weigh the cases of a bench program: time net of the harness, allocations, collections.
///
/// The program declares cases through one of the SDKs. Each case is timed in several fresh processes, in blocks that
/// visit every case beside its tare: the same loop around an identity body. Raw, tare and net are shown apart.
/// Allocations and collections are counted in processes of their own.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple bench -- ./micro-bench
  scruple bench --filter parse --detail -- python3 bench.py
  scruple bench --against ./old/micro-bench -- ./new/micro-bench
  scruple bench --check --junit report.xml -- ./micro-bench
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
    /// Compare with another build of the suite, interleaved case by case; the first is the reference. Several, each
    /// perhaps named, give a matrix: --against c=./fnv-c --against clang=./fnv-clang.
    #[arg(long, value_name = "[NAME=]PROGRAM")]
    pub against: Vec<String>,
    /// The name of the program behind `--` where several are compared.
    #[arg(long, value_name = "NAME", default_value = "new", requires = "against")]
    pub name: String,
    /// Compare with a stored run: an id, a label, ‘last’.
    #[arg(long, value_name = "RUN", conflicts_with = "against")]
    pub baseline: Option<String>,
    /// Compare every case with this one.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["against", "baseline"])]
    pub reference: Option<String>,
    /// Show the diagnostic panel of each case: OLS, R², outliers, distribution.
    #[arg(short, long)]
    pub detail: bool,
    /// Fewer processes and blocks: a first look in a second or two.
    #[arg(short, long)]
    pub quick: bool,
    /// Start no further process after this much time.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Exactly this many fresh processes.
    #[arg(long, value_name = "N")]
    pub processes: Option<u32>,
    /// This many blocks in each process.
    #[arg(long, value_name = "N")]
    pub blocks: Option<u32>,
    /// Numbers of threads for cases that declare several.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Differences within this margin do not matter.
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    pub margin: String,
    /// The time limit of one batch; a case that exceeds it fails, the others go on.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub case_limit: String,
    /// Measure time only: no counting pass.
    #[arg(long)]
    pub time_only: bool,
    /// Fail with exit code 1 when a budget is exceeded, with 3 when the readings cannot tell.
    #[arg(long)]
    pub check: bool,
    /// A limit besides those of the cases; any makes the exit code tell, as with --check.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// Write the cases and their budgets as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Seed of every random choice; printed with each result.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Compare two stored runs, or two revisions of a repository.
///
/// Of two stored runs, arms of the same name are compared; where each run has a single arm, these two. The runs were
/// not taken side by side, so whatever changed on the machine in between counts as a difference. Behind `--` stands a
/// command to weigh at two revisions instead: both are built, each once, and weighed side by side.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple compare last~1 last
  scruple compare --build make --artifact app v1.0 HEAD -- ./app input.txt
  scruple compare --base main --limit 'time.cpu<+3%' --build make --artifact app -- ./app input.txt
")]
pub struct CompareArgs {
    /// The run compared with: an id or its beginning, a label, ‘last’, or ‘last~1’; with a command, or where no
    /// run is called so, a revision.
    #[arg(required_unless_present = "base", value_name = "REFERENCE")]
    pub reference: Option<String>,
    /// The run compared; with a command, a revision, or what is in the working tree where it is left out.
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Compare with the merge base of this branch and HEAD.
    #[arg(long, value_name = "BRANCH", conflicts_with = "reference")]
    pub base: Option<String>,
    /// The command to weigh at two revisions (default: all [[command]]s of scruple.toml).
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// A name for the command; without one behind --, weigh only the one of scruple.toml that has this name.
    #[arg(short = 'n', long, value_name = "NAME")]
    pub command_name: Vec<String>,
    /// How revisions are built.
    #[command(flatten)]
    pub build: BuildArgs,
    /// Measure exactly this many blocks of two revisions.
    #[arg(short, long, value_name = "N")]
    pub runs: Option<u32>,
    /// Stop measuring time after about this long, even if the verdict is open.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub budget: String,
    /// Seed of every random choice; printed with each result.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Measure time only: no runs for memory, allocations and output.
    #[arg(long)]
    pub time_only: bool,
    /// Differences within this margin do not matter.
    #[arg(long, value_name = "PERCENT")]
    pub margin: Option<String>,
    /// The metrics to show.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Fail with exit code 1 when a metric exceeds a limit; with 3 when the readings cannot tell.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Show a stored run again.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The run: an id or its beginning, a label, ‘last’, or ‘last~1’.
    #[arg(default_value = "last")]
    pub run: String,
    /// The metrics to show.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// The store.
    #[arg(long, value_name = "FILE", env = "SCRUPLE_STORE")]
    pub store: Option<PathBuf>,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
}

/// Read the results of other benchmark tools into the store.
///
/// Each file becomes a run, which can then be listed, shown and compared like any other. Readings keep the order in
/// which the tool wrote them; a tool that writes only a mean or a median gives one reading, marked as estimated. If one
/// file cannot be read, none is imported.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple import --label before hyperfine.json
  scruple import target/criterion
  go test -bench . -count 10 | scruple import --label new -
  scruple import old.json new.json && scruple compare last~1 last
")]
pub struct ImportArgs {
    /// Files of other tools; a folder of criterion.rs; ‘-’ for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The format (default: recognised by the content).
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub format: Option<crate::import::Format>,
    /// A name for the run, to find it by.
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "FILE", env = "SCRUPLE_STORE")]
    pub store: Option<PathBuf>,
}

/// List the stored runs.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// At most this many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub most: usize,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The store.
    #[arg(long, value_name = "FILE", env = "SCRUPLE_STORE")]
    pub store: Option<PathBuf>,
}

/// What this machine can measure.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Skip the five seconds that find out how noisy the machine is now.
    #[arg(long)]
    pub quick: bool,
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "FILE", env = "SCRUPLE_STORE")]
    pub store: Option<PathBuf>,
    /// A program to look at: what can be had of it, and why not the rest.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
