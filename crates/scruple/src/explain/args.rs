//! The command line of `scruple explain`.

use crate::cli::shared_args::ResultArgs;
use crate::versions::args::BuildArgs;
use clap::{Args, ValueEnum};
use scruple_core::explain::Count;
use std::path::PathBuf;

const EXPORT: &str = "Write a file. Its extension chooses the format: .md, .html, .json; .svg (a flame graph of what is \
more and less); or both call trees, of the first launch of each, for other tools: .collapsed (two columns), .callgrind, .pb.gz (pprof, as a \
difference), .speedscope.json, .firefox.json";

/// Show which code makes two commands or revisions differ.
///
/// Both run under Scruple's call tree, which counts instructions, calls and allocations of every calling context
/// exactly. Scruple matches the functions of the two and divides the difference among the functions in which it
/// originates; the parts add up to the whole. A function whose machine code is the same in both is never named as the
/// origin. If counts differ between launches of one program, it is launched several times, and rows within that
/// variation are marked.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple explain './old input' './new input'
  scruple explain --build make --artifact app v1.0 HEAD -- ./app {here}/input.txt
  scruple explain --build make --artifact app main -- ./app {here}/input.txt   # against the working tree
  scruple explain old.calls new.calls                                   # profiles, of other tools as well
  scruple explain monday tuesday                                        # stored runs, by label or id
  scruple explain --case parse/json ./old-bench ./new-bench
  scruple explain --url :8080/hello './old-server 8080' './new-server 8080'
  scruple explain --metric malloc.requested_peak ./old ./new            # which code holds more memory
  scruple explain --export difference.html --export difference.pb.gz './old input' './new input'
", mut_arg("files", |arg| arg.help(EXPORT).long_help(EXPORT)))]
pub struct ExplainArgs {
    /// The reference: a command, a profile or a stored run; with a command after --, a revision.
    #[arg(value_name = "A", required_unless_present = "keep")]
    pub first: Option<String>,
    /// What is compared with A, of the same kind (default for revisions: the working tree).
    #[arg(value_name = "B")]
    pub second: Option<String>,
    /// The command to run at two revisions.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// A and B are bench programs: explain this case.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["command", "url"])]
    pub case: Option<String>,
    /// A and B start servers: explain what they execute to answer requests for this URL.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// Requests that each server answers while it is counted.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub requests: u64,
    /// The subject of stored runs with this name (default: the only one that both have).
    #[arg(short, long, value_name = "NAME", conflicts_with = "command")]
    pub name: Option<String>,
    /// Count the subjects of this stored run now, and store their call trees with it for later explanations.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["first", "command"])]
    pub keep: Option<String>,
    /// Where runs are stored.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true, hide_short_help = true)]
    pub store: Option<PathBuf>,
    /// The count to explain. The counts of memory in use, at the peak or at the end, take one more launch of each
    /// command.
    #[arg(long, value_name = "METRIC", default_value = "instructions")]
    pub metric: ExplainedMetric,
    /// The number of launches of each side if counts do not repeat.
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=50))]
    pub runs: u32,
    /// Show source lines and machine code of the first row.
    #[arg(long)]
    pub lines: bool,
    /// Continue even if a program fails.
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// Do not measure time.
    #[arg(long)]
    pub no_time: bool,
    /// Never run both commands at the same time, for commands that disturb each other in a way that Scruple cannot see.
    #[arg(long, hide_short_help = true)]
    pub no_parallel: bool,
    /// How revisions are built.
    #[command(flatten)]
    pub build: BuildArgs,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
}

/// A metric whose difference can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainedMetric {
    /// Executed instructions; allocations and requested bytes follow where they differ.
    #[value(name = "instructions")]
    Instructions,
    /// Allocations.
    #[value(name = "malloc.count")]
    Allocations,
    /// Requested bytes.
    #[value(name = "malloc.bytes")]
    Bytes,
    /// Freed blocks.
    #[value(name = "malloc.frees")]
    Frees,
    /// The requested bytes that were in use when each process had its most bytes in use.
    #[value(name = "malloc.requested_peak")]
    AtPeak,
    /// The requested bytes that were in use at the end.
    #[value(name = "malloc.requested_live")]
    AtEnd,
}

impl ExplainedMetric {
    /// The count that the call tree has of the metric.
    pub fn count(self) -> Count {
        match self {
            ExplainedMetric::Instructions => Count::Instructions,
            ExplainedMetric::Allocations => Count::Allocations,
            ExplainedMetric::Bytes => Count::Bytes,
            ExplainedMetric::Frees => Count::Frees,
            ExplainedMetric::AtPeak => Count::AtPeak,
            ExplainedMetric::AtEnd => Count::AtEnd,
        }
    }
}
