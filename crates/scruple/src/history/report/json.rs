//! JSON, schema 1, in the form of every other answer. Versions are given as indices into `history.versions`.

use super::{ExplainedChange, HistoryReport, commit_links, words};
use crate::render::json::document;
use crate::run_report::json::{ArmHead, RunHead, run_head};
use scruple_core::history::{BreakEven, Series, Version};
use scruple_core::provenance::Provenance;
use scruple_core::run::Warning;
use scruple_core::sample::Figure;
use scruple_core::subject::Arm;
use scruple_stats::sorting::SortedMap;
use serde::Serialize;

#[derive(Serialize)]
struct HistoryDocument<'a> {
    run: RunHead<'a>,
    provenance: &'a Provenance,
    history: RangeView<'a>,
    series: &'a [Series],
    events: Vec<ShownEvent>,
    break_even: &'a [BreakEven],
    warnings: &'a [Warning],
    arms: Vec<VersionFields<'a>>,
}

/// The readings of one subject at one version, in the form that runs have, so that the history can be imported.
#[derive(Serialize)]
struct VersionFields<'a> {
    #[serde(flatten)]
    head: ArmHead<'a>,
    metrics: SortedMap<&'a str, VersionMetric<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum VersionMetric<'a> {
    Read {
        unit: &'a str,
        pass: &'static str,
        quality: &'static str,
        source: &'a str,
        readings: &'a [f64],
        blocks: &'a [u32],
    },
    Absent {
        absent: &'a str,
    },
}

#[derive(Serialize)]
struct RangeView<'a> {
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
    /// Whether tables only mention the event in a line with others, because all its changes are exact and below the
    /// margin.
    minor: bool,
    changes: Vec<ChangePosition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explained: Vec<ExplainedChange>,
}

/// The position of a change: the index of its series, and its index in that series.
#[derive(Serialize)]
struct ChangePosition {
    series: usize,
    change: usize,
}

/// Writes the whole page, with every reading of every series.
pub(crate) fn text(page: &HistoryReport<'_>) -> String {
    let history = page.history;
    let all = &page.judgement.series;
    let events = page.events.iter().map(|event| ShownEvent {
        number: event.number,
        outcome: event.outcome().word().to_lowercase(),
        at: event.at,
        set: event.set.clone(),
        left_out: words::left_out(page, event),
        before: event.before,
        minor: event.is_minor(),
        explained: page.explained_of(event).cloned().collect(),
        changes: event
            .changes
            .iter()
            .filter_map(|(series, change)| {
                Some(ChangePosition {
                    series: all.iter().position(|one| std::ptr::eq(one, *series))?,
                    change: series.changes.iter().position(|one| std::ptr::eq(one, *change))?,
                })
            })
            .collect(),
    });
    document(&HistoryDocument {
        run: run_head(&history.run),
        provenance: &history.run.provenance,
        history: RangeView {
            repository: &history.repository,
            remote: history.remote.as_deref().map(commit_links::without_user),
            range: &history.range,
            versions: &history.versions,
        },
        series: all,
        events: events.collect(),
        break_even: &page.judgement.break_even,
        warnings: &history.run.warnings,
        arms: history.run.arms.iter().map(of_arm).collect(),
    })
}

fn of_arm(arm: &Arm) -> VersionFields<'_> {
    let metrics = arm.figures.iter().map(|(key, figure)| (key.as_str(), of_metric(figure))).collect();
    VersionFields { head: ArmHead::of(arm), metrics }
}

fn of_metric(figure: &Figure) -> VersionMetric<'_> {
    match figure {
        Figure::Absent { absent } => VersionMetric::Absent { absent },
        Figure::Sample(sample) => VersionMetric::Read {
            unit: sample.unit.name(),
            pass: sample.pass.word(),
            quality: sample.quality.word(),
            source: &sample.source,
            readings: &sample.readings,
            blocks: &sample.blocks,
        },
    }
}
