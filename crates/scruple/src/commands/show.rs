//! `scruple show`: a stored run again, in any format.

use super::output;
use crate::cli::ShowArgs;
use crate::fault::{Code, Fault};
use crate::place;
use crate::report::Report;

/// Prints a stored run.
pub fn show(args: &ShowArgs) -> Result<Code, Fault> {
    output::check_metrics(&args.metrics)?;
    output::check_exports(&args.results)?;
    let run = place::existing_store(args.store.as_deref())?.find(&args.run)?;
    let report = Report::of(&run, &args.metrics, &[]);
    output::write(&report, &args.results, None)
}
