//! The words of `scruple unit`.

use clap::Args;
use std::path::PathBuf;

/// Do one piece of work that was written down, for farms.
#[derive(Args, Debug)]
pub struct UnitArgs {
    /// The unit. Its result is in the folder `results` beside its own; if the result exists, nothing is done.
    pub file: PathBuf,
    /// The name of this machine in the farm (default: its host name).
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// A word of the command that starts a process on the node of the servers of a load; once for each word.
    #[arg(long, value_name = "WORD", hide = true, allow_hyphen_values = true, requires = "reach")]
    pub beside: Vec<String>,
    /// The address of that node.
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub reach: Option<String>,
    /// Act as that process: start the servers, and read their accounts.
    #[arg(long, hide = true)]
    pub serve: bool,
}
