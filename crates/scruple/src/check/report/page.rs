//! Writes the gate as a page: what decided, where it comes from, and every reading of the runs.

use super::origin_words;
use super::terminal::words;
use crate::check::sentence;
use crate::check::summary::{FoundRow, GateSummary};
use crate::check::weighed_run::WeighedRun;
use crate::render::metric_words::title;
use crate::render::page::{
    Cell, ColumnHeading, Page, Section, SectionPart, Span, Table, Tone, harmless_name, harmless_sentence,
    html,
};
use crate::run_page::several::unique;
use crate::run_page::{capital, of_run, page};
use crate::run_report::Report;
use scruple_core::gate::GateOutcome;
use scruple_core::judge::limits::Kept;

/// Writes the page as HTML.
pub fn text(summary: &GateSummary, weighed: &[WeighedRun]) -> String {
    html::text(&of(summary, weighed))
}

fn of(summary: &GateSummary, weighed: &[WeighedRun]) -> Page {
    let between = summary
        .labels
        .as_ref()
        .map(|[base, head]| format!("{} → {}", harmless_name(base), harmless_name(head)));
    let mut kind = vec!["Gate".to_owned()];
    kind.extend(between.clone());
    // The facts name the runs.
    let of_first = weighed.first().map(|one| of_run(&one.run)).unwrap_or_default();
    kind.extend(of_first.into_iter().filter(|part| !part.starts_with("run ")));
    let mut sections = vec![decided(summary)];
    sections.extend(limits(summary));
    sections.extend(origins(summary));
    sections.extend(only_shown(summary));
    for one in weighed {
        let page = page(&Report::of(&one.run, &[], &[]));
        let tag = harmless_name(&one.run.id);
        // The command that repeats a run would not repeat the gate.
        let own = page.sections.into_iter().filter(|section| section.title != crate::run_page::AGAIN);
        sections.extend(own.map(|section| if weighed.len() > 1 { unique(&tag, section) } else { section }));
    }
    if !summary.repeat.is_empty() {
        let parts = vec![SectionPart::Code(crate::run_page::code(&summary.repeat))];
        sections.push(Section { title: crate::run_page::AGAIN.to_owned(), folded: None, parts });
    }
    sections.retain(|section| !section.parts.is_empty());
    Page {
        title: format!("Gate {}", between.unwrap_or_default()).trim().to_owned(),
        kind,
        verdict: vec![Span::new(harmless_sentence(&sentence::outcome(summary)), tone(summary.kept))],
        notes: summary
            .facts
            .iter()
            .chain(Some(&summary.varying))
            .map(|fact| harmless_sentence(fact))
            .collect(),
        warnings: summary.remarks.iter().map(|remark| harmless_sentence(&remark.text)).collect(),
        sections,
    }
}

fn tone(kept: Kept) -> Tone {
    match kept {
        Kept::Yes => Tone::Better,
        Kept::No => Tone::Worse,
        Kept::CantTell => Tone::Open,
    }
}

fn decided(summary: &GateSummary) -> Section {
    let rows = summary.rows.iter().filter(|row| row.finding.gates);
    Section { title: "What decides".to_owned(), folded: None, parts: table("Metrics that decide", rows) }
}

fn only_shown(summary: &GateSummary) -> Option<Section> {
    let rows = summary.rows.iter().filter(|row| !row.finding.gates);
    let parts = table("Metrics that are only shown", rows);
    let title = "What is only shown".to_owned();
    (!parts.is_empty()).then_some(Section { title, folded: None, parts })
}

fn table<'a>(label: &str, rows: impl Iterator<Item = &'a FoundRow>) -> Vec<SectionPart> {
    let rows: Vec<Vec<Cell>> = rows.map(cells).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut head: Vec<ColumnHeading> = ["Subject", "Metric", "Result"].map(ColumnHeading::text).into();
    head.extend(["Before", "After", "Change"].map(ColumnHeading::number));
    vec![SectionPart::Table(Table { label: label.to_owned(), head, rows, stacks: true, ..Table::default() })]
}

fn cells(row: &FoundRow) -> Vec<Cell> {
    let tone = match row.finding.outcome {
        GateOutcome::Regression => Tone::Worse,
        GateOutcome::Improvement => Tone::Better,
        GateOutcome::CantTell => Tone::Open,
        GateOutcome::Accepted | GateOutcome::Same => Tone::Same,
    };
    let outcome = if row.finding.gates { words(row) } else { row.verdict.clone() };
    let why = row.finding.why.as_ref().map(|why| Span::new(harmless_sentence(&why.to_string()), Tone::Same));
    vec![
        Cell::code(harmless_name(&row.finding.subject)),
        Cell::text(harmless_sentence(&row.title)),
        Cell { tail: why, ..Cell::toned(capital(&outcome), tone) },
        Cell::text(harmless_sentence(&row.before)),
        Cell::text(harmless_sentence(&row.after)),
        Cell::text(harmless_sentence(&row.change)),
    ]
}

fn limits(summary: &GateSummary) -> Option<Section> {
    let rows = summary.limits.iter().map(|limit| {
        let accepted = limit.accepted.as_ref().map(|why| format!("; accepted: {why}")).unwrap_or_default();
        vec![
            Cell::text(harmless_sentence(&limit.text)),
            Cell::code(harmless_name(&limit.arm)),
            Cell::toned(limit.kept.word(), tone(limit.kept)),
            Cell::text(harmless_sentence(&format!("{}{accepted}", limit.found))),
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let head = ["Limit", "Subject", "Result", "Found"].map(ColumnHeading::text).into();
    let label = "Limits of the gate".to_owned();
    let parts = vec![SectionPart::Table(Table { label, head, rows, stacks: true, ..Table::default() })];
    (!summary.limits.is_empty()).then(|| Section { title: "Limits".to_owned(), folded: None, parts })
}

fn origins(summary: &GateSummary) -> Option<Section> {
    let line = |origin| {
        let (function, more) = origin_words(origin);
        harmless_sentence(&format!("{} of {}: {function} ({more})", title(&origin.metric), origin.subject))
    };
    let lines: Vec<String> = summary.origins.iter().map(line).collect();
    let title = "Where it comes from".to_owned();
    (!lines.is_empty()).then(|| Section { title, folded: None, parts: vec![SectionPart::List(lines)] })
}
