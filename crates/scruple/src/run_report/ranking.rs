//! Ranks several commands by their time.

use super::Report;
use scruple_core::judge::{self, Judged, Nodes, Pair};
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_core::verdict::Verdict;
use scruple_stats::sorting;

/// Says which of three or more commands is the fastest, and how far the others are from it. Returns `None` if a ranking
/// is not useful: for fewer commands, for sizes of one command, or if the readings come from different blocks.
pub(crate) fn line(report: &Report<'_>) -> Option<String> {
    let arms: Vec<&Arm> = report.run.arms_of(Role::Subject).collect();
    let sizes = |arm: &&Arm| arm.params.values().any(|value| matches!(value, Parameter::Number(_)));
    let commands =
        arms.iter().all(|arm| matches!(arm.subject, Subject::Command { .. }) && arm.version.is_none());
    if arms.len() < 3 || !commands || !report.side_by_side || arms.iter().any(sizes) {
        return None;
    }
    let quoted =
        |key: &str| judge::headlines(&report.judged, &report.shown).values().any(|one| one.metric == key);
    let key = if quoted("time.cpu") { "time.cpu" } else { "time.wall" };
    let what = if key == "time.cpu" { "cpu time" } else { "wall time" };
    if !report.is_shown(key) {
        return None;
    }
    let time = |arm: &&&Arm| report.estimate(arm, key).map_or(f64::INFINITY, |estimate| estimate.value);
    let best = *arms.iter().min_by(|a, b| time(a).total_cmp(&time(b)))?;
    let pairs: Vec<Pair<'_>> = arms
        .iter()
        .filter(|arm| arm.name != best.name)
        .map(|arm| Pair { nodes: Nodes::of(report.run), ..Pair::new(best, arm, true) })
        .collect();
    let mut found: Vec<Judged> = judge::compare_pairs(&pairs, &report.run.terms);
    found.retain(|judged| judged.metric == key);
    sorting::by(&mut found, |a, b| effect(a).total_cmp(&effect(b)));
    let slower: Vec<String> = found.iter().filter(|one| sure(one)).map(quoted_ratio).collect();
    let close: Vec<String> =
        found.iter().filter(|one| !sure(one)).map(|one| format!("‘{}’", one.arm)).collect();
    let first = match close.as_slice() {
        [] => format!("Fastest in {what}: ‘{}’", best.name),
        close => {
            format!(
                "Fastest in {what}: ‘{}’, which cannot be distinguished from {}",
                best.name,
                close.join(", ")
            )
        }
    };
    Some(match slower.as_slice() {
        [] => format!("{first}."),
        slower => format!("{first}; then {}.", slower.join(", ")),
    })
}

fn effect(judged: &Judged) -> f64 {
    judged.comparison.evidence.effect().unwrap_or(f64::INFINITY)
}

/// Whether an arm certainly takes longer than the fastest one.
fn sure(judged: &Judged) -> bool {
    matches!(judged.comparison.verdict, Verdict::Different | Verdict::Small) && effect(judged) > 1.0
}

fn quoted_ratio(judged: &Judged) -> String {
    let name = &judged.arm;
    match judged.comparison.interval() {
        Some(interval) => {
            format!("‘{name}’ {:.2} × [{:.2}, {:.2}]", effect(judged), interval.low, interval.high)
        }
        None => format!("‘{name}’ {:.2} ×", effect(judged)),
    }
}
