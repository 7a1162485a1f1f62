//! Remarks that a reader needs in order not to be misled by a history.

use super::node_agreement;
use crate::store::{StoredHistory, StoredVersion};
use crate::versions::source_repository::Source;
use scruple_core::harmless_text::list_names;
use scruple_core::history::{Graph, SLOPE, Version, VersionState, comparable};
use scruple_core::metric::{Quality, metric};
use scruple_core::plural::counted;
use scruple_core::provenance::short_commit;
use scruple_core::sample::Figure;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::quantity;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::BTreeSet;

/// The codes of remarks that depend on the current range, and are therefore renewed each time.
const PASSING: [&str; 11] = [
    "across-nodes",
    "came-and-went",
    "case-failed",
    "counts-shift",
    "dirty-tree",
    "not-fetched",
    "not-weighed",
    "outputs-differ",
    "range-replaced",
    "range-rewritten",
    "slope",
];

/// Adds the remarks that are known before any work.
pub fn begin(history: &mut StoredHistory, before: Option<&StoredHistory>, source: &Source) {
    history.run.warnings.retain(|warning| !PASSING.contains(&warning.code.as_str()));
    for (code, text) in &source.remarks {
        history.run.warn(code, text.clone());
    }
    let Some(before) = before else { return };
    let gone = |entry: &&StoredVersion| {
        history.entries.iter().all(|other| other.version.commit != entry.version.commit)
    };
    let gone: Vec<&StoredVersion> = before.entries.iter().filter(gone).collect();
    if before.range != history.range {
        let text = gone.first().map(|_| replaced(&before.range, &history.range, gone.len()));
        text.into_iter().for_each(|text| history.run.warn("range-replaced", text));
        return;
    }
    let (Some(newest_gone), Some(newest)) = (gone.last(), history.entries.last()) else { return };
    // If the newest missing version is still an ancestor of the newest one, it was only left out of the selection this
    // time.
    let words = ["merge-base", "--is-ancestor", &newest_gone.version.commit, &newest.version.commit];
    if source.repository.ask(words).is_err() {
        let text = format!(
            "‘{}’ no longer has {} that it had: was it rewritten? Their readings are kept but not shown",
            history.range,
            counted(gone.len(), "version")
        );
        history.run.warn("range-rewritten", text);
    }
}

/// Says which versions a range no longer shows that replaces another one.
fn replaced(before: &str, range: &str, gone: usize) -> String {
    let (versions, their) = if gone == 1 { ("version", "Its") } else { ("versions", "Their") };
    format!(
        "this history had the range ‘{before}’; ‘{range}’ takes its place and leaves out {gone} {versions}. {their} readings \
         are kept, and `scruple history {before}` shows them again"
    )
}

/// Adds the remarks that are known once no work is left.
pub fn end(history: &mut StoredHistory) {
    if history.run.provenance.nodes.len() > 1 {
        let sentences = node_agreement::sentences(&history.clone().view());
        history.run.warnings.retain(|warning| warning.code != "across-nodes");
        sentences.into_iter().for_each(|text| history.run.warn("across-nodes", text));
    }
    came_and_went(history).into_iter().for_each(|text| history.run.warn("came-and-went", text));
    without_figures(history).into_iter().for_each(|text| history.run.warn("case-failed", text));
    shifting(history).into_iter().for_each(|text| history.run.warn("counts-shift", text));
    on_slopes(history).into_iter().for_each(|text| history.run.warn("slope", text));
    let skipped = history.entries.iter().filter(|entry| entry.version.state == VersionState::Skipped).count();
    if skipped > 0 {
        let all = history.entries.len();
        history.run.warn(
            "not-weighed",
            format!(
                "{skipped} of {all} versions were never built: changes that appeared and disappeared among them are not found; a \
                 longer --budget builds more"
            ),
        );
    }
    let params = |entry: &StoredVersion, name: &String| {
        let is = |arm: &&Arm| arm.name == *name && arm.version.as_ref() == Some(&entry.version.commit);
        history.run.arms.iter().find(is).map(|arm| &arm.params)
    };
    let differ = |one: &StoredVersion, other: &StoredVersion| {
        // Output may differ between different parameters, because the work differs.
        one.outputs.iter().any(|(name, output)| {
            other.outputs.get(name).is_some_and(|other| other != output)
                && params(other, name) == params(one, name)
        })
    };
    // A version that failed the check of its output is shown as such.
    let known = |entry: &StoredVersion| !entry.version.state.failed() && !entry.outputs.is_empty();
    let changed: Vec<&str> = followed(&history.entries, known)
        .into_iter()
        .filter(|one| one.before.iter().all(|before| differ(one.weighed, before)))
        .map(|one| one.version.short())
        .collect();
    if let Some(first) = changed.first() {
        let more = changed.len() - 1;
        let more = if more > 0 { format!(", and at {more} more") } else { String::new() };
        history.run.warn(
            "outputs-differ",
            format!("the output changes at {first}{more}: is it still the same work? --same-output sets such versions apart"),
        );
    }
}

/// Names the cases of bench programs that a version has and the version before it lacks, or the other way round.
fn came_and_went(history: &StoredHistory) -> Vec<String> {
    let mut cases: SortedMap<&str, BTreeSet<&str>> = SortedMap::new();
    for arm in history.run.arms_of(Role::Subject) {
        if let (Subject::Case { .. }, Some(version)) = (&arm.subject, &arm.version) {
            cases.entry(version).or_default().insert(&arm.name);
        }
    }
    let known = |entry: &StoredVersion| cases.contains_key(entry.version.commit.as_str());
    let of = |entry: &StoredVersion| &cases[entry.version.commit.as_str()];
    let mut sentences = Vec::new();
    for one in followed(&history.entries, known) {
        let now = of(one.weighed);
        let anywhere: BTreeSet<&str> = sorting::set(one.before.iter().flat_map(|before| of(before)).copied());
        let everywhere = |name: &&str| one.before.iter().all(|before| of(before).contains(name));
        let new: Vec<&str> = now.difference(&anywhere).copied().collect();
        let gone: Vec<&str> = anywhere.difference(now).copied().filter(everywhere).collect();
        for (names, what) in [(new, "new"), (gone, "gone")].into_iter().filter(|(names, _)| !names.is_empty())
        {
            let verb = if names.len() == 1 { "is" } else { "are" };
            sentences.push(format!("{} {verb} {what} at {}", list_names(names), one.version.short()));
        }
    }
    sentences
}

/// Says why a case has no figures at a version: it failed there, or was skipped.
fn without_figures(history: &StoredHistory) -> Option<String> {
    let listed: BTreeSet<&str> = history.entries.iter().map(|entry| entry.version.commit.as_str()).collect();
    let mut found = history.run.arms_of(Role::Subject).filter_map(|arm| {
        let version = arm.version.as_deref().filter(|version| listed.contains(version))?;
        let why = arm.absent("time.wall").filter(|_| matches!(arm.subject, Subject::Case { .. }))?;
        Some((&arm.name, version, why))
    });
    let (name, version, why) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        more => format!(" ({more} more like it)"),
    };
    Some(format!("‘{name}’ has no figures at {}: {why}{more}", short_commit(version)))
}

/// A version, the entry that was weighed for it, and those that were weighed for the versions that it follows.
struct Followed<'a> {
    version: &'a Version,
    weighed: &'a StoredVersion,
    before: Vec<&'a StoredVersion>,
}

/// The versions with this knowledge, each with its nearest ancestors that have it as well. Versions without such
/// ancestors are left out. Knowledge about a version also holds for the versions with the same artefacts.
fn followed<'a>(entries: &'a [StoredVersion], known: impl Fn(&StoredVersion) -> bool) -> Vec<Followed<'a>> {
    let versions: Vec<Version> = entries.iter().map(|entry| entry.version.clone()).collect();
    let graph = Graph::of(&versions);
    let weighed = |place: usize| {
        let same = entries[place].version.same_as.as_ref();
        same.and_then(|commit| entries.iter().find(|other| other.version.commit == *commit))
            .unwrap_or(&entries[place])
    };
    let known = |place: usize| known(weighed(place));
    let places = (0..entries.len()).filter(|&place| known(place));
    let found = places.map(|place| Followed {
        version: &entries[place].version,
        weighed: weighed(place),
        before: graph.nearest(place, known).0.into_iter().map(weighed).collect(),
    });
    found.filter(|one| !one.before.is_empty()).collect()
}

/// Names the counts of a version that changed when it was counted again.
fn shifting(history: &StoredHistory) -> Option<String> {
    let mut sentences: Vec<String> = Vec::new();
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
                sentences
                    .push(format!("{title} of ‘{}’ at {version} was {first} and later {last}", arm.name));
            }
        }
    }
    let more = sentences.len().saturating_sub(1);
    let more = if more > 0 { format!(" ({more} more like it)") } else { String::new() };
    sentences.first().map(|first| {
        format!(
            "{first}{more}: something outside of the versions changed meanwhile, such as an input file; only a \
             difference that appears every time is attributed to a version"
        )
    })
}

/// Explains figures that are the cost of one more unit of work.
fn on_slopes(history: &StoredHistory) -> Option<String> {
    let subjects: Vec<String> = sorting::distinct(
        comparable(&history.run)
            .iter()
            .filter(|arm| arm.figures.values().any(is_slope))
            .map(|arm| arm.name.clone()),
    );
    (!subjects.is_empty()).then(|| {
        format!(
            "the figures of {} are the cost of one more unit of work: the slope between the size and a tenth of \
             it. Costs that do not depend on the size, such as the start, are not in them. Sizes can be compared if costs grow in proportion to the size",
            list_names(&subjects)
        )
    })
}

fn is_slope(figure: &Figure) -> bool {
    matches!(figure, Figure::Sample(sample) if sample.source.contains(SLOPE))
}
