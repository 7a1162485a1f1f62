//! The command line of histories.

use crate::cli::{Colour, StoreArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// How long a step and a launch may take where nobody says so.
pub const BUILD_LIMIT: &str = "30min";
pub const TIME_LIMIT: &str = "5min";

/// Weigh the versions of a range of commits; say which changed what.
///
/// Each version is built once, in one stable path outside of the repository. Versions are then weighed round-robin, so
/// that what the machine does meanwhile meets all of them. Commits that cannot be built, fail the check or hang are
/// recorded and passed over. The same command goes on where an earlier one was interrupted or killed, and a longer
/// range keeps what was read. Build steps, commands and exceptions for old commits can stand in scruple.toml, which is
/// read from the working folder and never from a commit.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "\
Examples:
  scruple history v1.0..HEAD --build 'make' --artifact app -- ./app input.txt
  scruple history --steps 20 --build 'cargo build --release' --artifact target/release/app -- ./target/release/app
  scruple history --repo https://example.org/tool.git --tags --build ./configure --build make --artifact tool -- ./tool
  scruple history                      # everything from scruple.toml
"
)]
pub struct HistoryArgs {
    /// Something else than weighing.
    #[command(subcommand)]
    pub verb: Option<HistoryVerb>,
    /// What to weigh.
    #[command(flatten)]
    pub take: TakeArgs,
}

/// What else can be done with histories.
#[derive(Debug, Subcommand)]
pub enum HistoryVerb {
    /// Look closer where a change is: build and weigh the versions there that were skipped, or left out by the
    /// selection. Without a range, of the versions that the history lists; without a command, of the newest history of
    /// the repository.
    Bisect(Box<TakeArgs>),
    /// Weigh more commits beside those that the history has already; without a command, beside those of the newest
    /// history of the repository.
    Extend(Box<TakeArgs>),
    /// Declare a change as intended: print the trailer for the commit's message, or add a line to a tracked file.
    Accept(AcceptArgs),
    /// Say what has become of each version of a history of a repository, and which other histories there are.
    Status(StoredArgs),
    /// Report a history of a repository again, without measuring.
    Report(StoredArgs),
    /// Say how much room the builds of versions take, and free it. Readings stay, and what is gone is built again when it
    /// is needed.
    Clean(CleanArgs),
}

/// What to weigh.
#[derive(Args, Clone, Debug)]
pub struct TakeArgs {
    /// The commits, as git understands ranges, such as v1.0..HEAD, of which v1.0 itself is no part, or v1.0^..HEAD
    /// (default: the range of scruple.toml, else all that HEAD reaches).
    #[arg(value_name = "RANGE")]
    pub range: Option<String>,
    /// The command to weigh, run among the artefacts (default: the [[command]]s and [[bench]]es of scruple.toml). In it
    /// and in scruple.toml, {here} is the working folder or that of scruple.toml.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// A name for the command; without one behind --, weigh only what has this name in scruple.toml.
    #[arg(short = 'n', long, value_name = "NAME")]
    pub command_name: Vec<String>,
    /// The command is a bench program, of which each case is weighed.
    #[arg(long, requires = "command")]
    pub bench: bool,
    /// Which commits.
    #[command(flatten)]
    pub select: SelectArgs,
    /// How versions are built.
    #[command(flatten)]
    pub build: BuildArgs,
    /// Build again what could not be built or weighed before.
    #[arg(long)]
    pub retry: bool,
    /// Go on when six builds have failed one after the other.
    #[arg(long)]
    pub keep_going: bool,
    /// How long and how often to measure.
    #[command(flatten)]
    pub effort: EffortArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Where results go.
    #[command(flatten)]
    pub page: PageArgs,
    /// Play readings from a file instead of measuring (for tests).
    #[arg(long, hide = true, value_name = "FILE")]
    pub scripted: Option<PathBuf>,
}

/// Which commits.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection")]
pub struct SelectArgs {
    /// Follow the first parents of merges only.
    #[arg(long)]
    pub first_parent: bool,
    /// Merges only.
    #[arg(long, conflicts_with = "no_merges")]
    pub merges: bool,
    /// No merges.
    #[arg(long)]
    pub no_merges: bool,
    /// Only commits that have a tag.
    #[arg(long)]
    pub tags: bool,
    /// Every N-th commit, counted from the last.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub every: Option<u32>,
    /// N commits, evenly over the range, with both ends.
    #[arg(long, value_name = "N", conflicts_with = "every", value_parser = clap::value_parser!(u32).range(2..))]
    pub steps: Option<u32>,
    /// Commits that are not older than this.
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,
    /// Commits that are not younger than this.
    #[arg(long, value_name = "DATE")]
    pub until: Option<String>,
    /// These commits and no others.
    #[arg(long, value_name = "COMMITS", value_delimiter = ',', conflicts_with = "range")]
    pub commits: Vec<String>,
    /// The commits that a file lists, one to a line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["range", "commits"])]
    pub commits_from: Option<PathBuf>,
}

/// How versions are built.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Building")]
pub struct BuildArgs {
    /// The repository: a path or a URL (default: the one of the working folder).
    #[arg(long, value_name = "PATH_OR_URL")]
    pub repo: Option<String>,
    /// A build step, run by a shell in the tree of the version; several run in this order.
    #[arg(long, value_name = "STEP")]
    pub build: Vec<String>,
    /// A file or folder of the tree to keep for weighing (default: the whole tree).
    #[arg(long, value_name = "PATH")]
    pub artifact: Vec<String>,
    /// Run this in the tree after the build; a version for which it fails is not weighed.
    #[arg(long, value_name = "CMD")]
    pub check: Option<String>,
    /// Set a variable for steps, check and command.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Commands whose output tells toolchains apart (default: which files the programs of the steps, cc and rustc are).
    #[arg(long, value_name = "CMD")]
    pub toolchain: Vec<String>,
    /// Remove what earlier builds left before each build, so that build times can be compared.
    #[arg(long)]
    pub clean: bool,
    /// End a step or a check that takes longer.
    #[arg(long, value_name = "TIME", default_value = BUILD_LIMIT)]
    pub build_limit: String,
    /// Take a version whose command prints something else than the first one's for wrong.
    #[arg(long)]
    pub same_output: bool,
    /// End a launch of a command that takes longer.
    #[arg(long, value_name = "TIME", default_value = TIME_LIMIT)]
    pub time_limit: String,
}

/// How long and how often to measure.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sampling")]
pub struct EffortArgs {
    /// Launch every version exactly this often for its time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Weigh the ends first, then where neighbours differ, then the rest while there is time (default: for more than 16
    /// versions).
    #[arg(long)]
    pub adaptive: bool,
    /// Build and weigh every version.
    #[arg(long, conflicts_with = "adaptive")]
    pub all: bool,
    /// Measuring time after which only what must be is done.
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub budget: String,
    /// Differences within this margin do not matter.
    #[arg(long, value_name = "PERCENT", default_value = "2%")]
    pub margin: String,
    /// Seed of every random choice.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Measure time only: no runs for memory, allocations and output.
    #[arg(long)]
    pub time_only: bool,
}

/// Which change is intended.
#[derive(Args, Debug)]
pub struct AcceptArgs {
    /// The commit that brought the change.
    pub commit: String,
    /// The metric that changed (default: all).
    #[arg(long, value_name = "KEY")]
    pub metric: Option<String>,
    /// The command that it changed for (default: all).
    #[arg(long, value_name = "NAME")]
    pub subject: Option<String>,
    /// Why it is intended.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Add a line to .scruple-accepted instead of printing a trailer, for commits that cannot be amended.
    #[arg(long)]
    pub file: bool,
    /// The repository (default: the one of the working folder).
    #[arg(long, value_name = "PATH")]
    pub repo: Option<String>,
}

/// Which builds are to go.
#[derive(Args, Debug)]
pub struct CleanArgs {
    /// The repository (default: the one of the working folder).
    #[arg(long, value_name = "PATH_OR_URL")]
    pub repo: Option<String>,
    /// The builds of all repositories, also of those that are not there any more.
    #[arg(long, conflicts_with = "repo")]
    pub all: bool,
    /// Free only builds that nobody has asked for within this time, such as 30d.
    #[arg(long, value_name = "TIME")]
    pub older_than: Option<String>,
    /// Only say how much would be freed.
    #[arg(long)]
    pub dry_run: bool,
}

/// A stored history.
#[derive(Args, Debug)]
pub struct StoredArgs {
    /// The history: the id of its run or the beginning of that, or its label (default: the newest of the repository; for
    /// report, the newest in which a version could be weighed).
    #[arg(value_name = "HISTORY")]
    pub history: Option<String>,
    /// The repository (default: the one of the working folder).
    #[arg(long, value_name = "PATH_OR_URL")]
    pub repo: Option<String>,
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "FILE", env = "SCRUPLE_STORE")]
    pub store: Option<PathBuf>,
    /// Where results go.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Where the results of a weighed range go.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Results")]
pub struct PageArgs {
    /// Show these metrics, divided by commas (default: those that tables usually show).
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Print only what changed between two of the versions, as a line of Markdown.
    #[arg(long, value_name = "A..B", conflicts_with = "json")]
    pub pair: Option<String>,
    /// Write a page for browsers, which needs nothing besides itself.
    #[arg(long, value_name = "FILE")]
    pub export_html: Option<PathBuf>,
    /// Write the chart.
    #[arg(long, value_name = "FILE")]
    pub export_svg: Option<PathBuf>,
    /// In the chart, equal lengths are equal differences instead of equal ratios.
    #[arg(long)]
    pub linear: bool,
    /// In the chart, allocations, memory and time share one panel with three axes.
    #[arg(long)]
    pub combined: bool,
    /// Write Improvement and Regression lines in Markdown.
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
    /// Write commit;allocations;memory;time.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// The command of which --export-csv writes (default: the first).
    #[arg(long, value_name = "NAME")]
    pub subject: Option<String>,
    /// Write a row for each metric of each command at each version, as CSV.
    #[arg(long, value_name = "FILE")]
    pub export_readings: Option<PathBuf>,
    /// Write JSON, with every reading.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// When to use colour.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,
}
