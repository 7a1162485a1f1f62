//! From cuts between levels to changes: steps, spikes and reverts, and the versions that may have brought them.

use super::gather::{Artefacts, Gathered};
use super::steps::{Cut, Steps};
use crate::history::{Change, Form, History};
use crate::metric::Better;

/// A level that lasts for so many versions at most, and then comes back, was a spike.
const FEW: usize = 3;

/// Levels count as the same up to so many standard errors of their difference.
const ALIKE: f64 = 2.5;

/// The cuts of an exact series and its levels, in the unit. A cut is every place whose value is not the one before,
/// each time that both were counted: what is alike later was not brought by the version.
pub(super) fn exact(gathered: &Gathered) -> Steps {
    let mut steps = Steps::default();
    for (at, place) in gathered.places.iter().enumerate() {
        let Some(first) = place.visits.first() else { continue };
        match at.checked_sub(1).map(|before| &gathered.places[before].visits) {
            Some(before) if before.iter().zip(&place.visits).any(|(before, here)| before == here) => continue,
            Some(before) => {
                let ratio = first / before.first().unwrap_or(first);
                steps.cuts.push(Cut { at, first: at, last: at, ratio, interval: None, p: 0.0 });
            }
            None => {}
        }
        steps.levels.push((*first, 0.0));
    }
    steps
}

/// Names the changes. `levels` are in the unit; those of `steps` decide which are alike.
pub(super) fn changes(
    history: &History,
    artefacts: &Artefacts,
    gathered: &Gathered,
    steps: &Steps,
    levels: &[f64],
) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    // For each change, the number of the level that was there before it.
    let mut before: Vec<usize> = Vec::new();
    let mut i = 0;
    while i < steps.cuts.len() {
        let mut change = change(history, artefacts, gathered, &steps.cuts[i], [levels[i], levels[i + 1]]);
        let mut next = i + 1;
        if let Some(back) = steps.cuts.get(i + 1)
            && gathered.places[back.at - 1].last - gathered.places[steps.cuts[i].at].first < FEW
            && alike(steps, i, i + 2, i)
        {
            change.form = Form::Spike;
            change.until = Some(gathered.places[back.at - 1].last);
            change.p = change.p.max(back.p);
            next = i + 2;
        } else if let Some(undone) = undone(steps, &changes, &before, i) {
            change.form = Form::Revert;
            change.undoes = Some(changes[undone].at);
        }
        before.push(i);
        changes.push(change);
        i = next;
    }
    changes
}

/// Whether two levels are the same as far as can be seen, and much nearer to each other than the step of a cut.
fn alike(steps: &Steps, one: usize, other: usize, cut: usize) -> bool {
    let (one, other) = (steps.levels[one], steps.levels[other]);
    let away = (one.0 - other.0).abs();
    let step = (steps.levels[cut + 1].0 - steps.levels[cut].0).abs();
    away <= ALIKE * one.1.hypot(other.1) && away < step / 2.0
}

/// The latest change that a cut takes back and that nothing took back before.
fn undone(steps: &Steps, changes: &[Change], before: &[usize], cut: usize) -> Option<usize> {
    let taken_back = |change: &Change| changes.iter().any(|later| later.undoes == Some(change.at));
    let candidates = changes.iter().enumerate().rev();
    candidates
        .filter(|(_, change)| change.form != Form::Spike && !taken_back(change))
        .find(|(number, _)| alike(steps, before[*number], cut + 1, cut))
        .map(|(number, _)| number)
}

fn change(
    history: &History,
    artefacts: &Artefacts,
    gathered: &Gathered,
    cut: &Cut,
    [from, to]: [f64; 2],
) -> Change {
    let places = &gathered.places;
    let before = places[cut.first - 1].last;
    let set: Vec<usize> =
        (before + 1..=places[cut.last].first).filter(|&version| artefacts.may_change(version)).collect();
    let weighed = places[cut.at].first;
    let at = set.iter().copied().rfind(|&version| version <= weighed).unwrap_or(weighed);
    let set = if set.is_empty() { vec![at] } else { set };
    let lower = gathered.metric.better == Better::Lower;
    let [from, to] = match (gathered.shifting, &places[cut.at - 1].visits[..], &places[cut.at].visits[..]) {
        // A level that shifted meanwhile is not the one that this change came from.
        (true, [before, ..], [here, ..]) => [*before, *here],
        _ => [from, to],
    };
    Change {
        form: Form::Step,
        at,
        before,
        until: None,
        undoes: None,
        from,
        to,
        ratio: cut.ratio,
        interval: cut.interval,
        p: cut.p,
        better: (from != to).then_some((to < from) == lower),
        accepted: accepted(history, gathered, &set),
        set,
    }
}

/// The reason that a version of the set gives for a change of this metric of this subject.
fn accepted(history: &History, gathered: &Gathered, set: &[usize]) -> Option<String> {
    let acceptances = set.iter().flat_map(|&version| &history.versions[version].accepted);
    acceptances
        .filter(|acceptance| acceptance.subject.as_deref().is_none_or(|subject| subject == gathered.subject))
        .find(|acceptance| {
            acceptance.metric.as_deref().is_none_or(|pattern| gathered.metric.matches(pattern))
        })
        .map(|acceptance| acceptance.reason.clone())
}

/// Moves the most probable version of noisy changes to the version of their set at which a count of the same subject
/// changed: work that went or came there is the likelier cause. The set stays as it is.
pub(super) fn sharpen(series: &mut [crate::history::Series]) {
    let counts: Vec<(String, usize, f64)> = series
        .iter()
        .filter(|series| series.exact && !series.metric.starts_with("build."))
        .flat_map(|series| series.changes.iter().map(move |change| (series, change)))
        .filter(|(_, change)| change.set.len() == 1)
        .map(|(series, change)| (series.subject.clone(), change.at, change.ratio.ln().abs()))
        .collect();
    for series in series.iter_mut().filter(|series| !series.exact) {
        for change in &mut series.changes {
            let compatible = counts
                .iter()
                .filter(|(subject, at, _)| *subject == series.subject && change.set.contains(at));
            if let Some((_, at, _)) = compatible.max_by(|a, b| a.2.total_cmp(&b.2)) {
                change.at = *at;
            }
        }
    }
}
