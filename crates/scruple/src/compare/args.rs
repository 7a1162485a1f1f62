//! The command line of `scruple compare`.

use crate::cli::shared_args::{ResultArgs, StoreArgs};
use crate::versions::args::BuildArgs;
use clap::Args;

/// Compare two stored runs, or two revisions of a repository.
///
/// Two stored runs are compared arm by arm, by the names of arms; if each has only one arm, these two are compared. The
/// runs were not taken side by side, so whatever changed on the machine in between counts as a difference. A command
/// after `--` is weighed at two revisions instead: both are built once and weighed side by side.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple compare last~1 last
  scruple compare --build make --artifact app v1.0 HEAD -- ./app {here}/input.txt
  scruple compare --base main --limit 'time.cpu<+3%' --build make --artifact app -- ./app {here}/input.txt
")]
pub struct CompareArgs {
    /// The reference: a run (an id, a label, ‘last’, ‘last~1’) or a revision.
    ///
    /// The beginning of an id is enough. The word is a revision if a command is given or no run has this name.
    #[arg(required_unless_present = "base", value_name = "REFERENCE")]
    pub reference: Option<String>,
    /// What is compared with it: a run or a revision (default: the working tree).
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Compare with the merge base of this branch and HEAD.
    #[arg(long, value_name = "BRANCH", conflicts_with = "reference")]
    pub base: Option<String>,
    /// The command to weigh at two revisions (default: those of scruple.toml).
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Name the command, or pick one of scruple.toml.
    #[arg(short = 'n', long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Launch each command of either revision this many times, in all passes together; see `scruple run --help`.
    #[arg(short, long, value_name = "N")]
    pub runs: Option<u32>,
    /// Spend about this long, even if no verdict is reached.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub budget: String,
    /// The seed of every random choice; it is printed with each result.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Measure time only: no launches for memory, allocations and output.
    #[arg(long, hide_short_help = true)]
    pub time_only: bool,
    /// Treat differences within this margin as the same.
    #[arg(long, value_name = "PERCENT")]
    pub margin: Option<String>,
    /// The metrics to show.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Exit with code 1 when a metric exceeds this, and with 3 when the readings cannot tell.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// How revisions are built.
    #[command(flatten)]
    pub build: BuildArgs,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
}
