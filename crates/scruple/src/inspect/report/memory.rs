//! Reports the memory map of a process: a table with a picture, its course over time, and both in JSON.

use crate::progress::in_words;
use crate::render::align::{fit, on_points, right, wrap};
use crate::render::block_characters;
use crate::render::colours::{BOLD, DIM};
use scruple_core::memory_map::{
    AmountPart, Divided, Largest, MapRow, MemoryAmount, MemoryCourse, Moment, mapped_and_anonymous,
    with_unique,
};
use scruple_core::unit::{Unit, quantity};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The width of the bar beside a row, in columns.
const BAR: usize = 20;
/// The width of the course over time, in columns.
const LINE: usize = 40;

/// Writes the table, the picture and the course for a terminal with this many columns.
pub fn text(name: &str, course: &MemoryCourse, width: usize) -> String {
    let mut out = format!("{BOLD}Memory map of ‘{name}’{BOLD:#}\n");
    match (&course.largest, course.peak()) {
        (Some(largest), Some(peak)) => {
            let _ = writeln!(out, "{}\n", wrap(&when(largest, peak, course.moments.len()), width));
            table(course, width, &mut out);
        }
        (None, Some(_)) => {
            let why = "The kernel does not show its mappings: it belongs to another user, or forbids access. Its \
            owner and root can see more.";
            let _ = writeln!(out, "{}", wrap(why, width));
        }
        (_, None) => {
            let _ = writeln!(out, "It ended before its memory could be read.");
        }
    }
    over_time(course, &mut out);
    out
}

/// Says when the map was read, and from which process.
pub(crate) fn when(largest: &Largest, peak: &Moment, moments: usize) -> String {
    let bytes = |bytes: u64| quantity(bytes as f64, &Unit::Bytes);
    let process = format!("Process {} (‘{}’)", largest.pid, largest.name);
    if moments == 1 && largest.processes == 1 {
        return format!("{process}, as it is now: {} resident", bytes(largest.resident));
    }
    let tree = match largest.processes {
        1 => String::new(),
        processes => format!(", the largest of {processes}"),
    };
    format!(
        "{process}{tree}, {} after the beginning: then {} were resident in all, and {} at most",
        in_words(largest.at),
        bytes(largest.resident),
        bytes(peak.resident)
    )
}

/// A row of the table, before it is padded.
pub(crate) struct TableLine {
    /// The class of the mappings, or the name of the sum.
    pub head: String,
    /// The permissions of the mappings.
    pub permissions: String,
    /// The number of mappings.
    pub mappings: String,
    /// The memory of the mappings.
    pub amount: MemoryAmount,
    /// Whether the row is the sum of other rows.
    pub sum: bool,
}

/// Returns a row for each class and permission, below the sum of its half (with or without a file), and then the total.
pub(crate) fn lines(course: &MemoryCourse) -> Vec<TableLine> {
    let rows: Vec<&MapRow> = course.map.iter().filter(|row| row.is_used()).collect();
    let both = mapped_and_anonymous(&course.map);
    let (mapped, anonymous) = (&both.0, &both.1);
    let mut lines = Vec::new();
    for (files, title, sum) in [(true, "from files", mapped), (false, "without a file", anonymous)] {
        let of_side: Vec<&MapRow> =
            rows.iter().copied().filter(|row| row.class.is_mapped() == files).collect();
        let mappings: usize = of_side.iter().map(|row| row.mappings).sum();
        lines.push(TableLine {
            head: title.to_owned(),
            permissions: String::new(),
            mappings: mappings.to_string(),
            amount: *sum,
            sum: true,
        });
        lines.extend(of_side.into_iter().map(|row| TableLine {
            head: format!("  {}", row.class.word()),
            permissions: row.permissions.clone(),
            mappings: row.mappings.to_string(),
            amount: row.amount,
            sum: false,
        }));
    }
    let mappings: usize = rows.iter().map(|row| row.mappings).sum();
    lines.push(TableLine {
        head: "all".to_owned(),
        permissions: String::new(),
        mappings: mappings.to_string(),
        amount: course.total(),
        sum: true,
    });
    lines
}

/// The columns of the table: the group, the title, and the part of the amount.
pub(crate) const COLUMNS: [(&str, &str, AmountPart); 6] = [
    ("shared", "clean", |amount| amount.shared_clean),
    ("", "dirty", |amount| amount.shared_dirty),
    ("private", "clean", |amount| amount.private_clean),
    ("", "dirty", |amount| amount.private_dirty),
    ("", "resident", |amount| amount.resident),
    ("", "swapped", |amount| amount.swapped),
];

fn table(course: &MemoryCourse, width: usize, out: &mut String) {
    let lines = lines(course);
    let swapped = lines.iter().any(|line| line.amount.swapped > 0);
    let shown = if swapped { &COLUMNS[..] } else { &COLUMNS[..5] };
    let mut upper = fit("", 28);
    let mut lower = format!("{}  {}  {}", fit("", 16), "perm", right("maps", 4));
    let mut texts: Vec<String> = lines
        .iter()
        .map(|line| {
            format!("{}  {}  {}", fit(&line.head, 16), fit(&line.permissions, 4), right(&line.mappings, 4))
        })
        .collect();
    for (group, title, pick) in shown {
        let size = |line: &TableLine| quantity(pick(&line.amount) as f64, &Unit::Bytes);
        let mut cells: Vec<String> = lines.iter().map(size).collect();
        on_points(&mut cells);
        let columns =
            cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(title.len()).max(group.len());
        let _ = write!(upper, "  {}", right(group, columns));
        let _ = write!(lower, "  {}", right(title, columns));
        for (text, cell) in texts.iter_mut().zip(&cells) {
            let _ = write!(text, "  {}", right(cell, columns));
        }
    }
    let drawn = lower.width() + 2 + BAR <= width;
    let _ = writeln!(out, "{DIM}{}\n{lower}{DIM:#}", upper.trim_end());
    let most = lines.iter().filter(|line| !line.sum).map(|line| line.amount.resident).max().unwrap_or(0);
    for (line, text) in lines.iter().zip(&texts) {
        let bar = if drawn && !line.sum { bar(&line.amount, most) } else { String::new() };
        let text = format!("{text}  {bar}");
        match line.sum {
            true => _ = writeln!(out, "{BOLD}{}{BOLD:#}", text.trim_end()),
            false => _ = writeln!(out, "{}", text.trim_end()),
        }
    }
    if drawn {
        let _ = writeln!(out, "{DIM}█ private dirty  ▓ private clean  ▒ shared dirty  ░ shared clean{DIM:#}");
    }
}

/// Draws a bar that shows the parts of a row's memory, as long as that memory is large. The running sum is rounded, so
/// that the lengths of the parts add up to that of the whole.
fn bar(amount: &MemoryAmount, most: u64) -> String {
    let parts = [
        ('█', amount.private_dirty),
        ('▓', amount.private_clean),
        ('▒', amount.shared_dirty),
        ('░', amount.shared_clean),
    ];
    let columns = |bytes: u64| (bytes as f64 / most.max(1) as f64 * BAR as f64).round() as usize;
    let (mut sum, mut text) = (0, String::new());
    for (sign, bytes) in parts {
        let before = columns(sum);
        sum += bytes;
        text.extend(std::iter::repeat_n(sign, columns(sum) - before));
    }
    text
}

fn over_time(course: &MemoryCourse, out: &mut String) {
    let (Some(peak), Some(last)) = (course.peak(), course.moments.last()) else { return };
    let bytes = |bytes: u64| quantity(bytes as f64, &Unit::Bytes);
    let scale = peak.resident as f64;
    let divided = |pick: fn(&Divided) -> u64| {
        let values: Vec<(f64, f64)> =
            course.moments.iter().filter_map(|m| Some((seconds(m), pick(&m.divided?) as f64))).collect();
        values
    };
    let resident: Vec<(f64, f64)> = course.moments.iter().map(|m| (seconds(m), m.resident as f64)).collect();
    let rows = [
        ("resident (RSS)", resident),
        ("proportional (PSS)", divided(|divided| divided.proportional)),
        ("unique (USS)", divided(|divided| divided.unique)),
    ];
    let _ = writeln!(out);
    if course.moments.len() > 1 {
        let span = in_words(last.at);
        let _ = writeln!(out, "Over {span}, {} moments", course.moments.len());
    }
    for (title, values) in rows.iter().filter(|(_, values)| !values.is_empty()) {
        let most = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let line = match values.len() {
            1 if course.moments.len() > 1 => "seen once: ".to_owned(),
            1 => String::new(),
            _ => format!(
                "{}  at most ",
                fit(&block_characters::course(values, seconds(last), scale, LINE), LINE)
            ),
        };
        let _ = writeln!(out, "  {}  {line}{}", fit(title, 18), bytes(most as u64));
    }
    let _ = writeln!(
        out,
        "  {}  {} in one process, as the kernel recorded",
        fit("high water", 18),
        bytes(course.high_water)
    );
}

fn seconds(moment: &Moment) -> f64 {
    moment.at.as_secs_f64()
}

/// The map and its course in JSON, in bytes and nanoseconds.
#[derive(Serialize)]
pub struct MemoryReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a Largest>,
    rows: Vec<&'a MapRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapped: Option<WholeAmount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anonymous: Option<WholeAmount>,
    peak: PeakFields,
    course: &'a [Moment],
}

#[derive(Serialize)]
#[serde(transparent)]
struct WholeAmount(#[serde(serialize_with = "with_unique")] MemoryAmount);

#[derive(Serialize)]
struct PeakFields {
    resident: Option<u64>,
    proportional: Option<u64>,
    unique: Option<u64>,
    high_water: u64,
}

/// Creates the report.
pub fn report(course: &MemoryCourse) -> MemoryReport<'_> {
    let largest = course.largest.as_ref();
    let both = largest.map(|_| mapped_and_anonymous(&course.map));
    let divided = course.divided_peaks();
    MemoryReport {
        process: largest,
        rows: course.map.iter().filter(|row| row.is_used()).collect(),
        mapped: both.map(|both| WholeAmount(both.0)),
        anonymous: both.map(|both| WholeAmount(both.1)),
        peak: PeakFields {
            resident: course.peak().map(|moment| moment.resident),
            proportional: divided.map(|divided| divided.proportional),
            unique: divided.map(|divided| divided.unique),
            high_water: course.high_water,
        },
        course: &course.moments,
    }
}
