//! Explains the changes of a history: the version that brought each, compared with the one before it.

use super::counted_runs;
use super::report::terminal;
use super::verb::{At, at_revisions};
use crate::fault::Fault;
use crate::history::{Recipe, Template};
use crate::inspect::calls;
use crate::show::output;
use scruple_core::history::{History, find_changes};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// The share of false changes among those that are explained, as in the report.
const ERROR: f64 = 0.05;

/// Functions that are listed for each change.
const ROWS: usize = 5;

/// The most changes that are explained, the largest first.
const MOST: usize = 20;

/// The source of a history, so that its versions can be built again; kept builds are reused.
pub struct Of<'a> {
    /// The repository.
    pub place: &'a str,
    /// How versions are built.
    pub recipe: &'a Recipe,
    /// What was weighed.
    pub subjects: &'a [Template],
    /// How long a launch may take.
    pub limit: Duration,
}

/// A version and the one before it, with the change of one metric, as a logarithm.
struct Changed {
    before: usize,
    at: usize,
    size: f64,
    metrics: Vec<String>,
}

/// Explains every change of a history of commands, as text. A failure to explain is reported in its place.
pub fn explained(history: &History, of: &Of<'_>) -> Result<String, Fault> {
    let mut out = String::new();
    let changes = changes(history, of.subjects);
    if changes.is_empty() {
        return Ok("\nNo change to explain.\n".to_owned());
    }
    let counter = calls::counter("explain anything")?;
    let all = changes.len();
    for (subject, changed) in changes.into_iter().take(MOST) {
        let template = &of.subjects[subject];
        let (before, after) = (&history.versions[changed.before], &history.versions[changed.at]);
        let _ = writeln!(
            out,
            "\n{} · ‘{}’ · {} · {}",
            after.short(),
            after.title,
            template.name,
            changed.metrics.join(", ")
        );
        if template.bench {
            out.push_str("Cases of bench programs are not explained: `scruple explain` takes commands.\n");
            continue;
        }
        let at = At {
            place: of.place,
            first: &before.commit,
            second: Some(&after.commit),
            recipe: of.recipe.clone(),
            subject: template,
            limit: of.limit,
        };
        let effort = counted_runs::Effort { runs: 5, strict: true, time: false };
        match at_revisions(&at, &counter, &effort) {
            Ok((found, _)) => out.push_str(&terminal::text(&found, ROWS, output::width())),
            Err(fault) if fault.code == crate::fault::Code::Interrupted => return Err(fault),
            Err(fault) => _ = writeln!(out, "Can’t tell why: {}", fault.message),
        }
    }
    if all > MOST {
        let _ = writeln!(out, "\n{} smaller changes are not explained.", all - MOST);
    }
    Ok(out)
}

/// Every pair of versions between which a metric of a subject changed, the largest changes first.
fn changes(history: &History, subjects: &[Template]) -> Vec<(usize, Changed)> {
    let mut found: BTreeMap<(usize, usize, usize), Changed> = BTreeMap::new();
    for series in &find_changes(history, ERROR).series {
        let is_of = |template: &Template| {
            let rest = series.subject.strip_prefix(&template.name);
            template.bench || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let Some(subject) = subjects.iter().position(is_of).filter(|_| !series.metric.starts_with("build."))
        else {
            continue;
        };
        for change in &series.changes {
            let size = change.ratio.ln().abs();
            let key = (subject, change.before, change.at);
            let (before, at) = (change.before, change.at);
            let one = found.entry(key).or_insert(Changed { before, at, size: 0.0, metrics: Vec::new() });
            one.size = one.size.max(size);
            one.metrics.push(series.metric.clone());
        }
    }
    let mut changes: Vec<(usize, Changed)> =
        found.into_iter().map(|((subject, _, _), changed)| (subject, changed)).collect();
    changes.sort_by(|a, b| b.1.size.total_cmp(&a.1.size));
    changes
}
