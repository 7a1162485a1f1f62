//! The command line: the verbs, and the options that several verbs share.

use crate::bench::args::BenchArgs;
use crate::command::args::RunArgs;
use crate::compare::args::CompareArgs;
use crate::history::args::HistoryArgs;
use crate::import::args::ImportArgs;
use crate::inspect::args::{GhcArgs, LeakArgs, MemoryArgs};
use crate::load::args::LoadArgs;
use crate::show::args::ShowArgs;
use crate::store::args::ListArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Weighs programs: time, allocations and memory, side by side, with honest intervals.
///
/// A difference is reported with one of four verdicts: different, same (within the margin), small (surely not zero,
/// maybe below the margin), or can't tell (and about how many more blocks would).
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
    #[arg(long, value_name = "FILE", alias = "export-orgmode")]
    pub export_org: Option<PathBuf>,
    /// When to use colour.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", alias = "style")]
    pub color: Colour,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    #[value(alias = "color", alias = "full")]
    Always,
    /// Never.
    #[value(alias = "basic", alias = "nocolor", alias = "none")]
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
