//! The explanation as JSON.

use super::words;
use crate::explain::findings::Found;
use crate::show::json;
use scruple_core::explain::{Explanation, FunctionDifference, Part, PartKind};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    explain: View<'a>,
}

#[derive(Serialize)]
struct View<'a> {
    a: &'a str,
    b: &'a str,
    sentences: Vec<String>,
    repeats: bool,
    runs: usize,
    counts: Vec<CountView>,
    functions_changed: usize,
    functions_compared: usize,
    nameless: [f64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<TimeView>,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct CountView {
    count: &'static str,
    a: f64,
    b: f64,
    difference: f64,
    gross: f64,
    rows: Vec<RowView>,
}

#[derive(Serialize)]
struct RowView {
    file: String,
    function: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed: Option<String>,
    difference: f64,
    code: &'static str,
    calls: (u64, u64),
    own: (u64, u64),
    spread: f64,
    within_spread: bool,
    told: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hunk: Option<String>,
    parts: Vec<PartView>,
}

#[derive(Serialize)]
struct PartView {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callee: Option<String>,
    calls: (u64, u64),
    difference: f64,
}

#[derive(Serialize)]
struct TimeView {
    a: f64,
    b: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 2]>,
}

/// Writes everything, all rows of every count among it.
pub fn text(found: &Found) -> String {
    let view = View {
        a: &found.names[0],
        b: &found.names[1],
        sentences: words::answer(found),
        repeats: found.repeats,
        runs: found.runs,
        counts: found.explanations.iter().map(|one| count(found, one)).collect(),
        functions_changed: found.changed.0,
        functions_compared: found.changed.1,
        nameless: found.nameless,
        time: found.time.as_ref().map(|time| TimeView {
            a: time.medians.0,
            b: time.medians.1,
            ratio: time.effect.as_ref().map(|effect| effect.ratio),
            interval: time.effect.as_ref().map(|effect| [effect.interval.low, effect.interval.high]),
        }),
        remarks: words::remarks(found),
    };
    json::document(&Document { explain: view })
}

fn count(found: &Found, explanation: &Explanation) -> CountView {
    let hunk = |index: usize| found.hunks.iter().find(|(row, _)| *row == index).map(|(_, hunk)| hunk.place());
    let is_main = std::ptr::eq(explanation, found.main());
    let rows = explanation.rows.iter().enumerate();
    let told: Vec<*const FunctionDifference> = found.telling(explanation).map(std::ptr::from_ref).collect();
    CountView {
        count: explanation.count.word(),
        a: explanation.totals.0,
        b: explanation.totals.1,
        difference: explanation.delta(),
        gross: explanation.gross(),
        rows: rows
            .map(|(index, one)| {
                row(one, is_main.then(|| hunk(index)).flatten(), told.contains(&std::ptr::from_ref(one)))
            })
            .collect(),
    }
}

fn row(row: &FunctionDifference, hunk: Option<String>, told: bool) -> RowView {
    RowView {
        file: row.module.clone(),
        function: row.name.clone(),
        renamed: row.renamed.clone(),
        difference: row.delta,
        code: words::code(row),
        calls: row.calls,
        own: row.own,
        spread: row.spread,
        within_spread: row.is_within_spread(),
        told,
        hunk,
        parts: row.parts.iter().map(part).collect(),
    }
}

fn part(part: &Part) -> PartView {
    PartView {
        kind: match part.kind {
            PartKind::Own => "own",
            PartKind::Calls => "calls",
            PartKind::New => "new",
            PartKind::Gone => "gone",
        },
        site: part.site.clone(),
        callee: part.callee.clone(),
        calls: part.calls,
        difference: part.delta,
    }
}
