//! The command line of `scruple check`.

use crate::bench::args::BenchArgs;
use crate::cli::shared_args::{ResultArgs, StoreArgs};
use crate::cli::values;
use crate::command::args::RunArgs;
use crate::load::args::LoadArgs;
use crate::versions::args::BuildArgs;
use clap::{Args, Subcommand};
use scruple_core::default_margins;

/// The files that a gate can be written to.
const EXPORT: &str = "Write a file. Its extension chooses the format: .html, .md, .json, .xml (JUnit), .sarif or .svg \
    (a badge)";

/// Gate a change: weigh merge base and working tree side by side.
///
/// The exit code is 0 if nothing became worse, 1 if something did or a limit is exceeded, and 3 if the readings
/// cannot tell. Counts that repeat decide: allocations and their bytes at any difference, instructions beyond the
/// margin. Times are shown and do not decide. --gate chooses other metrics that decide. Changes that a commit
/// accepts pass (see `scruple history accept`).
///
/// The commands below gate two programs, two builds of a suite, or two servers instead of two revisions, with the
/// options of the verb that weighs them.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    mut_arg("files", |arg| arg.help(EXPORT).long_help(EXPORT)),
    after_long_help = "\
Examples:
  scruple check --base main --build make --artifact app -- ./app {here}/input.txt
  scruple check --export check.md --export check.sarif      # the rest from scruple.toml
  scruple check --gate time.cpu,malloc --margin 3% -- ./app {here}/input.txt
  scruple check run './old input.txt' './new input.txt'
  scruple check bench --against ./old/micro-bench -- ./new/micro-bench
  scruple check load :8081 --rate 500 --against 'old=:8080 -- ./old 8080' -- ./new 8081
"
)]
pub struct CheckArgs {
    /// The forms of `scruple check`.
    #[command(subcommand)]
    pub verb: Option<CheckVerb>,
    /// Two revisions.
    #[command(flatten)]
    pub take: RevisionArgs,
}

/// Alternatives to two revisions. The first one is the reference.
#[derive(Debug, Subcommand)]
pub enum CheckVerb {
    /// Gate commands: all are compared with the first.
    #[command(after_long_help = "\
Examples:
  scruple check run './old input.txt' './new input.txt'
  scruple check run --gate time.cpu,malloc --margin 3% ./old ./new")]
    Run(Box<OfCommands>),
    /// Gate a suite against another build of it.
    #[command(after_long_help = "\
Examples:
  scruple check bench --against ./old/micro-bench -- ./new/micro-bench")]
    Bench(Box<OfSuites>),
    /// Gate a server against another one.
    #[command(after_long_help = "\
Examples:
  scruple check load :8081 --rate 500 --against 'old=:8080 -- ./old 8080' -- ./new 8081")]
    Load(Box<OfServers>),
}

/// The commands.
#[derive(Args, Debug)]
pub struct OfCommands {
    /// The gate.
    #[command(flatten)]
    pub gate: GateArgs,
    /// What is weighed.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The suites.
#[derive(Args, Debug)]
pub struct OfSuites {
    /// The gate.
    #[command(flatten)]
    pub gate: GateArgs,
    /// What is weighed.
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// The servers.
#[derive(Args, Debug)]
pub struct OfServers {
    /// The gate.
    #[command(flatten)]
    pub gate: GateArgs,
    /// What is weighed.
    #[command(flatten)]
    pub load: LoadArgs,
}

/// The gate.
#[derive(Args, Clone, Debug, Default)]
pub struct GateArgs {
    /// The metrics that decide: keys, or families such as ‘malloc’ (default: counts that repeat).
    #[arg(long, value_name = "KEYS", value_delimiter = ',', hide_short_help = true)]
    pub gate: Vec<String>,
}

/// Two revisions.
#[derive(Args, Debug)]
pub struct RevisionArgs {
    /// The branch whose merge base with HEAD is the reference, or an earlier commit (default: the main branch).
    #[arg(long, value_name = "BRANCH")]
    pub base: Option<String>,
    /// The command to weigh (default: all of scruple.toml).
    ///
    /// It is launched in the folder of each version's artefacts.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Name the command, or pick one of scruple.toml.
    #[arg(short = 'n', long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// The command is a bench program, whose cases are weighed.
    #[arg(long, requires = "command")]
    pub bench: bool,
    /// The gate.
    #[command(flatten)]
    pub gate: GateArgs,
    /// Launch each command of either revision this many times, in all passes together; see `scruple run --help`.
    #[arg(short, long, value_name = "N")]
    pub runs: Option<u32>,
    /// Spend about this long in all passes together, on the commands and on each bench program.
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub budget: String,
    /// Treat differences within this margin as the same.
    #[arg(long, value_name = "PERCENT", default_value_t = values::percent(default_margins::COMMANDS))]
    pub margin: String,
    /// Exit with code 1 when a metric exceeds this, and with 3 when the readings cannot tell.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// The seed of every random choice; it is printed with each result.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// How versions are built.
    #[command(flatten)]
    pub build: BuildArgs,
    /// Where results are written.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
}
