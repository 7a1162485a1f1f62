//! Reports what a program does by function: a table, source lines, JSON, a flame graph.

use crate::inspect::args::SortCalls;
use crate::profile::{CallProfile, FunctionSum};
use crate::render::align::{fit, right, wrap};
use crate::render::colours::{BOLD, DIM};
use crate::render::export::Formats;
use crate::render::flame_graph;
use scruple_code::{SourceCosts, SourceFrame};
use scruple_core::explain::{Count, OwnCost};
use scruple_core::harmless_text::plain;
use scruple_core::plural;
use scruple_core::unit::{Unit, exact, share};
use scruple_stats::sorting;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// The formats of the report in addition to those of [`crate::profile`], by the endings of their files.
pub const FORMATS: Formats<fn(&CallsReport<'_>) -> String, 2> = [("json", json), ("svg", flame_graph)];

/// The content of the report, and options for its form.
pub struct CallsReport<'a> {
    /// The call profile.
    pub profile: &'a CallProfile,
    /// The number of processes that the program had.
    pub processes: usize,
    /// The parts of the program to which it gave a name.
    pub parts: Vec<NamedPart>,
    /// Whether an allocator was recognised, so that zero allocations really means none.
    pub heap_seen: bool,
    /// The origin of the figures, as a sentence.
    pub source: String,
    /// The instructions by source line; empty if they were not requested.
    pub lines: SourceCosts,
    /// The order of the functions.
    pub sort: SortCalls,
    /// The largest number of functions and of lines that are shown.
    pub most: usize,
}

/// What was counted between two commands of a program to the tool.
#[derive(Serialize)]
pub struct NamedPart {
    /// The name that the program gave to it.
    pub label: String,
    /// Whether it is a copy of counts, which a following part may contain as well.
    #[serde(rename = "dump")]
    pub is_copy: bool,
    /// All instructions.
    pub instructions: u64,
}

impl CallsReport<'_> {
    /// Returns the count that shares are of, and that formats with only one count contain: the one that determines the
    /// order, if it was counted.
    pub fn drawn(&self) -> Count {
        match self.sort {
            SortCalls::Allocations if self.heap_seen => Count::Allocations,
            SortCalls::Bytes if self.heap_seen => Count::Bytes,
            _ => self.profile.main(),
        }
    }

    fn rows(&self) -> Vec<FunctionSum> {
        let mut rows = self.profile.functions();
        rows.retain(|row| !self.profile.frames[row.frame].object.is_empty() || row.own != OwnCost::default());
        let main = self.profile.main();
        sorting::by_key(&mut rows, |row| {
            let by = match self.sort {
                SortCalls::Own => row.own.of(main),
                SortCalls::Inclusive => row.inclusive.unwrap_or(row.own).of(main),
                SortCalls::Calls => row.calls,
                SortCalls::Allocations => row.own.allocations,
                SortCalls::Bytes => row.own.bytes,
            };
            (std::cmp::Reverse(by), &self.profile.frames[row.frame].name)
        });
        rows
    }
}

/// Writes the tables for a terminal with this many columns.
pub fn text(counted: &CallsReport<'_>, width: usize) -> String {
    let total = counted.profile.total();
    let mut out =
        format!("{BOLD}Calls of ‘{}’{BOLD:#}\n{}\n", counted.profile.title, total_line(counted, total));
    for part in &counted.parts {
        let instructions = count(part.instructions);
        let _ = match part.is_copy {
            true => writeln!(out, "{instructions} until ‘{}’ was written", part.label),
            false => writeln!(out, "{instructions} of these in the phase ‘{}’", part.label),
        };
    }
    out.push('\n');
    let main = counted.drawn();
    let whole = total.of(main).max(1) as f64;
    let _ = writeln!(out, "{DIM}{}  function{DIM:#}", head(counted));
    let mut rows = counted.rows();
    if main != Count::Instructions {
        rows.retain(|row| row.inclusive.unwrap_or(row.own).of(main) > 0);
    }
    for row in rows.iter().take(counted.most) {
        let frame = &counted.profile.frames[row.frame];
        let file = Path::new(&frame.object).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let file = if file.is_empty() { String::new() } else { format!("  {file}") };
        let of_all = |cost: OwnCost| right(&share(cost.of(main) as f64 / whole), 6);
        let inclusive = row.inclusive.map(of_all).unwrap_or_default();
        let mut line = format!("{:>15}  {}  {inclusive:>6}", count(row.own.of(main)), of_all(row.own));
        for (one, width) in secondary_counts(counted) {
            let value = one.map_or(row.calls, |one| row.own.of(one));
            // Not every format knows calls, and not every program has an allocator.
            let text = if value == 0 { String::new() } else { count(value) };
            let _ = write!(line, "  {text:>width$}");
        }
        let _ = write!(line, "  {}{file}", frame.name);
        let _ = writeln!(out, "{}", fit(&line, width).trim_end());
    }
    if rows.len() > counted.most {
        let rest = &rows[counted.most..];
        let own: u64 = rest.iter().map(|row| row.own.of(main)).sum();
        let others = plural::counted(rest.len(), "other function");
        let _ = writeln!(out, "{DIM}{:>15}  {others}{DIM:#}", count(own));
    }
    lines(counted, total, width, &mut out);
    let _ = writeln!(out, "\n{DIM}{}{DIM:#}", wrap(&counted.source, width));
    out
}

/// Returns the counts besides the main one, with the widths of their columns; `None` stands for calls.
fn secondary_counts(counted: &CallsReport<'_>) -> Vec<(Option<Count>, usize)> {
    let mut all = match counted.profile.main() {
        Count::Bytes => Vec::new(),
        _ => vec![(None, 12), (Some(Count::Instructions), 15)],
    };
    all.extend([(Some(Count::Allocations), 11), (Some(Count::Bytes), 11)]);
    all.retain(|(one, _)| *one != Some(counted.drawn()));
    all
}

/// Writes the names of the columns before that of the function.
fn head(counted: &CallsReport<'_>) -> String {
    let mut head = format!("{:>15}  {:>6}  {:>6}", counted.profile.word(counted.drawn()), "own", "incl.");
    for (one, width) in secondary_counts(counted) {
        let word = match one {
            None => "calls",
            Some(Count::Bytes) => "bytes",
            Some(one) => counted.profile.word(one),
        };
        let _ = write!(head, "  {word:>width$}");
    }
    head
}

fn lines(counted: &CallsReport<'_>, total: OwnCost, width: usize, out: &mut String) {
    let costs = &counted.lines;
    if costs.lines.is_empty() && costs.without_lines == 0 {
        return;
    }
    let _ = writeln!(out, "\n{DIM}{:>15}  {:>6}  line{DIM:#}", "instructions", "own");
    let row = |instructions: u64, what: &str| {
        let of_all = right(&share(instructions as f64 / total.instructions.max(1) as f64), 6);
        fit(&format!("{:>15}  {of_all}  {what}", count(instructions)), width)
    };
    for line in costs.lines.iter().take(counted.most) {
        let _ = writeln!(out, "{}", row(line.instructions, &place(&line.frame)).trim_end());
    }
    if costs.without_lines > 0 {
        let what = "code without lines: no debugging information";
        let _ = writeln!(out, "{DIM}{}{DIM:#}", row(costs.without_lines, what).trim_end());
    }
}

fn place(frame: &SourceFrame) -> String {
    let file = frame.file.as_deref().unwrap_or("?");
    let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
    let name = frame.name.as_deref().map_or(String::new(), |name| format!("  {name}"));
    plain(&format!("{file}{line}{name}"))
}

fn total_line(counted: &CallsReport<'_>, total: OwnCost) -> String {
    let processes = match counted.processes {
        1 => String::new(),
        number => format!(" in {number} processes"),
    };
    let heap = match counted.heap_seen {
        true => format!("{} allocations of {} bytes", count(total.allocations), count(total.bytes)),
        false => "allocations are unknown: no allocator was seen".to_owned(),
    };
    match counted.profile.word.as_str() {
        "" => heap,
        word => format!("{} {word}{processes}; {heap}", count(total.instructions)),
    }
}

fn count(value: u64) -> String {
    exact(value as f64, &Unit::Count)
}

#[derive(Serialize)]
struct CallsJson<'a> {
    command: &'a str,
    definition: &'a str,
    unit: &'a str,
    processes: usize,
    #[serde(skip_serializing_if = "<[NamedPart]>::is_empty")]
    parts: &'a [NamedPart],
    total: Amounts,
    functions: Vec<FunctionEntry<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<LineEntry<'a>>,
}

#[derive(Serialize)]
struct Amounts {
    instructions: u64,
    allocations: Option<u64>,
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct FunctionEntry<'a> {
    name: &'a str,
    file: Option<&'a str>,
    calls: u64,
    own: Amounts,
    /// Absent if callers are not known.
    inclusive: Option<Amounts>,
}

#[derive(Serialize)]
struct LineEntry<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    instructions: u64,
}

/// Writes all functions as JSON.
pub fn json(counted: &CallsReport<'_>) -> String {
    let amounts = |cost: OwnCost| Amounts {
        instructions: cost.instructions,
        allocations: counted.heap_seen.then_some(cost.allocations),
        bytes: counted.heap_seen.then_some(cost.bytes),
    };
    let functions = counted.rows().into_iter().map(|row| {
        let frame = &counted.profile.frames[row.frame];
        FunctionEntry {
            name: &frame.name,
            file: Some(frame.object.as_str()).filter(|object| !object.is_empty()),
            calls: row.calls,
            own: amounts(row.own),
            inclusive: row.inclusive.map(amounts),
        }
    });
    let lines = counted.lines.lines.iter().map(|line| LineEntry {
        file: line.frame.file.as_deref(),
        line: line.frame.line,
        function: line.frame.name.as_deref(),
        instructions: line.instructions,
    });
    let document = CallsJson {
        command: &counted.profile.title,
        definition: &counted.source,
        unit: &counted.profile.word,
        processes: counted.processes,
        parts: &counted.parts,
        total: amounts(counted.profile.total()),
        functions: functions.collect(),
        lines: lines.collect(),
    };
    crate::render::json::document(&document)
}

/// Draws a count by calling context as a flame graph.
pub fn flame_graph(counted: &CallsReport<'_>) -> String {
    let drawn = counted.drawn();
    let frames: Vec<flame_graph::FlameBox> = counted
        .profile
        .nodes
        .iter()
        .map(|node| {
            let frame = &counted.profile.frames[node.frame];
            flame_graph::FlameBox {
                label: frame.name.clone(),
                group: frame.object.clone(),
                own: node.own.of(drawn) as f64,
                parent: node.parent,
            }
        })
        .collect();
    let title = format!("{}: {} by calling context", counted.profile.title, counted.profile.word(drawn));
    flame_graph::svg(&title, &frames, |value| count(value as u64))
}
