//! `scruple compare`: two stored runs against each other, or two revisions.

use super::args::CompareArgs;
use super::revisions;
use crate::command::arms;
use crate::fault::{Code, Fault};
use crate::paths;
use crate::show::Report;
use crate::show::export::OF_RUNS;
use crate::show::output;
use scruple_core::environment::Environments;
use scruple_core::judge::{Pair, cases};
use scruple_core::run::{Run, Terms};
use scruple_core::subject::{Arm, Role};

/// Prints the comparison.
pub fn compare(args: &CompareArgs) -> Result<Code, Fault> {
    let (reference, run) = match (&args.reference, &args.run) {
        _ if args.base.is_some() || !args.command.is_empty() || !args.names.is_empty() => {
            return revisions::compare(args);
        }
        // What was never stored under these names may be revisions, for the commands of scruple.toml.
        (Some(reference), run)
            if !is_stored(args) && revisions::are_some(args, reference, run.as_deref())? =>
        {
            return revisions::compare(args);
        }
        (Some(reference), Some(run)) => (reference, run),
        _ => {
            return Err(Fault::usage(
                "name a second stored run to compare with; or two revisions, and the command to weigh behind --",
            ));
        }
    };
    output::check_metrics(&args.metrics)?;
    args.results.export.checked(&OF_RUNS)?;
    let budgets = output::budgets(&args.limit, &[])?;
    let store = paths::existing_store(args.store.store.as_deref())?;
    let (left, right) = (store.find(reference)?, store.find(run)?);
    if left.id == right.id {
        return Err(Fault::usage(format!(
            "‘{reference}’ and ‘{run}’ are the same run, {}: `scruple store list` shows which there are",
            left.id
        )));
    }
    let matched = matched_arms(&left, &right)?;
    let mut run = merged(&left, &right, &matched);
    output::check_limits(&budgets, run.arms.iter())?;
    run.terms.margin = match &args.margin {
        Some(text) => arms::margin(text)?,
        None => left.terms.margin.max(right.terms.margin),
    };
    let pairs: Vec<Pair<'_>> = run
        .arms
        .chunks(2)
        .zip(&matched)
        .map(|(pair, (reference, arm))| {
            let tares = cases::tare_of(&left, reference).zip(cases::tare_of(&right, arm));
            Pair { reference: &pair[0], arm: &pair[1], paired: false, tares }
        })
        .collect();
    let environments = Some(Environments::of(&left, &right));
    let report = Report::of_pairs(&run, &pairs, &args.metrics, &budgets, environments);
    output::write(&report, &args.results, None)
}

/// Whether the store has a run of either name.
fn is_stored(args: &CompareArgs) -> bool {
    let Ok(store) = paths::existing_store(args.store.store.as_deref()) else { return false };
    [&args.reference, &args.run].into_iter().flatten().any(|name| store.find_id(name).is_ok())
}

/// The arms of both runs that belong together: by name, or the only one of each.
fn matched_arms<'a>(left: &'a Run, right: &'a Run) -> Result<Vec<(&'a Arm, &'a Arm)>, Fault> {
    let subjects = |run: &'a Run| run.arms_of(Role::Subject).collect::<Vec<_>>();
    let (of_left, of_right) = (subjects(left), subjects(right));
    let by_name: Vec<_> = of_left
        .iter()
        .filter_map(|arm| Some((*arm, *of_right.iter().find(|other| other.name == arm.name)?)))
        .collect();
    match (by_name.is_empty(), of_left.as_slice(), of_right.as_slice()) {
        (false, ..) => Ok(by_name),
        (true, [one], [other]) => Ok(vec![(one, other)]),
        _ => {
            let names = |arms: &[&Arm]| {
                arms.iter().map(|arm| format!("‘{}’", arm.name)).collect::<Vec<_>>().join(", ")
            };
            Err(Fault::usage(format!(
                "the runs {} ({}) and {} ({}) have no arm of the same name: give arms names with -n when measuring",
                left.id,
                names(&of_left),
                right.id,
                names(&of_right)
            )))
        }
    }
}

/// One run made of both: each pair of arms side by side, told apart by the run they are from.
fn merged(left: &Run, right: &Run, matched: &[(&Arm, &Arm)]) -> Run {
    let tag =
        |run: &Run| run.label.clone().filter(|_| left.label != right.label).unwrap_or_else(|| run.id.clone());
    let of = |arm: &Arm, run: &Run| {
        let mut arm = arm.clone();
        arm.version = Some(tag(run));
        arm.name = format!("{} @{}", arm.name, tag(run));
        arm
    };
    let mut run = right.clone();
    run.arms = matched.iter().flat_map(|(a, b)| [of(a, left), of(b, right)]).collect();
    run.terms = Terms { looks: 1, ..right.terms.clone() };
    run.warnings.clear();
    run.warn(
        "not-side-by-side",
        "the two runs were not taken side by side: whatever else changed on the machine in between is part of the difference",
    );
    run
}
