//! The command line of `scruple store`.

use super::import::args::ImportArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What can be done with stored runs.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    List(ListArgs),
    Import(ImportArgs),
    Export(StoreExportArgs),
    Rm(RmArgs),
    Gc(GcArgs),
    Copy(CopyArgs),
    Check(StoreCheckArgs),
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

/// Write every reading of stored runs, one per row.
///
/// A figure that could not be read has a row as well, with the reason instead of a value.
#[derive(Args, Debug)]
pub struct StoreExportArgs {
    /// The runs: ids, beginnings of ids, or labels (default: all runs, the oldest first).
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    /// The format (default: by the extension of the file, else JSON lines).
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub format: Option<RowFormat>,
    /// Write a file instead of standard output.
    #[arg(long = "export", value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowFormat {
    /// JSON lines: one object per line.
    Jsonl,
    /// Comma-separated values, quoted as RFC 4180 says.
    Csv,
}

/// Remove stored runs permanently, with all their readings.
///
/// If one of the names matches no run, nothing is removed. Removing a history keeps its builds, which `scruple
/// history clean` removes.
#[derive(Args, Debug)]
pub struct RmArgs {
    /// The runs: ids, beginnings of ids, or labels (the newest run with this label).
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Only show what would be removed.
    #[arg(long)]
    pub dry_run: bool,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// Remove old runs that nothing needs, and free their disk space.
///
/// It keeps runs with a label, histories, runs under way, runs that a stored command line names (such as with
/// --baseline), and the newest run of the same subjects on the same machine.
#[derive(Args, Debug)]
pub struct GcArgs {
    /// How old a run must be to be removed, such as 30d or 12h.
    #[arg(long, value_name = "TIME", default_value = "90d")]
    pub older_than: String,
    /// Only show what would be removed.
    #[arg(long)]
    pub dry_run: bool,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}

/// Copy the runs of one store into another one, with all their readings.
///
/// A run that the other store already has is not copied again. A run that it has with fewer readings is replaced.
#[derive(Args, Debug)]
pub struct CopyArgs {
    /// The store to read: a file, or postgres://USER@HOST/DATABASE.
    pub from: String,
    /// The store to write; it is created if it does not exist.
    pub to: String,
    /// The runs: ids, beginnings of ids, or labels (default: all).
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
}

/// Read everything in the store, and report what is damaged.
#[derive(Args, Debug)]
pub struct StoreCheckArgs {
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}
