//! Writes the gate for a terminal.

use super::{origin_words, outcome_of_limit};
use crate::check::sentence;
use crate::check::summary::{FoundRow, GateSummary};
use crate::render::align::{fit, remark, right, wrap};
use crate::render::colours::{BAD, BOLD, DIM, GOOD, OPEN};
use crate::render::metric_words::title;
use anstyle::Style;
use scruple_core::gate::GateOutcome;
use scruple_core::judge::limits::Kept;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Whether a row is listed rather than only counted.
fn is_listed(row: &&FoundRow) -> bool {
    let decides = row.finding.gates;
    match row.finding.outcome {
        GateOutcome::Regression | GateOutcome::Accepted | GateOutcome::Improvement => true,
        GateOutcome::CantTell => decides,
        GateOutcome::Same => false,
    }
}

/// Writes the summary for a terminal with this many columns.
pub fn text(summary: &GateSummary, width: usize) -> String {
    let style = style(summary.kept);
    let mut out = String::new();
    if let Some([base, head]) = &summary.labels {
        let _ = writeln!(out, "{base} → {head}\n");
    }
    let _ = writeln!(out, "{style}{}{style:#}", wrap(&sentence::outcome(summary), width));
    table(summary, width, &mut out);
    if !summary.varying.is_empty() {
        let _ = writeln!(out, "\n{OPEN}{}{OPEN:#}", wrap(&summary.varying, width));
    }
    for limit in &summary.limits {
        let style = self::style(limit.kept);
        let accepted = limit.accepted.as_ref().map_or_else(String::new, |why| format!("; accepted: {why}"));
        let line = format!(
            "Limit {}: {} ‘{}’: {}{accepted}",
            limit.text,
            outcome_of_limit(limit.kept),
            limit.arm,
            limit.found
        );
        let _ = writeln!(out, "{style}{}{style:#}", wrap(&line, width));
    }
    if !summary.origins.is_empty() {
        let _ = writeln!(out, "\n{BOLD}Where it comes from{BOLD:#}");
        for origin in &summary.origins {
            let (name, more) = origin_words(origin);
            let line = format!("  {} of {}: {name} ({more})", title(&origin.metric), origin.subject);
            let _ = writeln!(out, "{}", wrap(&line, width));
        }
    }
    out.push('\n');
    for fact in &summary.facts {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(fact, width));
    }
    out.extend(summary.remarks.iter().map(|one| remark(&one.text, width)));
    out
}

fn table(summary: &GateSummary, width: usize, out: &mut String) {
    let rows: Vec<&FoundRow> = summary.rows.iter().filter(is_listed).collect();
    if rows.is_empty() {
        return;
    }
    out.push('\n');
    let widest = |of: fn(&FoundRow) -> &str| rows.iter().map(|row| of(row).width()).max().unwrap_or(0);
    let (title, before, after) = (widest(|r| &r.title), widest(|r| &r.before), widest(|r| &r.after));
    let change = widest(|r| &r.change);
    let words: Vec<String> = rows.iter().map(|row| words(row)).collect();
    let word = words.iter().map(|word| word.width()).max().unwrap_or(0);
    let fixed = title + before + after + change + word + 2 * 6 + 3;
    let subject = widest(|r| &r.finding.subject).min(width.saturating_sub(fixed).max(12));
    for (row, words) in rows.iter().zip(&words) {
        let style = match row.finding.outcome {
            GateOutcome::Regression if row.finding.gates => BAD,
            GateOutcome::Improvement => GOOD,
            GateOutcome::CantTell | GateOutcome::Accepted => OPEN,
            _ => DIM,
        };
        let line = format!(
            "  {style}{}{style:#}  {}  {}  {} → {}  {}",
            fit(words, word),
            fit(&row.finding.subject, subject),
            fit(&row.title, title),
            right(&row.before, before),
            right(&row.after, after),
            fit(&row.change, change)
        );
        let _ = writeln!(out, "{}", line.trim_end());
        if let Some(why) = &row.finding.why {
            let _ = writeln!(
                out,
                "    {DIM}{}{DIM:#}",
                wrap(why, width.saturating_sub(4)).replace('\n', "\n    ")
            );
        }
    }
}

/// Describes what a row means for the gate.
pub(super) fn words(row: &FoundRow) -> String {
    match (row.finding.outcome, row.finding.gates) {
        (GateOutcome::CantTell, true) => "can’t tell".to_owned(),
        (outcome, true) => outcome.word().to_owned(),
        (_, false) => format!("only shown: {}", row.verdict),
    }
}

fn style(kept: Kept) -> Style {
    match kept {
        Kept::Yes => GOOD,
        Kept::No => BAD,
        Kept::CantTell => OPEN,
    }
}
