//! The command line of `scruple show`.

use crate::cli::shared_args::ResultArgs;
use clap::Args;
use std::path::PathBuf;

/// Show a stored run again, or the report of a stored history.
///
/// --json and --export write the readings of every version of a history.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The run: an id or its beginning, a label, ‘last’, or ‘last~1’.
    #[arg(default_value = "last")]
    pub run: String,
    /// The metrics to show.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Draw the charts as well.
    #[arg(long)]
    pub chart: bool,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
}
