//! Writes the explanation as JSON.

use super::{remarks, row_words, words};
use crate::explain::closures::ClosureDifference;
use crate::explain::code_view::CodeView;
use crate::explain::findings::Findings;
use crate::explain::hunks::Hunk;
use crate::render::json;
use scruple_core::explain::{Count, Explanation, FunctionDifference};
use serde::Serialize;

#[derive(Serialize)]
struct ExplanationJson<'a> {
    explain: ExplanationFields<'a>,
}

#[derive(Serialize)]
struct ExplanationFields<'a> {
    a: &'a str,
    b: &'a str,
    sentences: Vec<String>,
    repeats: bool,
    runs: usize,
    counts: Vec<CountedDifference<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    closures: &'a [ClosureDifference],
    functions_changed: usize,
    functions_compared: usize,
    nameless: [f64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<TimedDifference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a CodeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<ScriptDifference<'a>>,
    remarks: Vec<String>,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_by: Option<&'a str>,
}

/// The functions of a script, counted by its interpreter.
#[derive(Serialize)]
struct ScriptDifference<'a> {
    counts: &'a str,
    sentences: Vec<String>,
    repeats: bool,
    runs: usize,
    #[serde(flatten)]
    difference: CountedDifference<'a>,
}

#[derive(Serialize)]
struct CountedDifference<'a> {
    count: Count,
    a: f64,
    b: f64,
    difference: f64,
    spread: f64,
    gross: f64,
    rows: Vec<DifferenceRow<'a>>,
}

#[derive(Serialize)]
struct DifferenceRow<'a> {
    #[serde(flatten)]
    function: &'a FunctionDifference,
    code: &'static str,
    within_spread: bool,
    shown: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hunk: Option<String>,
    /// The number of other hunks that are as likely to be the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_hunks: Option<usize>,
}

#[derive(Serialize)]
struct TimedDifference {
    a: f64,
    b: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 2]>,
}

/// Writes the whole explanation, including all rows of every count.
pub fn text(found: &Findings) -> String {
    let explain = ExplanationFields {
        a: &found.names[0],
        b: &found.names[1],
        sentences: words::answer(found),
        repeats: found.repeats,
        runs: found.runs,
        counts: found.explanations.iter().map(|one| count(found, one)).collect(),
        closures: &found.closures,
        functions_changed: found.changed.0,
        functions_compared: found.changed.1,
        nameless: found.nameless,
        time: found.time.as_ref().map(|time| TimedDifference {
            a: time.medians.0,
            b: time.medians.1,
            ratio: time.effect.as_ref().map(|effect| effect.ratio),
            interval: time.effect.as_ref().map(|effect| [effect.interval.low, effect.interval.high]),
        }),
        code: found.code.as_ref(),
        script: found.script.as_deref().map(|script| ScriptDifference {
            counts: script.word(script.main().count),
            sentences: words::answer(script),
            repeats: script.repeats,
            runs: script.runs,
            difference: count(script, script.main()),
        }),
        remarks: remarks::remarks(found),
        notes: remarks::notes(found),
        counted_by: found.counted_by.as_deref(),
    };
    json::document(&ExplanationJson { explain })
}

fn count<'a>(found: &'a Findings, explanation: &'a Explanation) -> CountedDifference<'a> {
    let shown: Vec<*const FunctionDifference> =
        found.shown_rows(explanation).map(std::ptr::from_ref).collect();
    CountedDifference {
        count: explanation.count,
        a: explanation.totals.0,
        b: explanation.totals.1,
        difference: explanation.delta(),
        spread: explanation.spread,
        gross: explanation.gross(),
        rows: explanation
            .rows
            .iter()
            .map(|function| DifferenceRow {
                function,
                code: row_words::code(function),
                within_spread: function.is_within_spread(),
                shown: shown.contains(&std::ptr::from_ref(function)),
                hunk: found.hunk_of(explanation, function).map(Hunk::place),
                other_hunks: found.hunk_of(explanation, function).map(|hunk| hunk.others),
            })
            .collect(),
    }
}
