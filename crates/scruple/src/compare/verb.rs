//! `scruple compare`: compares two stored runs, or two revisions.

use super::args::CompareArgs;
use super::revisions;
use super::stored::RunPair;
use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::render::export::names;
use crate::run_report::formats::FORMATS;
use crate::run_report::{formats, metrics_and_limits};
use crate::store::open_store;

/// Prints the comparison.
pub fn compare(args: &CompareArgs) -> Result<Code, Fault> {
    let (reference, run) = match (&args.reference, &args.run) {
        _ if args.base.is_some() || !args.command.is_empty() || !args.names.is_empty() => {
            return revisions::compare(args);
        }
        // Names that are not in the store may be revisions, at which the commands of scruple.toml are weighed.
        (Some(reference), run)
            if !is_stored(args) && revisions::are_revisions(args, reference, run.as_deref())? =>
        {
            return revisions::compare(args);
        }
        (Some(reference), Some(run)) => (reference, run),
        _ => {
            return Err(Fault::usage(
                "name a second stored run to compare with; or two revisions, and the command to weigh after --",
            ));
        }
    };
    metrics_and_limits::check_metrics(&args.metrics)?;
    args.results.export.checked(&names(&FORMATS))?;
    let limits = metrics_and_limits::parse_limits(&args.limit, &[])?;
    let store = open_store::existing(args.store.store.as_deref())?;
    let (left, right) = (store.find(reference)?, store.find(run)?);
    let mut both = RunPair::of((reference, run), &left, &right)?;
    metrics_and_limits::check_limits(&limits, both.run.arms.iter())?;
    if let Some(text) = &args.margin {
        both.run.terms.margin = values::margin(text)?;
    }
    formats::write(&both.report(&args.metrics, &limits), &args.results, None)
}

/// Whether the store has a run with either name.
fn is_stored(args: &CompareArgs) -> bool {
    let Ok(store) = open_store::existing(args.store.store.as_deref()) else { return false };
    [&args.reference, &args.run].into_iter().flatten().any(|name| store.find_id(name).is_ok())
}
