//! The functions of the server by their own and inclusive costs, and its system calls.

use super::super::instructions::{by_file, file, name as function_name};
use super::super::sheet::interval;
use super::of_server;
use crate::load::windows::Loads;
use crate::render::page::{Cell, ColumnHeading, Section, SectionPart, SortOrder, Table, harmless_name};
use scruple_core::unit::{Unit, grouped, quantity, share};
use scruple_measure::load::cost::instructions::{FunctionCost, RequestInstructions};
use scruple_measure::load::cost::sampled::SampledTime;
use scruple_stats::sorting::{self, SortedMap};

/// The largest number of functions that are shown.
const MOST: usize = 250;

/// Makes the section, or returns `None` if no costs by function are known.
pub(super) fn section(loads: &Loads) -> Option<Section> {
    let mut parts = Vec::new();
    for server in &loads.servers {
        if let Some(Ok(found)) = &server.instructions {
            instructions(found, &of_server(loads, server, "Instructions by function"), &mut parts);
        }
        if let Some(Ok(found)) = &server.sampled {
            sampled(found, &of_server(loads, server, "Time by function"), &mut parts);
        }
        if let Some(Ok(calls)) = &server.syscalls {
            parts.push(SectionPart::Table(system_calls(calls, of_server(loads, server, "System calls"))));
        }
    }
    let title = "Functions".to_owned();
    (!parts.is_empty()).then_some(Section { title, folded: None, parts })
}

/// A row of the table of functions.
struct FunctionRow {
    name: String,
    file: String,
    own: f64,
    inclusive: f64,
    cells: Vec<Cell>,
    calls: Option<f64>,
}

/// Adds a table of the functions with the largest own or inclusive costs, and says how many are left out.
fn table(mut lines: Vec<FunctionRow>, head: &[ColumnHeading], label: &str, parts: &mut Vec<SectionPart>) {
    let all = lines.len();
    sorting::by(&mut lines, |one, other| {
        other.own.max(other.inclusive).total_cmp(&one.own.max(one.inclusive))
    });
    lines.truncate(MOST);
    sorting::by(&mut lines, |one, other| other.own.total_cmp(&one.own));
    let keys = |key: fn(&FunctionRow) -> Option<f64>| lines.iter().map(key).collect::<Vec<_>>();
    let texts = |text: fn(&FunctionRow) -> &str| lines.iter().map(text).collect::<Vec<_>>();
    let mut orders = vec![
        SortOrder::greatest("own", &keys(|line| Some(line.own))),
        SortOrder::greatest("with callees", &keys(|line| Some(line.inclusive))),
    ];
    if lines.iter().any(|line| line.calls.is_some()) {
        orders.push(SortOrder::greatest("calls", &keys(|line| line.calls)));
    }
    orders.push(SortOrder::by("function", &texts(|line| &line.name), Ord::cmp));
    orders.push(SortOrder::by("file", &texts(|line| &line.file), Ord::cmp));
    let shown = lines.len();
    let rows = lines.into_iter().map(|line| {
        let mut cells = vec![Cell::text(harmless_name(&line.name))];
        cells.extend(line.cells);
        cells.push(Cell::text(harmless_name(&line.file)));
        cells
    });
    let label = label.to_owned();
    parts.push(SectionPart::Table(Table {
        label,
        head: head_of(head),
        rows: rows.collect(),
        orders,
        ..Table::default()
    }));
    if shown < all {
        parts.push(SectionPart::Note(format!(
            "{} functions that cost less are left out.",
            grouped((all - shown) as f64)
        )));
    }
}

fn head_of(middle: &[ColumnHeading]) -> Vec<ColumnHeading> {
    let mut head = vec![ColumnHeading::text("Function")];
    head.extend(
        middle.iter().map(|head| ColumnHeading { text: head.text.clone(), ..ColumnHeading::number("") }),
    );
    head.push(ColumnHeading::text("file"));
    head
}

fn part(value: f64, total: f64) -> String {
    if total > 0.0 { share(value / total) } else { "–".to_owned() }
}

fn instructions(found: &RequestInstructions, title: &str, parts: &mut Vec<SectionPart>) {
    let requests: u64 = found.batches.iter().sum();
    let total = found.total.value;
    let files: Vec<String> = by_file(found)
        .into_iter()
        .filter(|(_, own)| *own >= total / 100.0)
        .map(|(file, own)| format!("{} {}", harmless_name(&file), part(own, total)))
        .collect();
    parts.push(SectionPart::Words(format!(
        "{title}: {}{} a request ({} requests, by {}; user space only). By file: {}.",
        grouped(total),
        interval(&found.total, &Unit::Count),
        grouped(requests as f64),
        found.by,
        files.join(", ")
    )));
    let line = |cost: &FunctionCost| FunctionRow {
        name: function_name(cost).to_owned(),
        file: file(&cost.function.object),
        own: cost.own.value,
        inclusive: cost.inclusive.value,
        calls: Some(cost.calls),
        cells: vec![
            Cell::text(grouped(cost.own.value)),
            Cell::text(part(cost.own.value, total)),
            Cell::text(format!(
                "{}{}",
                grouped(cost.inclusive.value),
                interval(&cost.inclusive, &Unit::Count)
            )),
            Cell::text(quantity(cost.calls, &Unit::Count)),
        ],
    };
    let head = ["own", "of all", "with callees", "calls"].map(ColumnHeading::number);
    table(found.functions.iter().map(line).collect(), &head, title, parts);
}

fn sampled(found: &SampledTime, title: &str, parts: &mut Vec<SectionPart>) {
    let time = |ns: f64| quantity(ns, &Unit::Nanoseconds);
    parts.push(SectionPart::Words(format!(
        "{title}: {} a request, {} of it in the kernel ({} samples). On loopback the kernel charges part of the client’s \
         receiving to the server.",
        time(found.total),
        part(found.kernel, found.total),
        grouped(found.samples as f64)
    )));
    let lines = found.functions.iter().map(|function| FunctionRow {
        name: function.name.clone(),
        file: file(&function.object),
        own: function.own,
        inclusive: function.inclusive,
        calls: None,
        cells: vec![
            Cell::text(time(function.own)),
            Cell::text(part(function.own, found.total)),
            Cell::text(time(function.inclusive)),
            Cell::text(format!("[{}, {}]", time(function.interval.low), time(function.interval.high))),
        ],
    });
    let head = ["own", "of all", "with callees", "interval"].map(ColumnHeading::number);
    table(lines.collect(), &head, title, parts);
}

fn system_calls(calls: &SortedMap<String, f64>, label: String) -> Table {
    let mut each: Vec<(&String, &f64)> = calls.iter().collect();
    sorting::by(&mut each, |one, other| other.1.total_cmp(one.1));
    let row = |(call, count): (&String, &f64)| {
        vec![Cell::text(harmless_name(call)), Cell::text(quantity(*count, &Unit::Count))]
    };
    let head = vec![ColumnHeading::text(label.clone()), ColumnHeading::number("per request")];
    Table { label, head, rows: each.into_iter().map(row).collect(), ..Table::default() }
}
