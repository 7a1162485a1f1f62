//! The command line of `scruple store`.

use super::import::args::ImportArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What can be done with stored runs.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    List(ListArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Rm(RmArgs),
    Gc(GcArgs),
    Copy(CopyArgs),
    Check(CheckArgs),
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
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// Write every reading of stored runs, one in a row.
///
/// What could not be read has a row as well, with the reason instead of a value.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The runs: ids, beginnings of ids, or labels (default: all runs, the oldest first).
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// The format (default: by the end of the file's name, else JSON lines).
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub format: Option<Rows>,
    /// The file to write (default: standard output).
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// JSON lines: one object in a line.
    Jsonl,
    /// Comma-separated values, quoted as RFC 4180 says.
    Csv,
}

/// Remove stored runs for good, with all their readings.
///
/// If one of the names fits no run, nothing is removed. Removing a history keeps its builds: `scruple history clean`
/// frees those.
#[derive(Args, Debug)]
pub struct RmArgs {
    /// The runs: ids, beginnings of ids, or labels (the newest run that bears it).
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Only say what would be removed.
    #[arg(long)]
    pub dry_run: bool,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// Remove old runs that nothing needs, and give their room back to the disk.
///
/// Kept are runs with a label, histories, runs under way, runs whose id a stored command line names (as --baseline
/// does), and of runs of the same subjects on the same machine the newest.
#[derive(Args, Debug)]
pub struct GcArgs {
    /// How old a run must be to be removed, such as 30d or 12h.
    #[arg(long, value_name = "TIME", default_value = "90d")]
    pub older_than: String,
    /// Only say what would be removed.
    #[arg(long)]
    pub dry_run: bool,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// Put the runs of one store into another one, with all their readings.
///
/// A run that is there already is not copied again; one that is there with fewer readings of the same is replaced.
#[derive(Args, Debug)]
pub struct CopyArgs {
    /// The store to read: a file, or postgres://USER@HOST/DATABASE.
    pub from: String,
    /// The store to write, which is made where there is none.
    pub to: String,
    /// The runs: ids, beginnings of ids, or labels (default: all).
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
}

/// Read everything in the store, and say what is damaged.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}
