//! CSV: one row for each metric of each arm, with its comparison.

use super::Report;
use crate::render::csv::quoted;
use scruple_core::judge::keys_of;
use scruple_core::subject::Arm;
use scruple_core::verdict::Verdict;
use scruple_stats::sorting;

/// The columns; a column for each parameter follows them.
pub(crate) const HEAD: &[&str] = &[
    "run",
    "arm",
    "role",
    "version",
    "metric",
    "unit",
    "pass",
    "quality",
    "n",
    "estimate",
    "low",
    "high",
    "min",
    "max",
    "reference",
    "effect",
    "effect_low",
    "effect_high",
    "verdict",
    "absent",
];

/// Writes every metric, including those that tables do not show.
pub fn text(report: &Report<'_>) -> String {
    let parameters: Vec<&String> =
        sorting::distinct(report.run.arms.iter().flat_map(|arm| arm.params.keys()));
    let mut out = String::new();
    let head = HEAD
        .iter()
        .map(|head| (*head).to_owned())
        .chain(parameters.iter().map(|name| format!("param:{name}")));
    push(&mut out, head);
    let arms: Vec<&Arm> = report.run.arms.iter().collect();
    for arm in &arms {
        for key in keys_of(&[arm]) {
            let mut cells = row(report, arm, &key);
            cells.extend(
                parameters
                    .iter()
                    .map(|name| arm.params.get(*name).map_or(String::new(), ToString::to_string)),
            );
            push(&mut out, cells);
        }
    }
    out
}

fn row(report: &Report<'_>, arm: &Arm, key: &str) -> Vec<String> {
    let sample = arm.sample(key);
    let estimate = report.estimate(arm, key);
    let judged = report.judged_of(&arm.name, key);
    let number =
        |value: Option<f64>| value.filter(|v| v.is_finite()).map_or(String::new(), |v| v.to_string());
    let interval = estimate.as_ref().and_then(|estimate| estimate.interval);
    let effect = judged.and_then(|judged| judged.comparison.interval());
    vec![
        report.run.id.clone(),
        arm.name.clone(),
        arm.role.word().to_owned(),
        arm.version.clone().unwrap_or_default(),
        key.to_owned(),
        sample.map_or(String::new(), |sample| sample.unit.name().to_owned()),
        sample.map_or(String::new(), |sample| sample.pass.word().to_owned()),
        sample.map_or(String::new(), |sample| sample.worth().word().to_owned()),
        sample.map_or(String::new(), |sample| sample.readings.len().to_string()),
        number(estimate.as_ref().map(|estimate| estimate.value)),
        number(interval.map(|interval| interval.low)),
        number(interval.map(|interval| interval.high)),
        number(estimate.as_ref().map(|estimate| estimate.range.0)),
        number(estimate.as_ref().map(|estimate| estimate.range.1)),
        judged.map_or(String::new(), |judged| judged.reference.clone()),
        number(judged.and_then(|judged| judged.comparison.evidence.effect())),
        number(effect.map(|interval| interval.low)),
        number(effect.map(|interval| interval.high)),
        judged.map_or(String::new(), |judged| verdict(judged.comparison.verdict).to_owned()),
        arm.absent(key).unwrap_or_default().to_owned(),
    ]
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Different => "different",
        Verdict::Same => "same",
        Verdict::Small => "small",
        Verdict::CantTell => "can't tell",
    }
}

fn push(out: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> = cells.into_iter().map(|cell| quoted(&cell)).collect();
    out.push_str(&cells.join(","));
    out.push('\n');
}
