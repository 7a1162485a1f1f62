//! `scruple show`: prints a stored run again, in any format.

use super::FORMATS;
use super::Report;
use super::args::ShowArgs;
use super::export::names;
use super::output;
use super::page::terminal;
use crate::fault::{Code, Fault};
use crate::paths;

/// Prints a stored run.
pub fn show(args: &ShowArgs) -> Result<Code, Fault> {
    output::check_metrics(&args.metrics)?;
    args.results.export.checked(&names(&FORMATS))?;
    let mut run = paths::existing_store(args.store.as_deref())?.find(&args.run)?;
    run.name_versions();
    let report = Report::of(&run, &args.metrics, &run.terms.limits);
    // Showing a run is no gate: an exceeded limit decides the exit code of the run, not of a later look at it.
    output::write(&report, &args.results, None)?;
    if args.chart && !args.results.json {
        let charts = terminal::charts(&crate::report::page(&report), output::width());
        output::print(&format!("\n{charts}"))?;
    }
    Ok(Code::Fine)
}
