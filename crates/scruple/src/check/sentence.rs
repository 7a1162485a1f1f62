//! What a gate says in sentences.

use super::summary::{FoundRow, GateSummary};
use scruple_core::gate::GateOutcome;
use scruple_core::judge::limits::Kept;

/// Writes the outcome in one line.
pub fn outcome(gate: &GateSummary) -> String {
    if let Some(why) = &gate.not_measured {
        return format!("Gate kept without measuring: {why}.");
    }
    let deciding = |outcome| gate.rows_of(outcome, true).count();
    let unknown = gate.limits.iter().filter(|limit| limit.kept == Kept::CantTell).count();
    let worse = gate.rows_of(GateOutcome::Regression, false).count();
    let counts = [
        (deciding(GateOutcome::Accepted), "accepted", "accepted"),
        (deciding(GateOutcome::CantTell) + unknown, "undecided", "undecided"),
        (deciding(GateOutcome::Improvement), "improvement", "improvements"),
        (deciding(GateOutcome::Same), "not worse", "not worse"),
        (worse, "worse without deciding", "worse without deciding"),
    ];
    let parts: Vec<String> = exceeding(gate).into_iter().chain(in_words(counts)).collect();
    let head = match gate.kept {
        Kept::Yes => "Gate kept",
        Kept::No => "Gate exceeded",
        Kept::CantTell => "Gate can’t tell",
    };
    let more = |row: &FoundRow| row.open_to_more;
    let unread = parts.is_empty() && gate.launches_given;
    let advice = match unread || gate.rows_of(GateOutcome::CantTell, true).any(more) {
        true => format!(" {} may decide.", gate.longer),
        false => String::new(),
    };
    match parts.is_empty() {
        true => format!("{head}: no figure that decides could be read.{advice}"),
        false => format!("{head}: {}.{advice}", parts.join(", ")),
    }
}

/// Says what exceeds the gate: regressions, and limits.
pub fn exceeding(gate: &GateSummary) -> Vec<String> {
    let limits = gate.limits.iter().filter(|limit| limit.kept == Kept::No).count();
    let regressions = gate.rows_of(GateOutcome::Regression, true).count();
    let counts = [(regressions, "regression", "regressions"), (limits, "limit exceeded", "limits exceeded")];
    in_words(counts).collect()
}

/// Writes each number with its noun, the numbers above 0 only.
fn in_words(
    counts: impl IntoIterator<Item = (usize, &'static str, &'static str)>,
) -> impl Iterator<Item = String> {
    let above = counts.into_iter().filter(|(count, ..)| *count > 0);
    above.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
}
