//! Options that several verbs share.

use crate::render::export::ExportArgs;
use clap::Args;
use std::path::PathBuf;

/// Where results are written.
#[derive(Args, Debug)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Files.
    #[command(flatten)]
    pub export: ExportArgs,
}

/// Where runs are kept.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Store")]
pub struct StoreArgs {
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true, hide_short_help = true)]
    pub store: Option<PathBuf>,
    /// Store nothing, even if a store is configured.
    #[arg(long, hide_short_help = true)]
    pub no_store: bool,
    /// A name by which this run can be found.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub label: Option<String>,
}
