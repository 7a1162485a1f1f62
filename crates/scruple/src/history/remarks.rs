//! What a reader must know of a history in order not to be misled by it.

use super::source::Source;
use crate::store::{Entry, StoredHistory};
use scruple_core::history::State;
use scruple_core::subject::Arm;

/// Remarks that hold for the latest look at the range and are made anew each time.
const PASSING: [&str; 5] = ["dirty-tree", "not-fetched", "not-weighed", "outputs-differ", "range-rewritten"];

/// Remarks before anything is done.
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
    // What was only left out this time is still behind the newest version.
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

/// Remarks once nothing is left to do.
pub fn end(history: &mut StoredHistory) {
    let skipped = history.entries.iter().filter(|entry| entry.version.state == State::Skipped).count();
    if skipped > 0 {
        let all = history.entries.len();
        history.run.warn(
            "not-weighed",
            format!(
                "{skipped} of {all} versions were never built: what came and went again among them is not seen; a \
                 longer --budget looks at more, `scruple history bisect` at those that a change is put down to"
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
        // Work that was told to be another may well print something else.
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
