//! The command line of `scruple explain`.

use crate::cli::ResultArgs;
use crate::history::args::BuildArgs;
use clap::Args;

/// Say which code makes two commands or revisions differ.
///
/// Both run under Scruple's call tree, which counts instructions, calls and allocations of every calling context
/// exactly. Functions are matched across the two; the difference is divided among those in which it originates, and the
/// parts add up to the whole. A function whose machine code is the same in both is never called the origin. Programs
/// that do not repeat are run several times, and what varies anyway is told apart.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple explain './old input' './new input'
  scruple explain --build make --artifact app v1.0 HEAD -- ./app input.txt
  scruple explain --build make --artifact app main -- ./app input.txt   # against the working tree
")]
pub struct ExplainArgs {
    /// The command to start from; with a command behind --, a revision.
    #[arg(value_name = "A")]
    pub first: String,
    /// The command to explain, or a revision (default: the working tree).
    #[arg(value_name = "B")]
    pub second: Option<String>,
    /// The command to run at two revisions.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// How revisions are built.
    #[command(flatten)]
    pub build: BuildArgs,
    /// Runs of each side, where counts do not repeat.
    #[arg(short, long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=50))]
    pub runs: u32,
    /// Explain it even if a program fails.
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// Leave time out.
    #[arg(long)]
    pub no_time: bool,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
}
