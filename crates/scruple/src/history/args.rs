//! The command line of histories.

use crate::cli::shared_args::StoreArgs;
use crate::cli::values::margin_help;
use crate::render::export::ExportArgs;
use crate::versions::args::BuildArgs;
use clap::{Args, Subcommand, ValueEnum};
use scruple_core::default_margins::COMMANDS;
use std::path::PathBuf;

/// The files that a history can be written to.
const EXPORT: &str = "Write a file; its extension chooses .html, .svg, .md, .csv or .json";
const EXPORT_LONG: &str = "\
Write a file. Its extension chooses the format: .html (a page), .svg (the chart), .md (lines for a message), .csv \
(commit;allocations;memory;time) or .json; json:- is standard output, and readings:FILE is CSV with a row for each \
metric of each command at each version";

/// Weigh the versions of a commit range; show which changed a cost.
///
/// Each version is built once, always at the same path outside of the repository. Versions are then weighed in turns,
/// so that disturbances of the machine affect all of them alike. Commits that cannot be built, fail the check or hang
/// are recorded and skipped. The same command continues where an earlier one was interrupted or killed. A longer range
/// keeps the readings of a shorter one. Build steps, commands and exceptions for old commits can be given in
/// scruple.toml, which is read from the working folder and never from a commit.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_long_help = "\
Examples:
  scruple history v1.0..HEAD --build 'make' --artifact app -- ./app {here}/input.txt
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
    /// Locate changes: weigh versions that were skipped or left out.
    ///
    /// Without a range, the versions are those of the history. Without a command, the history is the newest of the
    /// repository.
    Bisect(Box<TakeArgs>),
    /// Weigh more commits in addition to those of an existing history.
    ///
    /// Without a command, the newest history of the repository is extended.
    Extend(Box<TakeArgs>),
    /// Declare a change as intended, in the commit's message or in a tracked file.
    Accept(AcceptArgs),
    /// Show the state of each version, and list the other histories.
    Status(StatusArgs),
    /// Report a history of a repository again, without measuring.
    Report(Box<StoredArgs>),
    /// Show how much disk space the builds of versions take, and free it.
    ///
    /// Readings stay. A build that is needed later is made again.
    Clean(CleanArgs),
}

/// What to weigh.
// A history continues from what is stored, so it has no --no-store.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("no_store", |arg| arg.hide(true)))]
pub struct TakeArgs {
    /// The commits, as git understands ranges (default: HEAD and all its ancestors).
    ///
    /// A range in scruple.toml replaces the default. v1.0..HEAD does not contain v1.0 itself; v1.0^..HEAD does.
    #[arg(value_name = "RANGE")]
    pub range: Option<String>,
    /// The command, run in the folder of the artefacts (default: those of scruple.toml).
    ///
    /// {here} stands for the working folder, or in scruple.toml for the folder of that file.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Name the command, or pick one of scruple.toml.
    #[arg(short = 'n', long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// The command is a bench program, whose cases are weighed.
    #[arg(long, requires = "command", hide_short_help = true)]
    pub bench: bool,
    /// Try again to build and weigh the versions that failed before.
    #[arg(long, hide_short_help = true)]
    pub retry: bool,
    /// Continue when six builds in a row have failed.
    #[arg(long, hide_short_help = true)]
    pub keep_going: bool,
    /// Say for each change which code causes it (see `scruple explain`).
    #[arg(long, hide_short_help = true)]
    pub explain: bool,
    /// Which commits.
    #[command(flatten)]
    pub select: SelectArgs,
    /// How versions are built.
    #[command(flatten)]
    pub build: BuildArgs,
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
    /// Of merges, follow only the first parent.
    #[arg(long)]
    pub first_parent: bool,
    /// Only merges.
    #[arg(long, conflicts_with = "no_merges", hide_short_help = true)]
    pub merges: bool,
    /// Only commits that are not merges.
    #[arg(long, hide_short_help = true)]
    pub no_merges: bool,
    /// Only commits that have a tag.
    #[arg(long, hide_short_help = true)]
    pub tags: bool,
    /// Only every N-th commit, counted from the last.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub every: Option<u32>,
    /// Only N commits, spread evenly over the range, including both ends.
    #[arg(long, value_name = "N", conflicts_with = "every", value_parser = clap::value_parser!(u32).range(2..))]
    pub steps: Option<u32>,
    /// Only commits that are not older than this.
    #[arg(long, value_name = "DATE", hide_short_help = true)]
    pub since: Option<String>,
    /// Only commits that are not newer than this.
    #[arg(long, value_name = "DATE", hide_short_help = true)]
    pub until: Option<String>,
    /// Only these commits, separated by commas; ‘@FILE’ reads them from a file.
    #[arg(
        long,
        value_name = "COMMITS",
        value_delimiter = ',',
        conflicts_with = "range",
        hide_short_help = true
    )]
    pub commits: Vec<String>,
    /// The commits that a file lists, one per line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["range", "commits"], hide = true)]
    pub commits_from: Option<PathBuf>,
}

/// How long and how often to measure.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sampling")]
pub struct EffortArgs {
    /// Launch each command of every version at most this many times, in all passes together.
    ///
    /// If a later command gives a larger number, memory and counts are read again, in addition to the earlier launches.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Launch every version exactly this many times for time, in addition to the launches for memory and counts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "runs", hide_short_help = true)]
    pub rounds: Option<u32>,
    /// Build each version N times, in turns and each time with --clean, to compare build costs
    ///
    /// With six builds or more, Scruple says whether a version costs more to build, and after how many runs of the
    /// command that pays off. The artefacts of the first build are weighed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub builds: Option<u32>,
    /// Weigh the ends first, then where neighbours differ, then the rest while there is time.
    ///
    /// This is the default with more than 16 versions.
    #[arg(long, hide_short_help = true)]
    pub adaptive: bool,
    /// Build and weigh every version.
    #[arg(long, conflicts_with = "adaptive", hide_short_help = true)]
    pub all: bool,
    /// Measure this long, then make only necessary rounds
    ///
    /// In an adaptive history the builds are part of this time, and no version is begun that would exceed it.
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub budget: String,
    /// The largest difference that does not matter.
    #[arg(long, value_name = "PERCENT", help = margin_help(COMMANDS), long_help = format!(
        "{}.\n\nA history that is resumed keeps its margin unless another one is given.", margin_help(COMMANDS)
    ))]
    pub margin: Option<String>,
    /// The seed of every random choice.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Measure time only: no launches for memory, allocations and output.
    #[arg(long, hide_short_help = true)]
    pub time_only: bool,
    /// Launch this command beside each version, and report the ratio of times
    ///
    /// Use a command that does not depend on the repository, such as md5sum of a file. If something slows down both,
    /// the ratio stays the same. Paths are relative to the folder of the artefacts, or begin with {here}.
    #[arg(long, value_name = "COMMAND", hide_short_help = true)]
    pub yardstick: Option<String>,
}

/// Which change is intended.
#[derive(Args, Debug)]
pub struct AcceptArgs {
    /// The commit that made the change.
    pub commit: String,
    /// The metric that changed (default: all).
    #[arg(long, value_name = "KEY")]
    pub metric: Option<String>,
    /// The command whose metric changed (default: all).
    #[arg(long, value_name = "NAME", hide_short_help = true, hide_short_help = true)]
    pub subject: Option<String>,
    /// Why the change is intended.
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
    /// The builds of all repositories, including those that no longer exist.
    #[arg(long, conflicts_with = "repo")]
    pub all: bool,
    /// Free only builds that were not used for this long, such as 30d.
    #[arg(long, value_name = "TIME")]
    pub older_than: Option<String>,
    /// Only show how much would be freed.
    #[arg(long)]
    pub dry_run: bool,
}

/// A stored history, whose states are shown.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Which history.
    #[command(flatten)]
    pub which: WhichArgs,
    /// Print JSON instead of lines.
    #[arg(long)]
    pub json: bool,
}

/// A stored history, reported again.
#[derive(Args, Debug)]
pub struct StoredArgs {
    /// Which history.
    #[command(flatten)]
    pub which: WhichArgs,
    /// Print only what changed between two of the versions, as a line of Markdown.
    #[arg(long, value_name = "A..B", conflicts_with = "json")]
    pub pair: Option<String>,
    /// Where results go.
    #[command(flatten)]
    pub page: PageArgs,
}

/// One of the stored histories.
#[derive(Args, Debug)]
pub struct WhichArgs {
    /// The history: an id, the beginning of one, or a label (default: the newest of the repository; for `report`, the
    /// newest with a weighed version).
    #[arg(value_name = "HISTORY")]
    pub history: Option<String>,
    /// The repository (default: the one of the working folder).
    #[arg(long, value_name = "PATH_OR_URL")]
    pub repo: Option<String>,
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// A form of a chart other than the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ChartForm {
    /// Equal lengths are equal differences instead of equal ratios.
    Linear,
    /// Allocations, memory and time share one chart, each relative to its first value.
    Combined,
}

/// Where the results of a weighed range go.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Results", mut_arg("files", |arg| arg.help(EXPORT).long_help(EXPORT_LONG)))]
pub struct PageArgs {
    /// Show these metrics: keys, families such as ‘malloc’, or ‘all’.
    #[arg(long, value_name = "METRICS", value_delimiter = ',', hide_short_help = true)]
    pub metrics: Vec<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Files.
    #[command(flatten)]
    pub export: ExportArgs,
    /// How the chart is drawn.
    #[arg(
        long = "chart-style",
        value_enum,
        value_name = "HOW",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub chart: Vec<ChartForm>,
    /// The command whose figures .csv contains (default: the first).
    #[arg(long, value_name = "NAME")]
    pub subject: Option<String>,
}
