//! Reports where a program's memory was allocated: for a terminal, and as a flame graph.

use crate::inspect::command_sites::CommandSites;
use crate::inspect::site_rows::{SiteRow, called, place, rows};
use crate::render::align::{fit, on_points, right, wrap};
use crate::render::colours::{BOLD, DIM};
use crate::render::{block_characters, flame_graph};
use scruple_code::allocation_sites::{
    CourseUnit, HeapAmounts, HeapCourse, HeapSites, MemoryBlocks, SiteContext, SiteCounting,
};
use scruple_core::harmless_text::plain;
use scruple_core::plural::{counted, noun};
use scruple_core::unit::{Unit, exact, quantity, share};
use scruple_stats::Interval;
use std::collections::HashSet;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The width of the course in a terminal, in columns.
const COURSE: usize = 60;
/// The smallest part of a site that a caller is shown for.
const LEAST: f64 = 0.1;
/// The largest number of callers that are shown above a site.
const CALLERS: usize = 6;

/// The figure by which sites are ordered first.
pub fn peak(amounts: &HeapAmounts) -> u64 {
    amounts.at_peak.bytes
}

fn end(amounts: &HeapAmounts) -> u64 {
    amounts.at_end.bytes
}

/// Writes the report for a terminal with this many columns.
pub fn text(found: &CommandSites, most: usize, width: usize) -> String {
    let Some((sites, others)) = found.processes.split_first() else { return String::new() };
    let by_peak = rows(sites, peak);
    let mut out = format!("{BOLD}Memory of ‘{}’ by allocation site{BOLD:#}\n", plain(&found.title));
    let _ = writeln!(out, "{}", wrap(&sentence(found, sites, &by_peak), width));
    table(sites, &by_peak, most, width, &mut out);
    at_end(sites, most, width, &mut out);
    course(&sites.course, width, &mut out);
    processes(others, width, &mut out);
    out.push('\n');
    for remark in remarks(found) {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(&remark, width));
    }
    out
}

/// Says how much was in use at most, and where most of it comes from.
pub fn sentence(found: &CommandSites, sites: &HeapSites, rows: &[SiteRow]) -> String {
    let total = sites.total;
    let whole = match found.processes.len() {
        1 => String::new(),
        _ => format!(" in process {} (‘{}’)", sites.process, plain(&sites.words.join(" "))),
    };
    let most = rows.first().filter(|row| peak(&row.amounts) > 0).map_or(String::new(), |row| {
        format!("; {} of it from {}", share_of(sites, std::slice::from_ref(row)), place(&row.frame))
    });
    let in_use = match sites.counting {
        SiteCounting::Exact => blocks(total.at_peak),
        // The number of blocks of sites without a sample is not known.
        SiteCounting::Sampled { .. } => bytes(total.at_peak.bytes),
    };
    format!("At most {in_use} were in use at one time{whole}{most}.")
}

/// Writes bytes and blocks.
fn blocks(blocks: MemoryBlocks) -> String {
    let count = exact(blocks.blocks as f64, &Unit::Count);
    format!("{} in {count} {}", bytes(blocks.bytes), noun(blocks.blocks, "block"))
}

fn bytes(bytes: u64) -> String {
    quantity(bytes as f64, &Unit::Bytes)
}

/// Writes a figure of a site.
type FigureText = fn(&HeapAmounts) -> String;

/// The columns beside the name of a site, with their titles.
pub const COLUMNS: [(&str, FigureText); 4] = [
    ("at the peak", |amounts| bytes(amounts.at_peak.bytes)),
    ("blocks", |amounts| match amounts.at_peak {
        // Blocks at the peak are estimated from samples, and there may be none.
        MemoryBlocks { blocks: 0, bytes: 1.. } => "–".to_owned(),
        MemoryBlocks { blocks, .. } => exact(blocks as f64, &Unit::Count),
    }),
    ("at the end", |amounts| bytes(amounts.at_end.bytes)),
    ("allocated", |amounts| bytes(amounts.allocated.bytes)),
];

/// The level of intervals.
const LEVEL: f64 = 0.95;

/// The interval of the share that some rows have in the bytes at the peak; `None` if it is counted.
pub fn interval(sites: &HeapSites, rows: &[SiteRow]) -> Option<Interval> {
    let contexts: HashSet<usize> = rows.iter().flat_map(|row| &row.contexts).copied().collect();
    sites.share(|estimates| estimates.at_peak, |context| contexts.contains(&context), LEVEL)
}

/// Writes the share that some rows have in the bytes at the peak.
pub fn share_of(sites: &HeapSites, rows: &[SiteRow]) -> String {
    let bytes: u64 = rows.iter().map(|row| peak(&row.amounts)).sum();
    let percent = |part: f64| format!("{:.0}", 100.0 * part);
    interval(sites, rows).map_or_else(
        || share(bytes as f64 / sites.total.at_peak.bytes.max(1) as f64),
        |interval| format!("{}–{} %", percent(interval.low), percent(interval.high)),
    )
}

fn table(sites: &HeapSites, rows: &[SiteRow], most: usize, width: usize, out: &mut String) {
    let (shown, rest) = rows.split_at(most.min(rows.len()));
    let mut lines: Vec<HeapAmounts> = shown.iter().map(|row| row.amounts).collect();
    let mut others = HeapAmounts::default();
    rest.iter().for_each(|row| others += row.amounts);
    lines.extend((!rest.is_empty()).then_some(others));
    lines.push(sites.total);
    let mut shares: Vec<String> =
        shown.iter().map(|row| share_of(sites, std::slice::from_ref(row))).collect();
    shares.extend((!rest.is_empty()).then(|| share_of(sites, rest)));
    shares.push(share(1.0));
    let columns_of_shares = shares.iter().map(|share| share.width()).max().unwrap_or(0).max(6);
    let mut head = String::new();
    let mut texts = vec![String::new(); lines.len()];
    for (column, (title, figure)) in COLUMNS.iter().enumerate() {
        let mut cells: Vec<String> = lines.iter().map(figure).collect();
        on_points(&mut cells);
        let columns = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(title.width());
        let _ = write!(head, "{}  ", right(title, columns));
        for ((text, cell), share) in texts.iter_mut().zip(&cells).zip(&shares) {
            let _ = write!(text, "{}  ", right(cell, columns));
            if column == 0 {
                let _ = write!(text, "{}  ", right(share, columns_of_shares));
            }
        }
        if column == 0 {
            let _ = write!(head, "{}  ", right("share", columns_of_shares));
        }
    }
    let _ = writeln!(out, "\n{DIM}{head}site{DIM:#}");
    let name = |at: usize| match shown.get(at) {
        Some(row) => place(&row.frame),
        None if at + 1 == lines.len() => "all".to_owned(),
        None => others_of(rest.len()),
    };
    for (at, text) in texts.iter().enumerate() {
        let line = fit(&format!("{text}{}", name(at)), width);
        match at + 1 == lines.len() {
            true => _ = writeln!(out, "{BOLD}{}{BOLD:#}", line.trim_end()),
            false => _ = writeln!(out, "{}", line.trim_end()),
        }
        if let Some(row) = shown.get(at) {
            callers(row, head.width().min(width / 4), width, out);
        }
    }
}

/// Names the sites that are not shown.
pub fn others_of(number: usize) -> String {
    counted(number, "other site")
}

/// Writes the path of calls to a site, as long as one caller has most of it, and the callers where there are several.
fn callers(row: &SiteRow, indent: usize, width: usize, out: &mut String) {
    let mut line = |text: &str| {
        let line = fit(&format!("{}{text}", " ".repeat(indent)), width);
        let _ = writeln!(out, "{DIM}{}{DIM:#}", line.trim_end());
    };
    if let Some(through) = &row.through {
        line(&format!("through {through}"));
    }
    let whole = ordered_by(row);
    let mut row = row;
    for _ in 0..CALLERS {
        let telling: Vec<&SiteRow> = row
            .callers
            .iter()
            .filter(|caller| ordered_by(caller) as f64 >= LEAST * whole as f64)
            .take(3)
            .collect();
        for caller in &telling {
            let part = ordered_by(caller) as f64 / whole.max(1) as f64;
            let part = if part > 0.995 { String::new() } else { format!("  ({})", share(part)) };
            line(&format!("← {}{part}", place(&caller.frame)));
        }
        match telling.as_slice() {
            [one] => row = one,
            _ => return,
        }
    }
    if !row.callers.is_empty() {
        line("← …");
    }
}

/// The bytes at the peak or, for a site that had none then, all that it allocated.
fn ordered_by(row: &SiteRow) -> u64 {
    if peak(&row.amounts) > 0 { peak(&row.amounts) } else { row.amounts.allocated.bytes }
}

fn at_end(sites: &HeapSites, most: usize, width: usize, out: &mut String) {
    let left = sites.total.at_end;
    if left.blocks == 0 {
        let _ = writeln!(out, "\nAt the end everything had been freed.");
        return;
    }
    let mut by_end = rows(sites, end);
    by_end.retain(|row| row.amounts.at_end.blocks > 0);
    let from = match sites.counting {
        _ if !by_end.is_empty() => ":",
        SiteCounting::Exact => ".",
        SiteCounting::Sampled { .. } => "; none of them was sampled.",
    };
    let _ = writeln!(out, "\nAt the end {} were not freed{from}", blocks(left));
    let (shown, rest) = by_end.split_at(most.div_ceil(2).min(by_end.len()));
    let mut cells: Vec<String> = shown.iter().map(|row| blocks(row.amounts.at_end)).collect();
    let mut others = MemoryBlocks::default();
    rest.iter().for_each(|row| others += row.amounts.at_end);
    cells.extend((!rest.is_empty()).then(|| blocks(others)));
    on_points(&mut cells);
    for (at, cell) in cells.iter().enumerate() {
        let name = shown.get(at).map_or_else(|| others_of(rest.len()), chain);
        let _ = writeln!(out, "{}", fit(&format!("  {cell}  {name}"), width).trim_end());
    }
}

/// The site and its first caller in one line.
pub fn chain(row: &SiteRow) -> String {
    let caller = row.callers.first().filter(|_| row.callers.len() == 1);
    let caller = caller.map_or(String::new(), |caller| format!(" ← {}", place(&caller.frame)));
    format!("{}{caller}", place(&row.frame))
}

/// Writes a position in the course.
pub fn position(unit: CourseUnit, at: u64) -> String {
    match unit {
        CourseUnit::Instructions => format!("{} instructions", quantity(at as f64, &Unit::Count)),
        CourseUnit::Nanoseconds => quantity(at as f64, &Unit::Nanoseconds),
        CourseUnit::AllocatedBytes => format!("{} of allocations", quantity(at as f64, &Unit::Bytes)),
    }
}

fn course(course: &HeapCourse, width: usize, out: &mut String) {
    let Some((last, _)) = course.points.last() else { return };
    let Some((at, most)) = course.points.iter().copied().rev().max_by_key(|(_, bytes)| *bytes) else {
        return;
    };
    let points: Vec<(f64, f64)> =
        course.points.iter().map(|(at, bytes)| (*at as f64, *bytes as f64)).collect();
    let drawn =
        block_characters::course(&points, *last as f64, most as f64, COURSE.min(width.saturating_sub(4)));
    let _ = writeln!(
        out,
        "\nIn use over {}, at most after {}:\n  {drawn}",
        position(course.unit, *last),
        position(course.unit, at)
    );
}

fn processes(others: &[HeapSites], width: usize, out: &mut String) {
    const SHOWN: usize = 5;
    if others.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nOther processes, each by itself:");
    for sites in others.iter().take(SHOWN) {
        let total = sites.total;
        let inherited = match sites.inherited.bytes {
            0 => String::new(),
            some => format!(", {} of them inherited", bytes(some)),
        };
        let line = format!(
            "  {} ‘{}’: at most {}{inherited}; {} at the end",
            sites.process,
            plain(&sites.words.join(" ")),
            bytes(total.at_peak.bytes),
            bytes(total.at_end.bytes)
        );
        let _ = writeln!(out, "{}", fit(&line, width).trim_end());
    }
    if others.len() > SHOWN {
        let _ = writeln!(out, "  and {} more", others.len() - SHOWN);
    }
}

/// Says how the figures were found, and what they do not contain.
pub fn remarks(found: &CommandSites) -> Vec<String> {
    let how = match found.processes.first().map(|sites| sites.counting) {
        Some(SiteCounting::Sampled { bytes: mean, samples }) => format!(
            "Estimated from {} samples, about one for every {} that were allocated; sizes are as requested from malloc. The \
             bytes and blocks of all sites together are counted, except the blocks at the peak. A share lies in its range with \
             a probability of 95 %.",
            exact(samples as f64, &Unit::Count),
            bytes(mean)
        ),
        _ if found.processes.iter().any(|sites| !sites.unseen.is_empty()) => {
            "Every allocation that was seen was counted; sizes are as requested from malloc.".to_owned()
        }
        _ => "Every allocation was counted; sizes are as requested from malloc.".to_owned(),
    };
    let unseen = found.processes.iter().flat_map(|sites| &sites.unseen);
    let unseen = unseen.map(|what| format!("Not seen: {}.", plain(what)));
    // Records of samples are those of one process, so blocks of its parent have no site.
    let inherited = found.processes.first().map(|sites| sites.inherited).filter(|blocks| blocks.blocks == 0);
    let inherited = inherited.filter(|blocks| blocks.bytes > 0).map(|blocks| {
        format!(
            "The sites of {}, which the process inherited from its parent, are not known.",
            bytes(blocks.bytes)
        )
    });
    [how].into_iter().chain(inherited).chain(found.remarks.iter().cloned()).chain(unseen).collect()
}

/// Draws the bytes at the peak by calling context as a flame graph.
pub fn flame_graph(found: &CommandSites) -> String {
    let Some(sites) = found.processes.first() else { return String::new() };
    let title = format!("{}: bytes in use at the peak, by calling context", found.title);
    flame_graph::svg(&title, &frames(sites), |value| bytes(value as u64))
}

/// The boxes of the flame graph of a process.
pub fn frames(sites: &HeapSites) -> Vec<flame_graph::FlameBox> {
    let frame = |context: &SiteContext| {
        let frame = &sites.frames[context.frame];
        flame_graph::FlameBox {
            label: if frame.line.is_some() { place(frame) } else { called(frame) },
            group: frame.object.clone().unwrap_or_default(),
            own: peak(&context.own) as f64,
            parent: context.parent,
        }
    };
    sites.contexts.iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_not_said_to_be_counted() {
        let remarks_of = |unseen: &[&str]| {
            let unseen = unseen.iter().map(|what| (*what).to_owned()).collect();
            let processes = vec![HeapSites { unseen, ..HeapSites::default() }];
            remarks(&CommandSites { title: String::new(), processes, remarks: Vec::new() })
        };
        assert!(remarks_of(&[])[0].starts_with("Every allocation was counted;"));
        let some = remarks_of(&["1 allocation"]);
        assert!(some[0].starts_with("Every allocation that was seen was counted;"), "{some:?}");
        assert_eq!(some[1], "Not seen: 1 allocation.");
    }
}
