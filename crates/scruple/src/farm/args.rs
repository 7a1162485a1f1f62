//! The words of `scruple unit`.

use clap::Args;
use std::path::PathBuf;

/// Do one piece of work that was written down, for farms.
#[derive(Args, Debug)]
pub struct UnitArgs {
    /// The unit. Its result lies in the folder `results` beside its own; where that is there already, nothing is done.
    pub file: PathBuf,
    /// The name of this machine in the farm (default: its host name).
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
}
