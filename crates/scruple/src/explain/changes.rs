//! Explains the changes of a history by comparing the version that brought each change with the version before it.

use super::effort::Effort;
use super::findings::Findings;
use super::gathered_launches::GatheredLaunches;
use super::hunks::Hunk;
use super::report::{row_words, terminal, words};
use super::verb::{AtRevisions, at_revisions};
use crate::fault::Fault;
use crate::history::report::{ExplainedChange, ExplainedRow};
use crate::inspect::calls;
use crate::profile::read::{self, KnownCallers};
use crate::render::align::wrap;
use crate::render::output;
use crate::store::Store;
use crate::versions::{Recipe, SubjectTemplate};
use scruple_core::explain::{Count, FunctionDifference};
use scruple_core::history::{History, find_changes};
use scruple_core::plural::counted;
use scruple_core::unit::share;
use scruple_stats::sorting::{self, SortedMap};
use std::fmt::Write as _;
use std::time::Duration;

/// The largest number of functions that are listed for each change.
const ROWS: usize = 5;

/// The largest number of changes that are explained. The largest changes come first.
const MOST: usize = 20;

/// What is needed to build the versions of a history again. Kept builds are used if they exist.
pub struct RebuildContext<'a> {
    /// The path or URL of the repository.
    pub place: &'a str,
    /// How versions are built.
    pub recipe: &'a Recipe,
    /// The subjects that were weighed.
    pub subjects: &'a [SubjectTemplate],
    /// The time limit of a launch.
    pub limit: Duration,
    /// The store that receives call trees and explanations, if there is one.
    pub store: Option<&'a Store>,
}

/// Returns the explanations that are stored with a history.
pub fn known(store: &Store, run: &str) -> Result<Vec<ExplainedChange>, Fault> {
    let texts = store.explanations(run)?;
    Ok(texts.iter().filter_map(|(_, text)| serde_json::from_str(text).ok()).collect())
}

/// Returns the name under which the call trees of a command at a version are stored.
pub fn name_of(commit: &str, subject: &str) -> String {
    format!("{commit} {subject}")
}

/// Stores the call trees of both versions, and the explanation.
fn keep(
    store: &Store,
    run: &str,
    (before, at): (&str, &str),
    subject: &str,
    (found, gathered): (&Findings, &GatheredLaunches),
) -> Result<(), Fault> {
    // Only call trees are kept: what another tool counted could not be compared with them later.
    let are_trees = gathered.kind.callers == KnownCallers::Contexts;
    for (commit, sides) in [before, at].into_iter().zip(&gathered.sides).filter(|_| are_trees) {
        let name = name_of(commit, subject);
        let parts: Vec<Vec<u8>> =
            sides.iter().map(|side| read::own_format_bytes(&name, true, side)).collect();
        store.put_calls(run, &name, &parts)?;
    }
    let change = ExplainedChange {
        before: before.to_owned(),
        at: at.to_owned(),
        subject: subject.to_owned(),
        sentences: words::answer(found),
        rows: rows(found),
    };
    let text = serde_json::to_string(&change).unwrap_or_default();
    Ok(store.put_explanation(run, &name_of(at, subject), &text)?)
}

/// Returns the rows of an explanation as a report shows them.
fn rows(found: &Findings) -> Vec<ExplainedRow> {
    let found = found.origin();
    let explanation = found.main();
    let row = |row: &FunctionDifference| ExplainedRow {
        difference: row_words::signed(row.delta),
        share: explanation.share_of(row).map_or(String::new(), share),
        code: row_words::code(row).to_owned(),
        function: row_words::function(row),
        what: row_words::first(row).unwrap_or_default(),
        hunk: found.hunk_of(explanation, row).map(Hunk::places),
    };
    found.shown_rows(explanation).take(ROWS).map(row).collect()
}

/// A change between two versions: their indices, its size as the logarithm of the ratio, the metrics that changed, and
/// whether all of these are exact and below the margin.
struct Changed {
    before: usize,
    at: usize,
    size: f64,
    metrics: Vec<String>,
    minor: bool,
}

/// Explains the changes of a history of commands that its tables show, as text. If an explanation fails, the text
/// contains the reason.
pub fn explained(history: &History, of: &RebuildContext<'_>) -> Result<String, Fault> {
    let mut out = String::new();
    let (minor, changes): (Vec<_>, Vec<_>) =
        changes(history, of.subjects).into_iter().partition(|(_, one)| one.minor);
    let rest = match minor.len() {
        0 => String::new(),
        some => {
            let (margin, some) = (share(history.run.terms.margin), counted(some, "exact change"));
            format!("Not explained: {some} below the margin of {margin}; a smaller margin explains more.\n")
        }
    };
    if changes.is_empty() {
        return Ok(format!("\nNo change to explain.\n{rest}"));
    }
    let counter = calls::any_counter("explain anything")?;
    let all = changes.len();
    let mut counted_before = None;
    for (subject, changed) in changes.into_iter().take(MOST) {
        let template = &of.subjects[subject];
        let (before, after) = (&history.versions[changed.before], &history.versions[changed.at]);
        let metrics = changed.metrics.join(", ");
        let head = format!("{} · ‘{}’ · {} · {metrics}", after.short(), after.title, template.name);
        let _ = writeln!(out, "\n{}", wrap(&head, output::width()));
        if template.bench {
            out.push_str("Cases of bench programs are not explained: `scruple explain` takes commands.\n");
            continue;
        }
        let at = AtRevisions {
            place: of.place,
            first: &before.commit,
            second: Some(&after.commit),
            recipe: of.recipe.clone(),
            subject: template,
            limit: of.limit,
        };
        let effort = Effort {
            count: Count::Instructions,
            runs: 5,
            once: false,
            strict: true,
            time: false,
            lines: false,
            apart: false,
        };
        match at_revisions(&at, &counter, &effort) {
            Ok((mut found, gathered)) => {
                for (name, version) in found.names.iter_mut().zip([before, after]) {
                    *name = name.replace(&version.commit, version.short());
                }
                // Notes about reused builds are left out, because these are builds of this history.
                found.notes.clear();
                // The tool that counted is named once.
                let counted_by = found.counted_by.clone();
                found.counted_by = found.counted_by.filter(|_| counted_by != counted_before);
                counted_before = counted_by;
                out.push_str(&terminal::text(&found, ROWS, output::width()));
                if let Some(store) = of.store {
                    let pair = (before.commit.as_str(), after.commit.as_str());
                    keep(store, &history.run.id, pair, &template.name, (&found, &gathered))?;
                }
            }
            Err(fault) if fault.code == crate::fault::Code::Interrupted => return Err(fault),
            Err(fault) => _ = writeln!(out, "Can’t tell why: {}", fault.message),
        }
    }
    if all > MOST {
        let _ = writeln!(out, "\n{} smaller changes are not explained.", all - MOST);
    }
    if !rest.is_empty() {
        let _ = write!(out, "\n{rest}");
    }
    Ok(out)
}

/// Returns every pair of versions between which metrics of a subject changed, the largest changes first.
fn changes(history: &History, subjects: &[SubjectTemplate]) -> Vec<(usize, Changed)> {
    let mut found = Vec::new();
    for series in &find_changes(history).series {
        let is_of = |template: &SubjectTemplate| {
            let rest = series.subject.strip_prefix(&template.name);
            template.bench || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let Some(subject) = subjects.iter().position(is_of).filter(|_| !series.metric.starts_with("build."))
        else {
            continue;
        };
        found.extend(series.changes.iter().map(|change| {
            let size = change.ratio.ln().abs();
            let metrics = vec![series.metric.clone()];
            let minor = series.exact && (change.ratio - 1.0).abs() < history.run.terms.margin;
            (subject, Changed { before: change.before, at: change.at, size, metrics, minor })
        }));
    }
    one_for_each_version(found)
}

/// Combines the changes of a subject that were first seen at one version, as the report of the history does. Metrics may
/// narrow a change down to different ranges; of these the shortest is explained.
fn one_for_each_version(changes: Vec<(usize, Changed)>) -> Vec<(usize, Changed)> {
    let mut found: SortedMap<(usize, usize), Changed> = SortedMap::new();
    for (subject, change) in changes {
        let before = change.before;
        let one = found.entry((subject, change.at)).or_insert(Changed {
            before,
            at: change.at,
            size: 0.0,
            metrics: Vec::new(),
            minor: true,
        });
        one.before = one.before.max(before);
        one.size = one.size.max(change.size);
        one.metrics.extend(change.metrics);
        one.minor &= change.minor;
    }
    let mut changes: Vec<(usize, Changed)> =
        found.into_iter().map(|((subject, _), changed)| (subject, changed)).collect();
    sorting::by(&mut changes, |a, b| b.1.size.total_cmp(&a.1.size));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_that_changed_at_one_version_are_explained_together() {
        let change = |subject: usize, before: usize, at: usize, size: f64, metric: &str| {
            (subject, Changed { before, at, size, metrics: vec![metric.to_owned()], minor: false })
        };
        let found = one_for_each_version(vec![
            change(0, 1, 2, 1.1, "time.wall"),
            change(0, 3, 7, 0.2, "time.wall"),
            change(1, 5, 7, 0.5, "time.cpu"),
            change(0, 5, 7, 0.3, "memory.peak"),
        ]);
        let found: Vec<_> =
            found.iter().map(|(of, one)| (*of, one.before, one.at, one.metrics.join(" "))).collect();
        let expected = [(0, 1, 2, "time.wall"), (1, 5, 7, "time.cpu"), (0, 5, 7, "time.wall memory.peak")];
        assert_eq!(found, expected.map(|(of, before, at, metrics)| (of, before, at, metrics.to_owned())));
    }

    #[test]
    fn a_version_is_left_out_only_if_each_of_its_changes_is_below_the_margin() {
        let change = |at: usize, metric: &str, minor: bool| {
            (0, Changed { before: at - 1, at, size: 0.1, metrics: vec![metric.to_owned()], minor })
        };
        let found = one_for_each_version(vec![
            change(1, "malloc.count", true),
            change(1, "malloc.bytes", true),
            change(2, "malloc.count", true),
            change(2, "malloc.bytes", false),
        ]);
        assert_eq!(
            found.iter().map(|(_, one)| (one.at, one.minor)).collect::<Vec<_>>(),
            [(1, true), (2, false)]
        );
    }
}
