//! JSON, schema 1, in the form of every other answer; places of versions are indices into `history.versions`.

use super::{Page, commit_links, words};
use crate::show::json::{RunHead, document, run_head};
use scruple_core::history::{BreakEven, Series, Version};
use scruple_core::provenance::Provenance;
use scruple_core::run::Warning;
use serde::Serialize;

#[derive(Serialize)]
struct Answer<'a> {
    run: RunHead<'a>,
    provenance: &'a Provenance,
    history: Range<'a>,
    series: &'a [Series],
    events: Vec<ShownEvent>,
    break_even: &'a [BreakEven],
    warnings: &'a [Warning],
}

#[derive(Serialize)]
struct Range<'a> {
    repository: &'a str,
    remote: Option<String>,
    range: &'a str,
    versions: &'a [Version],
}

#[derive(Serialize)]
struct ShownEvent {
    number: usize,
    outcome: String,
    at: usize,
    set: Vec<usize>,
    left_out: usize,
    before: usize,
    /// Whether tables tell it in a line with others, since all of it is exact and below the margin.
    minor: bool,
    changes: Vec<Place>,
}

/// Where a change stands: which of the series, which of its changes.
#[derive(Serialize)]
struct Place {
    series: usize,
    change: usize,
}

/// Writes everything, with every reading of every series.
pub(crate) fn text(page: &Page<'_>) -> String {
    let history = page.history;
    let all = &page.judgement.series;
    let events = page.events.iter().map(|event| ShownEvent {
        number: event.number,
        outcome: event.outcome().word().to_lowercase(),
        at: event.at,
        set: event.set.clone(),
        left_out: words::left_out(page, event),
        before: event.before,
        minor: event.is_minor(page.margin()),
        changes: event
            .changes
            .iter()
            .filter_map(|(series, change)| {
                Some(Place {
                    series: all.iter().position(|one| std::ptr::eq(one, *series))?,
                    change: series.changes.iter().position(|one| std::ptr::eq(one, *change))?,
                })
            })
            .collect(),
    });
    document(&Answer {
        run: run_head(&history.run),
        provenance: &history.run.provenance,
        history: Range {
            repository: &history.repository,
            remote: history.remote.as_deref().map(commit_links::without_user),
            range: &history.range,
            versions: &history.versions,
        },
        series: all,
        events: events.collect(),
        break_even: &page.judgement.break_even,
        warnings: &history.run.warnings,
    })
}
