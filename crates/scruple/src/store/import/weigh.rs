//! Reads tables of weigh, plain or Markdown: the allocations of one call of each case, which the runtime counted.

use super::figures::{add, add_own};
use super::{ImportError, Imported, case, clean};
use scruple_core::metric::Quality;
use scruple_core::unit::Unit;
use scruple_stats::sorting::SortedMap;

/// The columns that weigh may write.
const COLUMNS: [&str; 7] = ["Case", "Allocated", "GCs", "Live", "Check", "Max", "MaxOS"];

/// Whether a text contains the head of such a table.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| columns(line).is_some())
}

/// Returns the columns if a line is the head of a table. The table must have names and figures.
fn columns(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = match line.trim().strip_prefix('|') {
        Some(row) => row.split('|').filter(|cell| !cell.is_empty()).collect(),
        None => line.split_whitespace().collect(),
    };
    let known = words.len() > 1 && words.iter().all(|word| COLUMNS.contains(word));
    (known && words.contains(&"Case")).then_some(words)
}

/// Reads an output.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    let mut imported = Imported::of("weigh");
    let mut groups: Vec<(usize, &str)> = Vec::new();
    let mut table: Option<(Vec<&str>, usize)> = None;
    let count = text.lines().count();
    let mut lines = text.lines().enumerate();
    for (index, line) in lines.by_ref() {
        let indent = line.len() - line.trim_start().len();
        if line.trim().is_empty() {
            table = None;
        } else if line == "Check problems:" {
            break;
        } else if let Some(head) = columns(line) {
            if !line.starts_with('|') {
                groups.retain(|(depth, _)| *depth < indent);
            }
            table = Some((head, line.trim_end().chars().count()));
        } else if let Some((head, width)) = &table {
            let wrong = |what: &str| ImportError::at(format!("line {}", index + 1), what);
            // Figures are at the right edge of the table. A row that was cut short does not reach the edge.
            let last = index + 1 == count && !text.ends_with('\n');
            if last && line.trim_end().chars().count() < *width && head.last() != Some(&"Check") {
                return Err(wrong("the text ends in the middle of a row"));
            }
            if !line.trim_start().starts_with("|:") {
                row(line, head, &groups, &mut imported).map_err(|what| wrong(&what))?;
            }
        } else {
            // In Markdown, groups have the same mark at every depth, so that only the innermost group is known.
            let title = line.trim();
            groups.retain(|(depth, _)| *depth < indent);
            groups.push((indent, title.strip_prefix('#').unwrap_or(title)));
        }
    }
    checks(lines.map(|(_, line)| line), &mut imported);
    imported.finished()
}

fn row(line: &str, head: &[&str], groups: &[(usize, &str)], imported: &mut Imported) -> Result<(), String> {
    let cells = cells(line, head)
        .ok_or_else(|| format!("a row does not have {} columns: ‘{}’", head.len(), clean(line.trim())))?;
    let cell = |column: &str| Some(cells[head.iter().position(|known| *known == column)?].as_str());
    let label = cell("Case").unwrap_or_default();
    let mut path: Vec<&str> = groups.iter().map(|(_, title)| *title).collect();
    path.push(label);
    let mut arm = case(&path.join("/"), &["weigh"], SortedMap::new());
    for (column, key, quality) in [
        ("Allocated", "alloc.bytes", Quality::Exact),
        ("GCs", "gc.count", Quality::Exact),
        ("Max", "heap.live_max", Quality::Near),
        ("MaxOS", "heap.peak", Quality::Near),
        ("Live", "weigh.live", Quality::Near),
    ] {
        let Some(text) = cell(column) else { continue };
        let value: f64 =
            text.replace(',', "")
                .parse::<u64>()
                .map_err(|_| format!("‘{}’ is not a figure of {column}", clean(text)))? as f64;
        let added = match key {
            "weigh.live" => add_own(&mut arm, key, Unit::Bytes, "weigh", vec![value]),
            _ => add(&mut arm, key, quality, "weigh", vec![value]),
        };
        added.map_err(|error| error.to_string())?;
    }
    imported.arms.push(arm);
    Ok(())
}

/// Splits a row into cells. Only the name of a case may contain blanks, so the other cells are counted from both ends
/// of the row.
fn cells(line: &str, head: &[&str]) -> Option<Vec<String>> {
    let row = line.trim();
    let (parts, between): (Vec<&str>, &str) = match row.strip_prefix('|') {
        Some(row) => (row.strip_suffix('|')?.split('|').collect(), "|"),
        None => (row.split_whitespace().collect(), " "),
    };
    let before = head.iter().position(|column| *column == "Case")?;
    let behind = head.len() - before - 1;
    let name = parts.get(before..parts.len().checked_sub(behind)?)?;
    if name.is_empty() {
        return None;
    }
    let mut cells: Vec<String> = parts[..before].iter().map(|part| (*part).to_owned()).collect();
    cells.push(name.join(between));
    cells.extend(parts[parts.len() - behind..].iter().map(|part| (*part).to_owned()));
    Some(cells)
}

/// Adds remarks about failed checks. Each consists of a name, and below it a description of the failure.
fn checks<'a>(lines: impl Iterator<Item = &'a str>, imported: &mut Imported) {
    let mut name = "";
    for line in lines.filter(|line| !line.trim().is_empty()) {
        match line.strip_prefix("    ") {
            Some(what) => {
                let (name, what) = (clean(name), clean(what.trim()));
                imported.remark("weigh-check", format!("weigh’s check of ‘{name}’ failed: {what}"));
            }
            None => name = line.trim().trim_start_matches('/'),
        }
    }
}
