//! Reports the instructions of a request by file and by function, with the callees of each function.

use crate::render::align::{fit, right};
use crate::render::colours::{BOLD, DIM};
use scruple_core::per_request::Bounds;
use scruple_core::unit::{Unit, grouped, quantity, share};
use scruple_measure::load::cost::instructions::{FunctionCost, RequestInstructions};
use scruple_stats::sorting::{self, SortedMap};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Functions with less than this share of all instructions are left out.
const LEAST: f64 = 0.01;

/// The largest number of functions that are shown.
const MOST: usize = 30;

/// Writes the tables.
pub(super) fn text(found: &RequestInstructions, width: usize, out: &mut String) {
    let batches: u64 = found.batches.iter().sum();
    let _ = writeln!(
        out,
        "\n  {BOLD}Instructions of a request{BOLD:#}: {}{} ({} requests, by {}; user space only)",
        grouped(found.total.value),
        interval(&found.total),
        grouped(batches as f64),
        found.by
    );
    let part = |value: f64| if found.total.value > 0.0 { value / found.total.value } else { 0.0 };
    let files: Vec<String> = by_file(found)
        .into_iter()
        .filter(|(_, own)| part(*own) >= LEAST)
        .map(|(file, own)| format!("{file} {}", share(part(own))))
        .collect();
    let _ = writeln!(out, "    by file: {}", files.join(", "));
    functions(found, &part, width, out);
}

/// Returns the instructions of the functions of each file, the largest first.
pub(super) fn by_file(found: &RequestInstructions) -> Vec<(String, f64)> {
    let mut files: SortedMap<&str, f64> = SortedMap::new();
    for cost in &found.functions {
        *files.entry(&cost.function.object).or_default() += cost.own.value;
    }
    let mut files: Vec<(String, f64)> = files.into_iter().map(|(path, own)| (file(path), own)).collect();
    sorting::by(&mut files, |left, right| right.1.total_cmp(&left.1));
    files
}

/// Returns the name of a file without its folders.
pub(super) fn file(path: &str) -> String {
    match path.rsplit('/').next() {
        Some(file) if !file.is_empty() => file.to_owned(),
        _ => "no file".to_owned(),
    }
}

/// Returns the name of a function for tables. Code outside of any function has no name.
pub(super) fn name(cost: &FunctionCost) -> &str {
    if cost.function.name.is_empty() { "(outside of any function)" } else { &cost.function.name }
}

fn functions(found: &RequestInstructions, part: &dyn Fn(f64) -> f64, width: usize, out: &mut String) {
    let mut shown: Vec<&FunctionCost> = found
        .functions
        .iter()
        .filter(|cost| part(cost.own.value) >= LEAST || part(cost.inclusive.value) >= LEAST)
        .collect();
    sorting::by(&mut shown, |left, right| right.inclusive.value.total_cmp(&left.inclusive.value));
    // Outer functions that contain nearly all instructions are left out, since they do not distinguish requests.
    let around = |cost: &&FunctionCost| part(cost.inclusive.value) > 0.995 && part(cost.own.value) < LEAST;
    shown.retain(|cost| !around(cost));
    let left = found.functions.len() - shown.len().min(MOST);
    shown.truncate(MOST);
    let rows: Vec<[String; 6]> = shown
        .iter()
        .map(|cost| {
            [
                share(part(cost.inclusive.value)),
                grouped(cost.inclusive.value),
                grouped(cost.own.value),
                quantity(cost.calls, &Unit::Count),
                file(&cost.function.object),
                format!("{}{}", name(cost), interval(&cost.inclusive)),
            ]
        })
        .collect();
    let heads = ["", "with callees", "own", "calls", "file", "function"].map(str::to_owned);
    let widths: Vec<usize> = (0..5)
        .map(|column| rows.iter().chain([&heads]).map(|row| row[column].width()).max().unwrap_or(0))
        .collect();
    let file_width = widths[4].min(22);
    let before = widths[..4].iter().sum::<usize>() + file_width + 2 * 5 + 4;
    let room = width.saturating_sub(before).max(20);
    for (index, row) in [&heads].into_iter().chain(&rows).enumerate() {
        let mut line = String::from("    ");
        for column in 0..4 {
            let _ = write!(line, "{}  ", right(&row[column], widths[column]));
        }
        let function = if row[5].width() > room { fit(&row[5], room) } else { row[5].clone() };
        let _ = write!(line, "{}  {function}", fit(&row[4], file_width));
        let line = line.trim_end();
        let _ = if index == 0 { writeln!(out, "{DIM}{line}{DIM:#}") } else { writeln!(out, "{line}") };
    }
    if left > 0 {
        let _ =
            writeln!(out, "    {DIM}{left} other functions: each less than 1 %, or around all of it{DIM:#}");
    }
}

/// Writes the interval if counts differ between batches.
fn interval(bounds: &Bounds) -> String {
    let varies = |low: f64, high: f64| high - low > 0.002 * bounds.value.abs();
    match bounds.interval {
        Some(interval) if varies(interval.low, interval.high) => {
            format!(" [{}, {}]", grouped(interval.low.max(0.0)), grouped(interval.high))
        }
        _ => String::new(),
    }
}
