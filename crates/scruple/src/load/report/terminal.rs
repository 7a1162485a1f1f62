//! Reports a load on a terminal: distributions, failures, the generator, the cost of a request.

use super::pace::pace;
use super::{memory_map, search, sheet};
use crate::load::windows::{ExcludedPart, Loads, Pool, ServerResults, Slice};
use crate::progress::in_words;
use crate::render::align::{fit, on_points, right, wrap};
use crate::render::block_characters;
use crate::render::colours::{BAD, BOLD, DIM, GOOD, OPEN};
use crate::run_report::{Report, terminal};
use scruple_core::plural::{self, noun};
use scruple_core::unit::{Unit, grouped, quantity, share};
use scruple_measure::load::{Latencies, Plan, RowOf, Stall};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The quantiles that have columns in tables.
pub(crate) const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("longest", 1.0)];

/// The width of the picture of a course, in columns.
const COURSE: usize = 60;

/// Writes the report for a terminal with this many columns.
pub(crate) fn text(report: &Report<'_>, loads: &Loads, width: usize) -> String {
    if let Some(sought) = &loads.capacity {
        return search::text(report, loads, sought, width);
    }
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", wrap(&header(report, loads), width));
    let rows: Vec<(String, Latencies)> = loads
        .servers
        .iter()
        .flat_map(|server| {
            let of = |what: &str| match loads.servers.len() {
                1 => what.to_owned(),
                _ => format!("{} {what}", server.name),
            };
            let pool = &server.pool;
            let counted = [
                ("response", &pool.times.response),
                ("service", &pool.times.service),
                ("lag", &pool.times.lag),
            ]
            .map(|(what, latencies)| (of(what), latencies.clone()));
            let rows = pool.rows.iter().filter(|_| pool.rows.len() > 1);
            let rows = rows.map(move |(name, kind, response)| (of(&row_name(name, *kind)), response.clone()));
            let aside = pool
                .aside
                .iter()
                .map(move |aside| (of(&row_of_separate_parts(aside)), aside.response.clone()));
            counted.into_iter().chain(rows).chain(aside).collect::<Vec<_>>()
        })
        .filter(|(_, latencies)| latencies.count() > 0)
        .collect();
    table(&rows, &mut out);
    for (index, server) in loads.servers.iter().enumerate() {
        if index > 0 || !rows.is_empty() {
            out.push('\n');
        }
        one(server, loads, width, &mut out);
    }
    out.push('\n');
    match loads.servers.len() {
        1 => terminal::remarks(report, width, &mut out),
        _ => out.push_str(&terminal::body(report, width)),
    }
    out
}

/// Returns the name of the row for a request, a group or a session.
pub(crate) fn row_name(name: &str, of: RowOf) -> String {
    match of {
        RowOf::Request => name.to_owned(),
        RowOf::Group => format!("group {name}"),
        RowOf::Session => format!("session {name}"),
    }
}

/// Returns the name of the row for parts that are set apart.
fn row_of_separate_parts(aside: &ExcludedPart) -> String {
    format!("response, {} of {}", aside.why, quantity(aside.span as f64, &Unit::Nanoseconds))
}

fn connections(plan: &Plan) -> String {
    plural::grouped(u64::from(plan.connections), "connection")
}

fn header(report: &Report<'_>, loads: &Loads) -> String {
    let name = match loads.servers.as_slice() {
        [server] => server.name.clone(),
        several => format!(
            "{} servers in turn, {} turns of {} each",
            several.len(),
            loads.division.turns,
            in_words(loads.division.turn(&loads.plan))
        ),
    };
    let span = loads.servers.iter().map(|server| server.pool.span).max().unwrap_or(0);
    let state = match report.run.state {
        scruple_core::run::RunState::Complete => String::new(),
        state => format!(" · {}: these are the figures so far", state.word()),
    };
    format!(
        "{name} · {}, {} · {}, {} · seed {}{state}",
        pace(&loads.plan),
        connections(&loads.plan),
        windows(&loads.servers),
        quantity(span as f64, &Unit::Nanoseconds),
        report.run.seed
    )
}

/// Writes how many of the windows count, separately for each server if the numbers differ.
fn windows(servers: &[ServerResults]) -> String {
    let of = |server: &ServerResults| match (shown(server), server.pool.windows) {
        (1, 1) => "1 window".to_owned(),
        (counted, all) if counted < all => format!("{counted} of {all} windows"),
        (_, all) => format!("{all} windows"),
    };
    match servers {
        [] => "0 windows".to_owned(),
        [first, others @ ..] if others.iter().all(|other| of(other) == of(first)) => of(first),
        several => {
            let each = several.iter().map(|server| format!("{} of ‘{}’", of(server), server.name));
            each.collect::<Vec<_>>().join(" and ")
        }
    }
}

/// Returns the number of windows whose latencies are shown.
fn shown(server: &ServerResults) -> usize {
    match server.pool.windows - server.void {
        0 => server.pool.windows,
        good => good,
    }
}

/// The quantiles that are shown only if there are enough requests for them.
const RARE: [(&str, f64); 2] = [("p99.99", 0.9999), ("p99.999", 0.99999)];

/// The smallest number of requests beyond a quantile for which it is shown.
const BEYOND: f64 = 10.0;

/// Whether there are enough requests for a quantile.
pub(crate) fn known(latencies: &Latencies, q: f64) -> bool {
    !RARE.iter().any(|(_, rare)| *rare == q) || latencies.count() as f64 * (1.0 - q) >= BEYOND * 0.999
}

/// Returns the columns of a table. They contain a rare quantile if any row has enough requests for it.
fn quantiles(rows: &[(String, Latencies)]) -> Vec<(&'static str, f64)> {
    let [common @ .., longest] = QUANTILES;
    let rare = RARE.into_iter().filter(|(_, q)| rows.iter().any(|(_, latencies)| known(latencies, *q)));
    common.into_iter().chain(rare).chain([longest]).collect()
}

/// Writes distributions with one row each, aligned on their decimal points.
fn table(rows: &[(String, Latencies)], out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let name = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (title, q) in quantiles(rows) {
        let value = |latencies: &Latencies| {
            latencies
                .quantile(q)
                .filter(|_| known(latencies, q))
                .map_or(String::new(), |ns| quantity(ns as f64, &Unit::Nanoseconds))
        };
        let mut cells: Vec<String> = rows.iter().map(|(_, latencies)| value(latencies)).collect();
        on_points(&mut cells);
        let widest = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(title.width());
        let mut column = vec![right(title, widest)];
        column.extend(cells.iter().map(|cell| right(cell, widest)));
        columns.push(column);
    }
    for line in 0..=rows.len() {
        let label = if line == 0 { "" } else { &rows[line - 1].0 };
        let cells: Vec<&str> = columns.iter().map(|column| column[line].as_str()).collect();
        let text = format!("  {}  {}", fit(label, name), cells.join("  "));
        let style = if line == 0 { DIM } else { anstyle::Style::new() };
        let _ = writeln!(out, "{style}{}{style:#}", text.trim_end());
    }
}

/// Writes lines about one server in addition to its distribution.
fn one(server: &ServerResults, loads: &Loads, width: usize, out: &mut String) {
    if loads.servers.len() > 1 {
        let _ = writeln!(out, "{BOLD}{}{BOLD:#}", server.name);
    }
    let void = server.void > 0 && server.void == server.pool.windows;
    answers(&server.pool, &loads.plan, void, width, out);
    kinds(&server.pool, out);
    set_apart(&server.pool, width, out);
    // If the generator did not get a core, it saw no answers, which says nothing about the server.
    if !void {
        stalls(server, width, out);
    }
    generator(&server.pool, width, out);
    sheet::text(server, &loads.plan, width, out);
    if let Some(sheet) = server.sheet.as_ref().filter(|_| loads.show_map) {
        memory_map::text(&sheet.maps, out);
    }
}

/// Writes how many requests were answered, how fast, and how many failed in which way.
fn answers(pool: &Pool, plan: &Plan, void: bool, width: usize, out: &mut String) {
    let failed = pool.counts.failures.total();
    let style = if failed > 0 { BAD } else { GOOD };
    let _ = writeln!(
        out,
        "  {} answered, {}{}/s{} · {style}{} failed{style:#}{}{}",
        grouped(pool.counts.answered as f64),
        pool.least_rate().map_or(String::new(), |least| format!("{} to ", grouped(least))),
        grouped(pool.rate()),
        match plan.rate().filter(|_| pool.fell_behind() && plan.scenario.is_none()) {
            Some(due) => format!(" {BAD}of {}/s that were due{BAD:#}", grouped(due)),
            None => String::new(),
        },
        grouped(failed as f64),
        if failed > 0 {
            format!(" ({})", share(failed as f64 / pool.counts.due.max(1) as f64))
        } else {
            String::new()
        },
        if void { format!(" · {BAD}VOID{BAD:#}") } else { String::new() }
    );
    for (class, count) in pool.counts.failures.each() {
        let line = format!("{} ({})", pool.counts.failures.describe(class), class.name());
        let line = wrap(&line, width.saturating_sub(6)).replace('\n', "\n      ");
        let _ = writeln!(out, "    {BAD}{}{BAD:#} {line}", grouped(count as f64));
    }
}

/// Writes a line about each kind of request, if there are several.
fn kinds(pool: &Pool, out: &mut String) {
    for kind in pool.kinds.iter().filter(|_| pool.kinds.len() > 1) {
        let p99 = kind.service.as_ref().and_then(|service| service.quantile(0.99));
        let p99 = p99
            .map_or(String::new(), |ns| format!(", service p99 {}", quantity(ns as f64, &Unit::Nanoseconds)));
        let _ = writeln!(
            out,
            "    {}: {} answered, {} failed{p99}",
            row_name(&kind.name, kind.of),
            grouped(kind.answered as f64),
            grouped(kind.failures.total() as f64)
        );
    }
}

/// Writes what the times of the load do not contain, and why.
fn set_apart(pool: &Pool, width: usize, out: &mut String) {
    for aside in &pool.aside {
        let stall = aside.stall.map_or(String::new(), |stall| {
            format!(", longest stall {}", quantity(stall as f64, &Unit::Nanoseconds))
        });
        let line = format!(
            "set apart as {}: {}, {} answered, {} failed{stall}",
            aside.why,
            quantity(aside.span as f64, &Unit::Nanoseconds),
            grouped(aside.answered as f64),
            grouped(aside.failures.total() as f64)
        );
        let _ =
            writeln!(out, "  {OPEN}{}{OPEN:#}", wrap(&line, width.saturating_sub(2)).replace('\n', "\n  "));
    }
}

/// Writes what the generator itself cost, and how late it was.
fn generator(pool: &Pool, width: usize, out: &mut String) {
    let own = pool.generator;
    let late = match pool.times.lateness.quantile(0.99) {
        Some(ns) => format!(", late by {} at the 99th percentile", quantity(ns as f64, &Unit::Nanoseconds)),
        None => String::new(),
    };
    let line = format!(
        "generator: {} of its {}, {} per request{late}; backlog at most {}",
        share(own.busy()),
        noun(own.threads, "core"),
        quantity((own.user + own.system) as f64 / own.requests.max(1) as f64, &Unit::Nanoseconds),
        grouped(pool.counts.backlog as f64)
    );
    let _ = writeln!(out, "  {DIM}{}{DIM:#}", wrap(&line, width.saturating_sub(2)).replace('\n', "\n  "));
}

/// Writes when the server stalled, for the first few stalls.
fn stalls(server: &ServerResults, width: usize, out: &mut String) {
    let stalls = &server.pool.stalls;
    let length = |stall: &Stall| (stall.to - stall.from).max(0);
    let Some(longest) = stalls.iter().max_by_key(|stall| length(stall)) else { return };
    let time = |ns: i64| quantity(ns as f64, &Unit::Nanoseconds);
    let all: i64 = stalls.iter().map(length).sum();
    let line = format!(
        "stalls: no request was answered although some were due, {}, longest {} at {}, when {} requests waited",
        match stalls.len() {
            1 => "once".to_owned(),
            n => format!("{n} times for {} in all", time(all)),
        },
        time(length(longest)),
        time(longest.from),
        grouped(longest.requests as f64)
    );
    let _ = writeln!(out, "  {OPEN}{}{OPEN:#}", wrap(&line, width.saturating_sub(2)).replace('\n', "\n  "));
    let p99 = |slice: &Slice| Some(((slice.from as f64 + slice.to as f64) / 2.0, slice.max? as f64));
    let values: Vec<(f64, f64)> = server.pool.timeline.iter().filter_map(p99).collect();
    let most = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let course =
        block_characters::course(&values, server.pool.span as f64, most, COURSE.min(width.saturating_sub(4)));
    let _ = writeln!(out, "  {course}");
}
