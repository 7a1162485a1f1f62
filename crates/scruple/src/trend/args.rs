//! The command line of `scruple trend`.

use clap::Args;
use std::path::PathBuf;

/// Show the cost of a subject over runs, and where it changed.
///
/// Each run is one point: the median of its readings, or of those of its last version. A count that repeats within each
/// run changes where it differs from the one before. Changes of other metrics are distinguished from noise and from slow
/// drift. A series contains the runs of one class of machines.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple trend parse
  scruple trend 'gzip -c big.txt' --metrics malloc.bytes,time.cpu
  scruple trend parse --machine all --metrics malloc
")]
pub struct TrendArgs {
    /// The name of a command or a case, as tables show it (without it, the error lists the existing ones).
    pub subject: Option<String>,
    /// The metrics to show.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Use the runs of this class of machines (default: that of the newest run); ‘all’ uses all in one series.
    #[arg(long, value_name = "CLASS")]
    pub machine: Option<String>,
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
    /// Print JSON instead of lines.
    #[arg(long)]
    pub json: bool,
}
