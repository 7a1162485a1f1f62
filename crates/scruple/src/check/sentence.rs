//! What a gate says in sentences.

use super::summary::{FoundRow, GateSummary};
use crate::render::metric_words::title;
use scruple_core::gate::{Finding, GateOutcome};
use scruple_core::judge::limits::Kept;
use scruple_core::plural::counted;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::exact;
use scruple_stats::sorting;

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

/// Says which metrics decide.
pub fn what_decides(findings: &[Finding], limited: bool) -> String {
    let keys: Vec<&str> =
        sorting::distinct(findings.iter().filter(|one| one.gates).map(|one| one.metric.as_str()));
    let titles: Vec<String> = keys.into_iter().map(title).collect();
    match (titles.is_empty(), limited) {
        (false, _) => {
            format!("These decide: {}. All other figures are only shown.", titles.join(", "))
        }
        (true, true) => "Only the limits decide: no metric that decides was read.".to_owned(),
        (true, false) => {
            "No metric that decides was read: by default counts that repeat decide, and --gate names others."
                .to_owned()
        }
    }
}

/// Says which counts do not decide because they vary at the reference; empty if there are none.
pub fn varying(rows: &[FoundRow]) -> String {
    let parts: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let [low, high] = row.finding.varies?.map(|reading| exact(reading, &row.unit));
            Some(format!("{} of ‘{}’ ({low} to {high} at the reference)", row.title, row.finding.subject))
        })
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(
            "Not deciding, because they vary from launch to launch: {}; if --gate names them, they decide.",
            parts.join(", ")
        ),
    }
}

/// Says where and how a run was measured.
pub fn environment(run: &Run) -> String {
    let readings = |arm: &Arm| {
        let of = |key: &str, word: &'static str| Some((arm.sample(key)?.readings.len(), word));
        of("time.wall", "timing").or_else(|| of("load.rate", "window"))
    };
    let (fewest, word) = run.arms_of(Role::Subject).filter_map(readings).min().unwrap_or((0, "timing"));
    let (of, readings) = (&run.provenance, counted(fewest, word));
    format!(
        "{} · {readings} of each side, interleaved · seed {} · load {:.1} · kernel {} · run {}",
        of.machine_class, run.seed, of.load, of.kernel, run.id
    )
}
