//! Reports the memory map of a server before and after its load: a table by the purpose of the mappings, and the
//! difference.

use crate::render::align::{fit, on_points, right};
use crate::render::colours::{BOLD, DIM};
use crate::render::page::{Cell, ColumnHeading, Table};
use scruple_core::memory_map::{AmountPart, Class, MapRow, MemoryAmount};
use scruple_core::unit::{Unit, quantity};
use scruple_measure::memory_map::MemoryMap;
use scruple_stats::sorting::SortedMap;
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Both maps in JSON, in bytes.
#[derive(Serialize)]
pub(crate) struct BeforeAndAfter {
    before: Vec<MapRow>,
    after: Vec<MapRow>,
}

/// Returns both maps, or `None` if one could not be read.
pub(crate) fn before_and_after((before, after): &(MemoryMap, MemoryMap)) -> Option<BeforeAndAfter> {
    let known = !before.mappings.is_empty() && !after.mappings.is_empty();
    known.then(|| BeforeAndAfter { before: before.table(), after: after.table() })
}

const COLUMNS: [(&str, AmountPart); 2] =
    [("resident", |amount| amount.resident), ("private dirty", |amount| amount.private_dirty)];

/// A row of the table.
struct MapLine {
    name: String,
    permissions: String,
    before: MemoryAmount,
    after: MemoryAmount,
    sum: bool,
}

/// Writes the table if both maps could be read.
pub(crate) fn text((before, after): &(MemoryMap, MemoryMap), out: &mut String) {
    if before.mappings.is_empty() || after.mappings.is_empty() {
        return;
    }
    let lines = lines(before, after);
    let name = lines.iter().map(|line| line.name.width()).max().unwrap_or(0);
    let mut groups = fit("", name + 8);
    let mut titles = format!("{}  perm", fit("", name + 2));
    let mut texts: Vec<String> = lines
        .iter()
        .map(|line| format!("  {}  {}", fit(&line.name, name), fit(&line.permissions, 4)))
        .collect();
    for (group, pick) in COLUMNS {
        let mut width = 0;
        for (index, title) in ["before", "after", "more"].into_iter().enumerate() {
            let value = |line: &MapLine| {
                let (before, after) = (pick(&line.before) as f64, pick(&line.after) as f64);
                [before, after, after - before][index]
            };
            let mut cells: Vec<String> =
                lines.iter().map(|line| quantity(value(line), &Unit::Bytes)).collect();
            on_points(&mut cells);
            let widest = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(title.width());
            let _ = write!(titles, "  {}", right(title, widest));
            for (text, cell) in texts.iter_mut().zip(&cells) {
                let _ = write!(text, "  {}", right(cell, widest));
            }
            width += 2 + widest;
        }
        let _ = write!(groups, "{}", right(group, width));
    }
    let _ = writeln!(out, "\n  {BOLD}Memory map before and after{BOLD:#}");
    let _ = writeln!(out, "  {DIM}{}\n  {titles}{DIM:#}", groups.trim_end());
    for (line, text) in lines.iter().zip(texts) {
        match line.sum {
            true => _ = writeln!(out, "  {BOLD}{}{BOLD:#}", text.trim_end()),
            false => _ = writeln!(out, "  {}", text.trim_end()),
        }
    }
}

/// Returns the table for a page.
pub(super) fn table(name: &str, (before, after): &(MemoryMap, MemoryMap)) -> Option<Table> {
    if before.mappings.is_empty() || after.mappings.is_empty() {
        return None;
    }
    let mut head = vec![ColumnHeading::text("Mappings"), ColumnHeading::text("permissions")];
    for (what, _) in COLUMNS {
        head.extend(["before", "after", "more"].map(|when| ColumnHeading::number(format!("{what}, {when}"))));
    }
    let row = |line: MapLine| {
        let mut cells = vec![Cell::text(line.name.trim()), Cell::text(line.permissions)];
        for (_, pick) in COLUMNS {
            let (before, after) = (pick(&line.before) as f64, pick(&line.after) as f64);
            cells.extend(
                [before, after, after - before].map(|bytes| Cell::text(quantity(bytes, &Unit::Bytes))),
            );
        }
        cells
    };
    let rows = lines(before, after).into_iter().map(row).collect();
    Some(Table {
        label: format!("Memory map of {name} before and after the load"),
        head,
        rows,
        ..Table::default()
    })
}

/// Returns a row for each class and permission with resident memory before or after the load, below the sum of its half
/// (with or without a file), and then the total.
fn lines(before: &MemoryMap, after: &MemoryMap) -> Vec<MapLine> {
    let mut both: SortedMap<(Class, String), (MemoryAmount, MemoryAmount)> = SortedMap::new();
    for row in before.table() {
        both.entry((row.class, row.permissions)).or_default().0.add(&row.amount);
    }
    for row in after.table() {
        both.entry((row.class, row.permissions)).or_default().1.add(&row.amount);
    }
    let sum = |name: &str, before: MemoryAmount, after: MemoryAmount| MapLine {
        name: name.to_owned(),
        permissions: String::new(),
        before,
        after,
        sum: true,
    };
    let (first, last) = (before.mapped_and_anonymous(), after.mapped_and_anonymous());
    let mut lines = Vec::new();
    for (files, head) in
        [(true, sum("from files", first.0, last.0)), (false, sum("without a file", first.1, last.1))]
    {
        lines.push(head);
        let of_side = both.iter().filter(|((class, _), _)| class.is_mapped() == files);
        lines.extend(of_side.map(|((class, permissions), (before, after))| MapLine {
            name: format!("  {}", class.word()),
            permissions: permissions.clone(),
            before: *before,
            after: *after,
            sum: false,
        }));
    }
    lines.push(sum("all", before.total(), after.total()));
    lines
}
