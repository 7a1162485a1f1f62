//! The command line of `scruple report`.

use crate::render::export::Export;
use clap::Args;
use std::path::PathBuf;

/// Write a stored run as a page, a table or a picture.
///
/// The page is one file that loads nothing and runs no script. It shows the verdict first, then every reading, the
/// differences block by block, the machine, and the command that repeats the run. Several runs are compared with
/// the first.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple report --export report.html
  scruple report before after --export report.html
  scruple report last --svg wall-time-readings --export readings.svg
  scruple report --export report.md
")]
pub struct ReportArgs {
    /// The runs: ids or their beginnings, labels, ‘last’, or ‘last~1’; each is compared with the first.
    #[arg(value_name = "RUN", default_value = "last")]
    pub runs: Vec<String>,
    /// The former way to name the newest run.
    #[arg(long, hide = true)]
    pub last: bool,
    /// Write a file. Its extension chooses the format: .html, .md, .csv, .json or .svg; html:- is standard output
    /// (default: the charts on the terminal).
    #[arg(long = "export", value_name = "FILE")]
    pub export: Vec<Export>,
    /// Write only this chart, as a picture; ‘list’ lists the names of charts.
    #[arg(long, value_name = "NAME")]
    pub svg: Option<String>,
    /// The metrics to show.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// The store.
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}
