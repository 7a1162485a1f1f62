//! Writes the cost of a request: the rows of the cost sheet, the functions, the system calls, the growth of memory.

use super::instructions;
use super::pace::pace;
use crate::load::windows::ServerResults;
use crate::render::align::{fit, on_points, right, wrap};
use crate::render::colours::{BAD, BOLD, DIM};
use crate::run_report::sentence;
use scruple_core::per_request::{Bounds, PerRequest};
use scruple_core::sample::Reading;
use scruple_core::unit::{Unit, grouped, quantity, share};
use scruple_measure::load::Plan;
use scruple_measure::load::cost::collections::{Collections, NoRuntimeFigures, Pauses};
use scruple_measure::load::cost::cost_row::CostRow;
use scruple_measure::load::cost::memory_growth::GrowthPerRequest;
use scruple_measure::load::cost::sampled::SampledTime;
use scruple_stats::sorting::{self, SortedMap};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Functions with a smaller share than this are summed up.
const LEAST: f64 = 0.01;

/// The largest number of functions that are shown.
const MOST: usize = 15;

/// Writes all known costs of a server.
pub(crate) fn text(server: &ServerResults, plan: &Plan, width: usize, out: &mut String) {
    let rate = match plan.rate() {
        Some(_) => pace(plan),
        None if server.pool.counts.answered == 0 => "closed loop, every request failed".to_owned(),
        None => format!("closed loop, {}/s", grouped(server.pool.rate())),
    };
    let heap = server.heap.as_ref().and_then(|heap| heap.as_ref().ok());
    let rows: Vec<&CostRow> = server
        .sheet
        .iter()
        .chain(heap)
        .flat_map(|sheet| &sheet.rows)
        .filter(|row| !is_nothing(row))
        .collect();
    if !rows.is_empty() {
        let void = match server.costs_of_void_windows() {
            Some(_) => format!(" · {BAD}{} of {} windows are VOID{BAD:#}", server.void, server.pool.windows),
            None => String::new(),
        };
        let _ = writeln!(out, "\n  {BOLD}Cost of a request{BOLD:#} ({rate}){void}");
        sheet(&rows, width, out);
    }
    if let Some(Err(why)) = &server.heap {
        note(&format!("allocations: absent, because {why}"), width, out);
    }
    match &server.runtime {
        // A server without a known language runtime is the usual case.
        Some(Err(NoRuntimeFigures::NoRuntime(_))) | None => {}
        Some(Err(NoRuntimeFigures::Failed(why))) => {
            note(&format!("the language runtime’s own count: absent, because {why}"), width, out);
        }
        Some(Ok(figures)) => runtime(figures, width, out),
    }
    for growth in server.sheet.iter().flat_map(|sheet| &sheet.growth) {
        let style = if growth.is_leak() { BAD } else { DIM };
        if let Some(line) = grown(growth) {
            let _ = writeln!(out, "    {style}{line}{style:#}");
        }
    }
    match &server.instructions {
        Some(Err(why)) => note(&format!("instructions: absent, because {why}"), width, out),
        Some(Ok(found)) => instructions::text(found, width, out),
        None => {}
    }
    match &server.sampled {
        Some(Err(why)) => note(&format!("sampled time: absent, because {why}"), width, out),
        Some(Ok(found)) => sampled_time(found, width, out),
        None => {}
    }
    match &server.syscalls {
        Some(Err(why)) => note(&format!("system calls: absent, because {why}"), width, out),
        Some(Ok(calls)) => system_calls(calls, width, out),
        None => {}
    }
}

/// Writes the time of a request by function.
fn sampled_time(found: &SampledTime, width: usize, out: &mut String) {
    let ns = |value: f64| quantity(value, &Unit::Nanoseconds);
    let _ = writeln!(
        out,
        "\n  {BOLD}Time of a request{BOLD:#}: ~{}, {} of it in the kernel ({} samples)",
        ns(found.total),
        share(found.kernel / found.total.max(f64::MIN_POSITIVE)),
        grouped(found.samples as f64)
    );
    let lines = found.functions.iter().map(|time| {
        let (low, high) = (time.interval.low, time.interval.high);
        let all = format!("{} [{}, {}] with what it calls", ns(time.inclusive), ns(low), ns(high));
        FunctionLine { own: time.own, figures: [ns(time.own), all], name: time.name.clone() }
    });
    functions(lines.collect(), found.total, width, out);
    note("on loopback the kernel charges part of the client’s receiving to the server", width, out);
}

/// Writes the number of system calls of a request, and the most frequent ones.
fn system_calls(calls: &SortedMap<String, f64>, width: usize, out: &mut String) {
    let total: f64 = calls.values().sum();
    let mut each: Vec<(&String, &f64)> = calls.iter().filter(|(_, count)| **count >= LEAST).collect();
    sorting::by(&mut each, |left, right| right.1.total_cmp(left.1));
    let each = each.into_iter().map(|(name, count)| format!("{name} {}", quantity(*count, &Unit::Count)));
    let each = wrap(&each.collect::<Vec<_>>().join(", "), width.saturating_sub(4));
    let _ = writeln!(out, "\n  {BOLD}System calls of a request{BOLD:#}: {}", quantity(total, &Unit::Count));
    let _ = writeln!(out, "    {}", each.replace('\n', "\n    "));
}

/// Says how a kind of memory grew, if it did.
pub(super) fn grown(growth: &GrowthPerRequest) -> Option<String> {
    if growth.per_thousand.value.abs() < 1.0 && !growth.is_leak() {
        return None;
    }
    Some(format!(
        "memory, {}: {} per 1,000 requests{}{}",
        growth.of,
        quantity(growth.per_thousand.value, &Unit::Bytes),
        interval(&growth.per_thousand, &Unit::Bytes),
        if growth.is_leak() { ", and goes on" } else { "" }
    ))
}

/// Writes what the language runtime reports about a request.
fn runtime(figures: &Collections, width: usize, out: &mut String) {
    let wrapped = |line: &str| wrap(line, width.saturating_sub(4)).replace('\n', "\n    ");
    let _ = writeln!(out, "    {}", wrapped(&counted(&figures.each)));
    match &figures.pauses {
        Err(why) => note(&format!("pauses: absent, because {why}"), width, out),
        Ok(pauses) if pauses.count == 0 => {}
        Ok(pauses) => _ = writeln!(out, "    {}", wrapped(&paused(pauses))),
    }
}

/// Writes the counts of the language runtime as a sentence.
pub(super) fn counted(figures: &[Reading]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for reading in figures.iter().filter(|reading| matches!(reading.key.as_str(), "alloc.bytes" | "gc.time"))
    {
        let text = match reading.value {
            // The same requests allocate the same, but how long a collection takes varies.
            Ok(value) if value > 0.0 && reading.key == "gc.time" => {
                format!(
                    "{} (of two runs of the server, so without an interval)",
                    quantity(value, &reading.unit)
                )
            }
            Ok(value) if value > 0.0 => quantity(value, &reading.unit),
            _ => "below resolution".to_owned(),
        };
        parts.push(format!("{} {text}", title(&reading.key)));
    }
    match figures.iter().find(|reading| reading.key == "gc.count").map(|reading| &reading.value) {
        Some(Ok(each)) if *each > 0.0 => {
            parts.push(format!("a collection every {} requests", grouped(1.0 / each)))
        }
        Some(_) => parts.push("no collection".to_owned()),
        None => {}
    }
    let source = figures.first().map_or("", |reading| reading.source.as_str());
    format!("by the language runtime’s own count ({source}): {}", parts.join(", "))
}

/// Writes the pauses for collections, and how many slow requests coincided with one.
pub(super) fn paused(pauses: &Pauses) -> String {
    let time = |ns: u64| quantity(ns as f64, &Unit::Nanoseconds);
    let met = match pauses.met {
        Some(met) => format!(
            "{} of {} slow requests (above p99, {}) met one",
            grouped(met as f64),
            grouped(pauses.slow as f64),
            time(pauses.limit)
        ),
        None => "the server fell behind, so slow requests waited in its backlog".to_owned(),
    };
    format!(
        "pauses for collections: {} in {} requests, {} on average and {} at most, {} of the time; {met}",
        grouped(pauses.count as f64),
        grouped(pauses.requests as f64),
        time(pauses.total / pauses.count.max(1) as u64),
        time(pauses.longest),
        share(pauses.total as f64 / pauses.span.max(1) as f64),
    )
}

/// Returns the cost of a request. If it is below resolution, that is its upper end.
pub(super) fn cost_of_each(row: &CostRow, cost: &PerRequest) -> String {
    match cost.below_resolution() {
        Some(most) => format!("< {}", quantity(most, &row.unit)),
        None => quantity(cost.each.value, &row.unit),
    }
}

/// Whether a counter never changed, so that a request has no cost in it.
pub(super) fn is_nothing(row: &CostRow) -> bool {
    row.cost.as_ref().is_ok_and(|cost| cost.each.value == 0.0 && cost.fixed.value == 0.0)
}

fn sheet(rows: &[&CostRow], width: usize, out: &mut String) {
    let (mut known, mut absent) = (Vec::new(), Vec::new());
    for row in rows {
        match &row.cost {
            Ok(cost) => known.push((row, title(&row.key), cost)),
            Err(why) => absent.push((title(&row.key), why.as_str())),
        }
    }
    let name = known.iter().map(|(_, title, _)| title.width()).max().unwrap_or(0);
    let mut cells: Vec<String> = known.iter().map(|(row, _, cost)| cost_of_each(row, cost)).collect();
    on_points(&mut cells);
    for ((row, title, cost), cell) in known.iter().zip(cells) {
        let _ = writeln!(out, "    {}  {cell}  {DIM}{}{DIM:#}", fit(title, name), details(row, cost));
    }
    for line in sentence::absences(absent) {
        note(&line, width, out);
    }
}

fn details(row: &CostRow, cost: &PerRequest) -> String {
    let mut parts = vec![match cost.below_resolution() {
        Some(_) => "below resolution".to_owned(),
        None => interval(&cost.each, &row.unit).trim_start().to_owned(),
    }];
    if cost.fixed.is_certain() && cost.fixed.value > 0.0 {
        parts.push(format!("and {} per window", quantity(cost.fixed.value, &row.unit)));
    }
    if row.idle > 0.0 {
        parts.push(format!("idle {}/s taken off", quantity(row.idle, &row.unit)));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

pub(super) fn interval(bounds: &Bounds, unit: &Unit) -> String {
    bounds.interval.map_or(String::new(), |interval| {
        format!(" [{}, {}]", quantity(interval.low, unit), quantity(interval.high, unit))
    })
}

/// Returns the column heading for a counter that is divided by the number of requests.
pub(crate) fn title(key: &str) -> &str {
    let of_a_request = format!("request.{}", key.strip_prefix("time.").unwrap_or(key));
    match scruple_core::metric::metric(&of_a_request).map(|metric| &metric.title) {
        Some(std::borrow::Cow::Borrowed(title)) => title.strip_suffix(" / request").unwrap_or(title),
        _ => key,
    }
}

/// A row of the list of functions, with formatted costs.
struct FunctionLine {
    own: f64,
    figures: [String; 2],
    name: String,
}

/// Writes functions with their shares, the largest first. Small ones are summed up.
fn functions(lines: Vec<FunctionLine>, total: f64, width: usize, out: &mut String) {
    let part = |own: f64| if total > 0.0 { own / total } else { 0.0 };
    let shown = lines.iter().take(MOST).take_while(|line| part(line.own) >= LEAST).count();
    let widest =
        |column: usize| lines[..shown].iter().map(|line| line.figures[column].width()).max().unwrap_or(0);
    let widths = [widest(0), widest(1)];
    let room = width.saturating_sub(widths[0] + widths[1] + 16).max(20);
    for line in &lines[..shown] {
        let [own, more] = &line.figures;
        let name = if line.name.width() > room { fit(&line.name, room) } else { line.name.clone() };
        let share = right(&share(part(line.own)), 6);
        let _ = writeln!(out, "    {share}  {}  {}  {name}", right(own, widths[0]), right(more, widths[1]));
    }
    let rest: f64 = lines[shown..].iter().map(|line| line.own).sum();
    if lines.len() > shown {
        let share = right(&share(part(rest)), 6);
        let _ = writeln!(out, "    {share}  {DIM}{} other functions{DIM:#}", lines.len() - shown);
    }
}

fn note(text: &str, width: usize, out: &mut String) {
    let _ = writeln!(out, "    {DIM}{}{DIM:#}", wrap(text, width.saturating_sub(4)).replace('\n', "\n    "));
}
