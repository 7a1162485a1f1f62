//! The words of `scruple list`.

use clap::Args;
use std::path::PathBuf;

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
