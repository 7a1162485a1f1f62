//! What a load stores for its page, and what the page of a load that has just ended has in addition.

use super::{instructions, memory_map, sheet, terminal};
use crate::load::windows::{Loaded, Loads, Sought};
use crate::show::Report;
use crate::show::page::{Fold, Part, Section, name};
use scruple_core::harmless_text::plain_lines;
use scruple_core::subject::{LoadCourse, LoadSlice};
use scruple_core::unit::{Unit, grouped, quantity};
use std::fmt::Write as _;

/// The stored part of a server's load.
pub fn course(server: &Loaded, sought: Option<&Sought>) -> LoadCourse {
    let pool = &server.pool;
    let slices = pool.timeline.iter().map(|slice| LoadSlice {
        from: slice.from,
        to: slice.to,
        answered: slice.answered,
        failed: slice.failed,
        p50: slice.p50,
        p99: slice.p99,
    });
    LoadCourse {
        due: pool.due,
        answered: pool.answered,
        failed: pool.failures.total(),
        windows: (pool.windows as u64, server.void as u64),
        rate: pool.rate(),
        response: pool.response.sparse(),
        slices: slices.collect(),
        stalls: pool.stalls.iter().map(|stall| (stall.from, stall.to)).collect(),
        answer: sought.map(terminal::answer),
    }
}

/// The figures as on a terminal, and the results of instruments.
pub fn sections(report: &Report<'_>, loads: &Loads) -> Vec<Section> {
    let mut parts = vec![Part::Code(uncoloured(&terminal::text(report, loads, 110)))];
    for server in &loads.servers {
        parts.extend(every_function(server));
        parts.extend(memory_map(server, loads.show_map));
    }
    let folded = Some("All figures of the load".to_owned());
    vec![Section { title: "Figures".to_owned(), folded, parts }]
}

/// A text for a terminal without its colours.
fn uncoloured(text: &str) -> String {
    plain_lines(&anstream::adapter::strip_str(text).to_string())
}

/// The memory map before and after, unless it is already among the figures.
fn memory_map(server: &Loaded, shown: bool) -> Option<Part> {
    let mut table = String::new();
    if let Some(sheet) = server.sheet.as_ref().filter(|_| !shown) {
        memory_map::text(&sheet.maps, &mut table);
    }
    let code = || Part::Code(uncoloured(&table).trim_start_matches('\n').to_owned());
    let summary = format!("Memory map of {}", name(&server.name));
    (!table.is_empty()).then(|| Part::Fold(Fold { summary, parts: vec![code()] }))
}

/// All functions with a cost, where they were counted.
fn every_function(server: &Loaded) -> Option<Part> {
    let Some(Ok(found)) = &server.instructions else { return None };
    let mut table = String::new();
    for cost in &found.functions {
        let (own, all) = (grouped(cost.own.value), grouped(cost.inclusive.value));
        let calls = quantity(cost.calls, &Unit::Count);
        let _ = writeln!(
            table,
            "{own:>14} {all:>14} with callees {calls:>10} calls  {}",
            name(instructions::name(cost))
        );
    }
    let count = grouped(found.functions.len() as f64);
    let summary = format!("{count} of {}: {} by function", name(&server.name), sheet::title("instructions"));
    Some(Part::Fold(Fold { summary, parts: vec![Part::Code(table)] }))
}
