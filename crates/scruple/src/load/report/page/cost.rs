//! The costs of a request as a table that can be sorted, and sentences about them.

use super::super::memory_map;
use super::super::sheet::{cost_of_each, counted, grown, interval, is_nothing, paused, title};
use super::of_server;
use crate::load::windows::{Loads, ServerResults};
use crate::render::page::{
    Cell, ColumnHeading, Fold, Section, SectionPart, SortOrder, Table, Tone, harmless_name, harmless_sentence,
};
use scruple_core::unit::{change, quantity};
use scruple_measure::load::cost::collections::NoRuntimeFigures;
use scruple_measure::load::cost::cost_row::CostRow;
use scruple_stats::sorting;

/// Makes the section, or returns `None` if no server's costs are known.
pub(super) fn section(loads: &Loads) -> Option<Section> {
    let mut parts: Vec<SectionPart> = table(loads)
        .into_iter()
        .flat_map(|table| [SectionPart::Table(table), apart_from_windows()])
        .collect();
    for server in &loads.servers {
        let lines: Vec<String> = remarks(server)
            .into_iter()
            .map(|line| match loads.servers.len() {
                1 => harmless_sentence(&line),
                _ => harmless_sentence(&format!("{}: {line}", harmless_name(&server.name))),
            })
            .collect();
        parts.extend(Some(SectionPart::List(lines.clone())).filter(|_| !lines.is_empty()));
    }
    for server in &loads.servers {
        let map = server
            .sheet
            .as_ref()
            .and_then(|sheet| memory_map::table(&harmless_name(&server.name), &sheet.maps));
        parts.extend(map.map(|table| {
            let summary = of_server(loads, server, "Memory map before and after");
            SectionPart::Fold(Fold { summary, parts: vec![SectionPart::Table(table)] })
        }));
    }
    let title = "Cost of a request".to_owned();
    (!parts.is_empty()).then_some(Section { title, folded: None, parts })
}

/// Explains why a cost differs from the metric of the same counter.
fn apart_from_windows() -> SectionPart {
    SectionPart::Note(
        "A row is the cost of one more request, without what a window costs by itself and what an idle server costs. \
         Metrics such as cpu / request divide all costs of a window by its requests."
            .to_owned(),
    )
}

fn rows(server: &ServerResults) -> Vec<&CostRow> {
    let heap = server.heap.as_ref().and_then(|heap| heap.as_ref().ok());
    server.sheet.iter().chain(heap).flat_map(|sheet| &sheet.rows).filter(|row| !is_nothing(row)).collect()
}

/// Returns the cost per request of a counter for each server, or `None` if it is not known.
fn each(servers: &[Vec<&CostRow>], key: &str) -> Vec<Option<f64>> {
    let value = |rows: &Vec<&CostRow>| {
        rows.iter().find(|row| row.key == key).and_then(|row| Some(row.cost.as_ref().ok()?.each.value))
    };
    servers.iter().map(value).collect()
}

fn table(loads: &Loads) -> Option<Table> {
    let servers: Vec<Vec<&CostRow>> = loads.servers.iter().map(rows).collect();
    let keys = sorting::each_once(servers.iter().flatten().map(|row| row.key.as_str()));
    if keys.is_empty() {
        return None;
    }
    let several = servers.len() > 1;
    let mut head = vec![ColumnHeading::text("Per request")];
    for server in &loads.servers {
        let place = several.then(|| loads.servers.iter().position(|one| one.name == server.name)).flatten();
        let text = if several { harmless_name(&server.name) } else { "costs".to_owned() };
        head.push(ColumnHeading { arm: place, ..ColumnHeading::number(text) });
        head.push(ColumnHeading::number("interval"));
        if !several {
            head.extend([
                ColumnHeading::number("window by itself"),
                ColumnHeading::number("idle, per second"),
            ]);
        }
    }
    let ratio = |key: &str| match each(&servers, key).as_slice() {
        [Some(first), Some(second), ..] if *first > 0.0 && *second > 0.0 => Some(second / first),
        _ => None,
    };
    head.extend(several.then(|| ColumnHeading::number("change")));
    head.push(ColumnHeading::text("source"));
    let line = |key: &&str| {
        let mut cells = vec![Cell::text(title(key))];
        for rows in &servers {
            cells.extend(of_row(rows.iter().find(|row| row.key == *key).copied(), several));
        }
        cells.extend(several.then(|| Cell::text(ratio(key).map_or("–".to_owned(), change))));
        let source = servers.iter().flatten().find(|row| row.key == *key).map(|row| row.source.as_str());
        cells.push(Cell::text(harmless_sentence(source.unwrap_or_default())));
        cells
    };
    let lines = keys.iter().map(line).collect();
    let known =
        |key: &&str| Some(servers.iter().flatten().find(|row| row.key == **key)?.cost.as_ref().ok()?.each);
    let width = |key: &&str| {
        let each = known(key)?;
        let interval = each.interval.filter(|_| each.value > 0.0)?;
        Some((interval.high - interval.low) / each.value)
    };
    let titles: Vec<&str> = keys.iter().map(|key| title(key)).collect();
    let mut orders = vec![SortOrder::given("as read", keys.len()), SortOrder::by("name", &titles, Ord::cmp)];
    if several {
        let ratios: Vec<Option<f64>> =
            keys.iter().map(|key| ratio(key).map(|ratio| ratio.ln().abs())).collect();
        orders.push(SortOrder::greatest("difference", &ratios));
    }
    let widths: Vec<Option<f64>> = keys.iter().map(|key| width(key).map(|width| -width)).collect();
    orders.push(SortOrder::greatest("precision", &widths));
    let label = "What a request costs".to_owned();
    Some(Table { label, head, rows: lines, orders, ..Table::default() })
}

/// Returns the cells of one server.
fn of_row(row: Option<&CostRow>, several: bool) -> Vec<Cell> {
    let more = if several { 0 } else { 2 };
    let Some(row) = row else { return vec![Cell::text("–"); 2 + more] };
    let mut cells = match &row.cost {
        Ok(cost) => {
            let value = Cell::text(cost_of_each(row, cost));
            let ends = Cell::text(interval(&cost.each, &row.unit).trim());
            let window = match cost.fixed.is_certain() && cost.fixed.value > 0.0 {
                true => quantity(cost.fixed.value, &row.unit),
                false => String::new(),
            };
            vec![value, ends, Cell::text(window)]
        }
        Err(why) => {
            vec![Cell::toned("absent", Tone::Open), Cell::text(harmless_sentence(why)), Cell::text("")]
        }
    };
    cells.truncate(if several { 2 } else { 3 });
    if !several {
        cells.push(Cell::text(if row.idle > 0.0 { quantity(row.idle, &row.unit) } else { String::new() }));
    }
    cells
}

/// Returns sentences about a server: its memory, its language runtime, and which figures are absent for which reason.
fn remarks(server: &ServerResults) -> Vec<String> {
    let growths = server.sheet.iter().flat_map(|sheet| &sheet.growth).filter_map(grown);
    let mut lines: Vec<String> = server.costs_of_void_windows().into_iter().chain(growths).collect();
    if let Some(Err(why)) = &server.heap {
        lines.push(format!("allocations: absent, because {why}"));
    }
    match &server.runtime {
        Some(Ok(figures)) => {
            lines.push(counted(&figures.each));
            match &figures.pauses {
                Ok(pauses) if pauses.count > 0 => lines.push(paused(pauses)),
                Ok(_) => {}
                Err(why) => lines.push(format!("pauses: absent, because {why}")),
            }
        }
        Some(Err(NoRuntimeFigures::Failed(why))) => {
            lines.push(format!("the language runtime’s own count: absent, because {why}"));
        }
        // A server without a known language runtime is the usual case.
        Some(Err(NoRuntimeFigures::NoRuntime(_))) | None => {}
    }
    for (what, absent) in [
        ("instructions", server.instructions.as_ref().and_then(|found| found.as_ref().err())),
        ("sampled time", server.sampled.as_ref().and_then(|found| found.as_ref().err())),
        ("system calls", server.syscalls.as_ref().and_then(|found| found.as_ref().err())),
    ] {
        lines.extend(absent.map(|why| format!("{what}: absent, because {why}")));
    }
    lines
}
