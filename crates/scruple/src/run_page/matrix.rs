//! The table of all metrics of all arms.

use super::what;
use crate::render::metric_words::{effect_text, verdict_words};
use crate::render::page::{
    Cell, ColumnHeading, Section, SectionPart, Span, Table, Tone, harmless_name, sign, tone,
};
use crate::run_report::Report;
use crate::run_report::sentence::multiple;
use scruple_core::evidence::Evidence;
use scruple_core::judge::Judged;
use scruple_core::metric::Quality;
use scruple_core::subject::Arm;
use scruple_core::unit::{self, change, exact, quantity};

/// The largest number of arms whose charts stand together. With more, each arm has charts of its own.
pub const MOST_ARMS: usize = 8;

/// Makes the section with the table.
pub fn section(report: &Report<'_>, arms: &[&Arm]) -> Section {
    let mut head = vec![ColumnHeading::text("Metric")];
    head.extend(arms.iter().enumerate().map(|(place, arm)| ColumnHeading {
        text: harmless_name(&arm.name),
        arm: Some(place),
        number: true,
    }));
    let rows = report.shown.iter().map(|key| row(report, key, arms)).collect();
    let label = "All metrics of all arms".to_owned();
    let table = Table { label, head, rows, stacks: true, ..Table::default() };
    Section { title: "All metrics".to_owned(), folded: None, parts: vec![SectionPart::Table(table)] }
}

fn row(report: &Report<'_>, key: &str, arms: &[&Arm]) -> Vec<Cell> {
    let mut cells = vec![Cell::text(what(key))];
    cells.extend(arms.iter().map(|arm| cell(report, key, arm, false)));
    cells
}

/// Returns the cell of an arm: its estimate, and the comparison with the reference. A brief one, for tables with many
/// cells beside each other, has no difference in units: the estimates show it.
pub fn cell(report: &Report<'_>, key: &str, arm: &Arm, brief: bool) -> Cell {
    let (Some(sample), Some(estimate)) = (arm.sample(key), report.estimate(arm, key)) else {
        let why = arm.ended().filter(|_| key == "time.wall");
        let why = why.unwrap_or_else(|| arm.absent(key).unwrap_or("not read").to_owned());
        return Cell {
            text: "–".to_owned(),
            tail: Some(Span::new(harmless_name(&why), Tone::Same)),
            ..Cell::default()
        };
    };
    let counted = sample.quality <= Quality::Near && sample.repeats();
    let value =
        if counted { exact(estimate.value, &sample.unit) } else { quantity(estimate.value, &sample.unit) };
    let tail = match report.judged_of(&arm.name, key) {
        Some(judged) if brief => Some(said_with(judged, ratio_alone(judged))),
        Some(judged) => Some(verdict_in_words(judged)),
        None if report.judged.iter().any(|judged| judged.metric == key && judged.reference == arm.name) => {
            Some(Span::new("reference", Tone::Same))
        }
        None => None,
    };
    Cell { text: format!("{}{value}", sample.worth().mark()), tail, ..Cell::default() }
}

/// Writes the effect of a comparison without its interval, with no more digits than it needs alone.
pub fn effect_alone(judged: &Judged) -> String {
    match judged.comparison.evidence {
        Evidence::Interval { ref effect, .. } => change(effect.ratio),
        _ => effect_text(&judged.metric, &judged.comparison),
    }
}

/// Writes the effect of a comparison as a ratio only, if it has one.
fn ratio_alone(judged: &Judged) -> String {
    match (&judged.comparison.evidence, judged.comparison.evidence.effect()) {
        (Evidence::Exact { .. }, Some(effect)) if effect != 0.0 => change(effect),
        _ => effect_alone(judged),
    }
}

/// Returns the sign, the effect and the words of a verdict.
pub fn verdict_in_words(judged: &Judged) -> Span {
    said_with(judged, effect_alone(judged))
}

fn said_with(judged: &Judged, effect: String) -> Span {
    let comparison = &judged.comparison;
    let (sign, word) = (sign(comparison), verdict_words(&judged.metric, comparison));
    let text = match (tone(comparison), multiple(judged)) {
        (Tone::Same | Tone::Open, _) => format!("{sign} {word}"),
        (_, Some((times, adverb))) => format!("{sign} {} as {adverb}", unit::times(times)),
        (_, None) => format!("{sign} {effect} {word}"),
    };
    Span::new(text, tone(comparison))
}
