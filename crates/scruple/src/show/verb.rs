//! `scruple show`: prints a stored run again, in any format.

use super::args::ShowArgs;
use crate::fault::{Code, Fault};
use crate::render::export::names;
use crate::render::output;
use crate::render::page::terminal;
use crate::run_report::formats::FORMATS;
use crate::run_report::{Report, formats, metrics_and_limits};
use crate::store::open_store;

/// Prints a stored run.
pub fn show(args: &ShowArgs) -> Result<Code, Fault> {
    metrics_and_limits::check_metrics(&args.metrics)?;
    args.results.export.checked(&names(&FORMATS))?;
    let store = open_store::existing(args.store.as_deref())?;
    // A table of a history would have a row for every version.
    if !args.results.json
        && !args.chart
        && args.results.export.all().is_empty()
        && let Some(text) = crate::run_page::verb::history_text(&store, &args.run, &args.metrics)?
    {
        output::print(&text)?;
        return Ok(Code::Fine);
    }
    let mut run = store.find(&args.run)?;
    run.name_versions();
    let report = Report::of(&run, &args.metrics, &run.terms.limits);
    // `show` is not a gate: an exceeded limit decides the exit code of the run, not of showing it later.
    formats::write(&report, &args.results, None)?;
    if args.chart && !args.results.json {
        let charts = terminal::charts(&crate::run_page::page(&report), output::width());
        output::print(&format!("\n{charts}"))?;
    }
    Ok(Code::Fine)
}
