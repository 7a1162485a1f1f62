//! The command line of `scruple store import`.

use clap::Args;
use std::path::PathBuf;

/// Read the results of other benchmark tools into the store.
///
/// Each file becomes a run, which can then be listed, shown and compared like any other. Readings keep the order in
/// which the tool wrote them. If the tool wrote only a mean or a median, it becomes one reading, marked as
/// estimated. If one file cannot be read, none is imported.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple store import --label before hyperfine.json
  scruple store import target/criterion
  go test -bench . -count 10 | scruple store import --label new -
  scruple store import old.json new.json && scruple compare last~1 last
")]
pub struct ImportArgs {
    /// Files of other tools; a folder of criterion.rs; ‘-’ for standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The format (default: recognised by the content).
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub format: Option<super::Format>,
    /// A name by which the run can be found.
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// The store (default: .scruple/store.db of the project, else one for the user).
    #[arg(long, value_name = "STORE", env = "SCRUPLE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,
}
