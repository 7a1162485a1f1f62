//! Writes the explanation as text for a terminal.

use super::{remarks, row_words, words};
use crate::explain::code_view::CodeView;
use crate::explain::findings::{Findings, least_shown, shown_parts};
use crate::render::align::{fit, remark, right, wrap};
use crate::render::colours::{BOLD, DIM};
use scruple_core::explain::{Explanation, FunctionDifference};
use scruple_core::harmless_text::plain;
use scruple_core::plural::counted;
use scruple_core::unit::share;
use std::fmt::Write as _;

/// The number of rows of tables that follow the first.
const FEW: usize = 3;

/// The number of rows that are shown although they vary from launch to launch.
const GREY: usize = 3;

/// The column of functions, in which the parts of a row begin.
const INDENT: usize = 35;

/// Writes the explanation.
pub fn text(found: &Findings, rows: usize, width: usize) -> String {
    let mut out = format!("A: {}\nB: {}\n\n", found.names[0], found.names[1]);
    for (index, line) in words::answer(found).into_iter().enumerate() {
        let line = wrap(&line, width);
        let _ = if index == 0 { writeln!(out, "{BOLD}{line}{BOLD:#}") } else { writeln!(out, "{line}") };
    }
    let origin = found.origin();
    table(origin, origin.main(), rows, width, &mut out);
    if found.originates_in_script() {
        let _ = writeln!(out, "\n{}", words::OF_THE_INTERPRETER);
        table(found, found.main(), FEW.min(rows), width, &mut out);
    }
    out.extend(found.code.iter().map(|view| code(view, width)));
    for script in found.script.iter().filter(|_| !found.originates_in_script()) {
        out.push('\n');
        for line in words::answer(script) {
            let _ = writeln!(out, "{}", wrap(&line, width));
        }
        table(script, script.main(), rows, width, &mut out);
    }
    for explanation in &found.explanations[1..] {
        let _ = writeln!(out, "\n{}", wrap(&words::total_difference(found, explanation), width));
        if let Some(cause) = words::cause(found, explanation) {
            let _ = writeln!(out, "{}", wrap(&cause, width));
        }
        table(found, explanation, FEW.min(rows), width, &mut out);
    }
    closures(found, rows, width, &mut out);
    let remarks = remarks::remarks(found);
    if !remarks.is_empty() {
        out.push('\n');
    }
    out.extend(remarks.iter().map(|text| remark(text, width)));
    for note in remarks::notes(found).into_iter().chain(remarks::counted(found)) {
        let _ = writeln!(out, "\n{}", wrap(&note, width));
    }
    out
}

/// Writes the detailed view of a function.
pub(super) fn code(code: &CodeView, width: usize) -> String {
    let mut out = String::new();
    lines(code, width, &mut out);
    instructions(code, width, &mut out);
    core(code, width, &mut out);
    for lacking in &code.lacking {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(lacking, width));
    }
    out
}

/// The numbers of source lines and instructions that are shown.
const LINES: usize = 12;
const INSTRUCTIONS: usize = 40;

fn lines(code: &CodeView, width: usize, out: &mut String) {
    if code.lines.is_empty() {
        return;
    }
    let title = format!("line of {}", plain(&code.function));
    let _ = writeln!(out, "\n{DIM}{:>15}  {:>15}  {title}{DIM:#}", "A", "B");
    let number = |line: Option<u32>| line.map_or("–".to_owned(), |line| line.to_string());
    for line in code.lines.iter().take(LINES) {
        let place = match line.number {
            (Some(a), Some(b)) if a == b => format!("{}:{a}", line.file),
            (a, b) => format!("{}:{} → {}", line.file, number(a), number(b)),
        };
        let (a, b) = (row_words::count(line.executed.0 as f64), row_words::count(line.executed.1 as f64));
        let row = format!("{a:>15}  {b:>15}  {}  {}", plain(&place), plain(&line.text));
        let _ = writeln!(out, "{}", fit(&row, width).trim_end());
    }
    more(code.lines.len(), LINES, "lines", out);
}

fn instructions(code: &CodeView, width: usize, out: &mut String) {
    if code.instructions.is_empty() {
        return;
    }
    let title = format!("machine code of {}", plain(&code.function));
    let _ = writeln!(out, "\n{DIM}{:>15}  {:>15}  {title}{DIM:#}", "A", "B");
    for one in code.instructions.iter().take(INSTRUCTIONS) {
        let count = |value: u64, gone: char| match one.mark == gone {
            true => String::new(),
            false => row_words::count(value as f64),
        };
        let (a, b) = (count(one.executed.0, '+'), count(one.executed.1, '-'));
        let row = format!("{a:>15}  {b:>15}  {} +{:<#6x} {}", one.mark, one.place, plain(&one.text));
        let _ = writeln!(out, "{}", fit(&row, width).trim_end());
    }
    more(code.instructions.len(), INSTRUCTIONS, "instructions", out);
}

fn core(code: &CodeView, width: usize, out: &mut String) {
    if code.core.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{DIM}optimised Core of {}{DIM:#}", plain(&code.function));
    for line in code.core.iter().take(INSTRUCTIONS) {
        let _ = writeln!(out, "{}", fit(&format!("{} {}", line.mark, plain(&line.text)), width).trim_end());
    }
    more(code.core.len(), INSTRUCTIONS, "lines", out);
}

/// Writes which types of closures differ.
fn closures(found: &Findings, rows: usize, width: usize, out: &mut String) {
    if found.closures.is_empty() {
        return;
    }
    let _ =
        writeln!(out, "\n{DIM}{:>15}  {:>15}  type of closures in Haskell’s heap{DIM:#}", "bytes", "number");
    for one in found.closures.iter().take(rows) {
        let [bytes, number] = row_words::closures(one);
        let _ = writeln!(
            out,
            "{}",
            fit(&format!("{bytes:>15}  {number:>15}  {}", plain(&one.name)), width).trim_end()
        );
    }
    more(found.closures.len(), rows, "types", out);
}

fn more(all: usize, shown: usize, what: &str, out: &mut String) {
    if all > shown {
        let _ = writeln!(out, "{DIM}{:>34} {} more {what} in --json{DIM:#}", "", all - shown);
    }
}

fn table(found: &Findings, explanation: &Explanation, rows: usize, width: usize, out: &mut String) {
    let shown: Vec<&FunctionDifference> = found.shown_rows(explanation).take(rows).collect();
    let least = least_shown(explanation);
    let varies = |row: &&FunctionDifference| row.is_within_spread() && row.delta.abs() >= least;
    let grey: Vec<&FunctionDifference> = explanation.rows.iter().filter(varies).take(GREY).collect();
    if shown.is_empty() && grey.is_empty() {
        return;
    }
    let delta = explanation.delta();
    let _ = writeln!(out, "\n{DIM}{:>15}  {:>7}  {:<7}  function{DIM:#}", "difference", "share", "code");
    let line = |row: &FunctionDifference| {
        let part = explanation.share_of(row).map_or(String::new(), share);
        format!(
            "{:>15}  {}  {:<7}  {}",
            row_words::signed(row.delta),
            right(&part, 7),
            row_words::code(row),
            row_words::function(row)
        )
    };
    for row in &shown {
        let _ = writeln!(out, "{}", fit(&line(row), width).trim_end());
        for part in shown_parts(row) {
            let clause = format!("{}: {}", row_words::signed(part.delta), row_words::clause(row, &part));
            for line in wrap(&clause, width.saturating_sub(INDENT)).lines() {
                let _ = writeln!(out, "{DIM}{:INDENT$}{}{DIM:#}", "", fit(line, width).trim_end());
            }
        }
        if let Some(hunk) = found.hunk_of(explanation, row) {
            let place = format!("changed at {}", hunk.places_in_context());
            for line in wrap(&place, width.saturating_sub(INDENT)).lines() {
                let _ = writeln!(out, "{DIM}{:INDENT$}{line}{DIM:#}", "");
            }
        }
    }
    for row in &grey {
        let _ = writeln!(out, "{DIM}{} (varies by up to {}){DIM:#}", line(row), row_words::count(row.spread));
    }
    let sum: f64 = shown.iter().chain(&grey).map(|row| row.delta.round()).sum();
    let others = explanation
        .rows
        .iter()
        .filter(|row| row.delta.abs() >= 0.5)
        .count()
        .saturating_sub(shown.len() + grey.len());
    let rest = delta.round() - sum;
    if others > 0 || rest != 0.0 {
        let name = counted(others, "other function");
        let _ = writeln!(out, "{DIM}{:>15}  {:>7}  {:<7}  {name}{DIM:#}", row_words::signed(rest), "", "");
    }
    let _ = writeln!(out, "{DIM}{:>15}  {:>7}  {:<7}  together{DIM:#}", row_words::signed(delta), "", "");
}
