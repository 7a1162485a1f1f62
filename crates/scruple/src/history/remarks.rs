//! Remarks that a reader needs in order not to be misled by a history.

use super::campaign::ERROR;
use super::source::Source;
use super::{across_nodes, view};
use crate::store::{Entry, StoredHistory};
use scruple_core::history::{SLOPE, State, comparable};
use scruple_core::metric::{Quality, metric};
use scruple_core::sample::Figure;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::quantity;
use std::collections::{BTreeMap, BTreeSet};

/// The codes of remarks that depend on the current range, and are therefore renewed each time.
const PASSING: [&str; 9] = [
    "across-nodes",
    "came-and-went",
    "counts-shift",
    "dirty-tree",
    "not-fetched",
    "not-weighed",
    "outputs-differ",
    "range-rewritten",
    "slope",
];

/// Adds the remarks that are known before any work.
pub fn begin(history: &mut StoredHistory, before: Option<&StoredHistory>, source: &Source) {
    history.run.warnings.retain(|warning| !PASSING.contains(&warning.code.as_str()));
    for (code, text) in &source.remarks {
        history.run.warn(code, text.clone());
    }
    let Some(before) = before.filter(|before| before.range == history.range) else { return };
    let gone =
        |entry: &&Entry| history.entries.iter().all(|other| other.version.commit != entry.version.commit);
    let gone: Vec<&Entry> = before.entries.iter().filter(gone).collect();
    let (Some(newest_gone), Some(newest)) = (gone.last(), history.entries.last()) else { return };
    // If the newest missing version is still an ancestor of the newest one, it was only left out of the selection this
    // time.
    let words = ["merge-base", "--is-ancestor", &newest_gone.version.commit, &newest.version.commit];
    if source.repository.ask(words).is_err() {
        let count = gone.len();
        let text = format!(
            "‘{}’ no longer has {count} version{} that it had: was it rewritten? Their readings are kept but not shown",
            history.range,
            if count == 1 { "" } else { "s" }
        );
        history.run.warn("range-rewritten", text);
    }
}

/// Adds the remarks that are known once no work is left.
pub fn end(history: &mut StoredHistory) {
    if history.run.provenance.nodes.len() > 1 {
        let told = across_nodes::sentences(&view(history.clone()), ERROR);
        history.run.warnings.retain(|warning| warning.code != "across-nodes");
        told.into_iter().for_each(|text| history.run.warn("across-nodes", text));
    }
    came_and_went(history).into_iter().for_each(|text| history.run.warn("came-and-went", text));
    shifting(history).into_iter().for_each(|text| history.run.warn("counts-shift", text));
    on_slopes(history).into_iter().for_each(|text| history.run.warn("slope", text));
    let skipped = history.entries.iter().filter(|entry| entry.version.state == State::Skipped).count();
    if skipped > 0 {
        let all = history.entries.len();
        history.run.warn(
            "not-weighed",
            format!(
                "{skipped} of {all} versions were never built: what came and went again among them is not seen; a \
                 longer --budget looks at more"
            ),
        );
    }
    let mut changed: Vec<String> = Vec::new();
    let built: Vec<&Entry> = history.entries.iter().filter(|entry| !entry.outputs.is_empty()).collect();
    let params = |entry: &Entry, name: &String| {
        let is = |arm: &&Arm| arm.name == *name && arm.version.as_ref() == Some(&entry.version.commit);
        history.run.arms.iter().find(is).map(|arm| &arm.params)
    };
    for pair in built.windows(2) {
        // Output may differ between different parameters, because the work differs.
        let differs = |(name, output): (&String, &String)| {
            pair[0].outputs.get(name).is_some_and(|other| other != output)
                && params(pair[0], name) == params(pair[1], name)
        };
        if pair[1].outputs.iter().any(differs) {
            changed.push(pair[1].version.short().to_owned());
        }
    }
    if let Some(first) = changed.first() {
        let more = changed.len() - 1;
        let more = if more > 0 { format!(", and at {more} more") } else { String::new() };
        history.run.warn(
            "outputs-differ",
            format!("what is printed changes at {first}{more}: is it still the same work? --same-output sets such versions apart"),
        );
    }
}

/// The largest number of cases that one remark names.
const NAMED: usize = 5;

/// Names the cases of bench programs that a version has and the version before it lacks, or the other way round.
fn came_and_went(history: &StoredHistory) -> Vec<String> {
    let mut cases: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arm in history.run.arms_of(Role::Subject) {
        if let (Subject::Case { .. }, Some(version)) = (&arm.subject, &arm.version) {
            cases.entry(version).or_default().insert(&arm.name);
        }
    }
    let mut told = Vec::new();
    let mut before: Option<&BTreeSet<&str>> = None;
    for entry in history.entries.iter().filter(|entry| entry.version.state == State::Built) {
        let Some(now) = cases.get(entry.version.commit.as_str()) else { continue };
        if let Some(before) = before {
            let changes = [(now, before, "new"), (before, now, "gone")];
            for (these, those, what) in changes {
                let names: Vec<&str> = these.difference(those).copied().collect();
                if !names.is_empty() {
                    let more = names.len().saturating_sub(NAMED);
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    let listed = names
                        .iter()
                        .take(NAMED)
                        .map(|name| format!("‘{name}’"))
                        .collect::<Vec<_>>()
                        .join(", ");
                    let verb = if names.len() == 1 { "is" } else { "are" };
                    told.push(format!("{listed}{more} {verb} {what} at {}", entry.version.short()));
                }
            }
        }
        before = Some(now);
    }
    told
}

/// Names the counts of a version that changed when it was counted again.
fn shifting(history: &StoredHistory) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for arm in history.run.arms_of(Role::Subject) {
        let samples = arm.figures.iter().filter_map(|(key, figure)| match figure {
            Figure::Sample(sample) if sample.quality == Quality::Exact => Some((key, sample)),
            _ => None,
        });
        for (key, sample) in samples {
            let visits = sample.visits().unwrap_or_default();
            let (Some(first), Some(last)) = (visits.first(), visits.last()) else { continue };
            if visits.iter().any(|count| count != first) {
                let version = arm.version.as_deref().and_then(|commit| commit.get(..10)).unwrap_or_default();
                let title = metric(key).map_or(key.as_str(), |metric| &*metric.title);
                let [first, last] = [first, last].map(|count| quantity(*count, &sample.unit));
                told.push(format!("{title} of ‘{}’ at {version} was {first} and later {last}", arm.name));
            }
        }
    }
    let more = told.len().saturating_sub(1);
    let more = if more > 0 { format!(" ({more} more like it)") } else { String::new() };
    told.first().map(|first| {
        format!(
            "{first}{more}: something outside the versions changed meanwhile, such as a file that is read; only what \
             differs each time it is counted is put down to a version"
        )
    })
}

/// Explains figures that are the cost of one more unit of work.
fn on_slopes(history: &StoredHistory) -> Option<String> {
    let subjects: BTreeSet<String> = comparable(&history.run)
        .iter()
        .filter(|arm| arm.figures.values().any(is_slope))
        .map(|arm| arm.name.clone())
        .collect();
    let named = subjects.iter().map(|name| format!("‘{name}’")).collect::<Vec<_>>().join(", ");
    (!subjects.is_empty()).then(|| {
        format!(
            "the figures of {named} are for one unit more of the work, by the slope between the size and a tenth of it: \
             what is the same for every size, such as the start, is not in them, and sizes can be compared as far as \
             costs grow in proportion"
        )
    })
}

fn is_slope(figure: &Figure) -> bool {
    matches!(figure, Figure::Sample(sample) if sample.source.contains(SLOPE))
}
