//! `scruple trend`: reads the command line, selects the series, and prints it.

use super::args::TrendArgs;
use super::report;
use super::series::{ChosenRuns, trends};
use crate::fault::{Code, Fault};
use crate::paths;
use crate::render::output;
use crate::run_report::metrics_and_limits;
use crate::store::{StoredPoint, open_store};
use scruple_core::harmless_text::list_names;
use scruple_stats::sorting::SortedMap;

/// The word that combines the machines of all classes into one series.
const ALL: &str = "all";

/// Prints the trend.
pub fn trend(args: &TrendArgs) -> Result<Code, Fault> {
    metrics_and_limits::check_metrics(&args.metrics)?;
    let store = open_store::existing(args.store.as_deref())?;
    let points = args.subject.as_ref().map(|subject| store.points(subject)).transpose()?.unwrap_or_default();
    if points.is_empty() {
        let known = store.subjects()?;
        let lacks = match &args.subject {
            Some(subject) => format!("no stored run has ‘{subject}’"),
            None => "name a subject".to_owned(),
        };
        return Err(Fault::usage(match known.is_empty() {
            true => "no run is stored yet: `scruple run` stores the first".to_owned(),
            false => {
                format!("{lacks}: there are {}; {} shows the runs", list_names(&known), store.list_command())
            }
        }));
    }
    let chosen = chosen(args, points)?;
    let trends = trends(&chosen.points, &args.metrics);
    if trends.is_empty() {
        return Err(Fault::usage(format!(
            "the runs of ‘{}’ have none of these metrics: `scruple inspect metrics` lists them, `scruple show{option}` what a run \
             has; `scruple history report{option}` shows an imported series",
            chosen.subject,
            option = paths::store_option(store.address())
        )));
    }
    let text = match args.json {
        true => report::json(&chosen, &trends),
        false => report::terminal(&chosen, &trends, output::width()),
    };
    output::print(&text)?;
    Ok(Code::Fine)
}

fn chosen(args: &TrendArgs, points: Vec<StoredPoint>) -> Result<ChosenRuns, Fault> {
    let subject = args.subject.clone().unwrap_or_default();
    if args.machine.as_deref() == Some(ALL) {
        return Ok(ChosenRuns { subject, machine: None, points, left_out: SortedMap::new() });
    }
    let newest = points.last().map(|point| point.provenance.machine_class.clone()).unwrap_or_default();
    let machine = args.machine.clone().unwrap_or(newest);
    let (own, others): (Vec<StoredPoint>, Vec<StoredPoint>) =
        points.into_iter().partition(|point| point.provenance.machine_class == machine);
    let mut left_out: SortedMap<String, usize> = SortedMap::new();
    for other in others {
        *left_out.entry(other.provenance.machine_class).or_default() += 1;
    }
    if own.is_empty() {
        return Err(Fault::usage(format!(
            "no run of ‘{subject}’ was taken on a machine of the class ‘{machine}’: there are {}",
            list_names(left_out.keys())
        )));
    }
    Ok(ChosenRuns { subject, machine: Some(machine), points: own, left_out })
}
