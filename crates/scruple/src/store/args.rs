//! The words of `scruple store`.

use super::import::args::ImportArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What can be done with stored runs.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    List(ListArgs),
    Import(ImportArgs),
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
