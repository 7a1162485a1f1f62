//! A separate table of the readings that concurrency cases report in addition to time.

use crate::render::align::{fit, left_out_line, right};
use crate::render::colours::DIM;
use crate::run_report::Report;
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::{Unit, quantity, share};
use scruple_stats::quantile::median;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The readings that have columns, the most informative first. Columns that do not fit are left out and named.
const SHOWN: [(&str, &str); 6] = [
    ("queue.parallelism", "cores busy"),
    (BALANCE, "balance"),
    ("queue.order_broken", "misordered"),
    ("queue.late.share", "overtaken"),
    ("queue.sojourn.p99", "99 % wait <"),
    ("queue.late.max", "by at most"),
];

/// The common title of the balance of the producers and that of the consumers. A value of 1 means even shares.
const BALANCE: &str = "queue.balance";

/// Writes the table if the suite has such cases. It has no column for lost or duplicated elements, since these fail a
/// case.
pub(crate) fn text(report: &Report<'_>, width: usize) -> String {
    let arms: Vec<&Arm> = report
        .run
        .arms_of(Role::Subject)
        .filter(|arm| arm.sample("queue.parallelism").is_some() && arm.absent("time.wall").is_none())
        .collect();
    if arms.is_empty() {
        return String::new();
    }
    let widest = arms.iter().map(|arm| arm.name.width()).max().unwrap_or(0);
    let mut columns: Vec<(&str, Vec<String>)> = Vec::new();
    let mut used = 2 + widest;
    let mut whole = 2 + widest.min(NAME);
    let mut left_out = Vec::new();
    for (key, head) in SHOWN {
        let cells: Vec<String> = arms.iter().map(|arm| cell(arm, key)).collect();
        let column = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(head.width());
        if cells.iter().all(String::is_empty) {
            continue;
        }
        whole += 2 + column;
        // Long names are shortened before a column is left out.
        let name = widest.min(NAME);
        if used - widest + name + 2 + column <= width || columns.is_empty() {
            used += 2 + column;
            columns.push((head, cells.iter().map(|cell| right(cell, column)).collect()));
        } else {
            left_out.push(head);
        }
    }
    let name = widest.min(width.saturating_sub(used - widest).max(16));
    let mut out = "Queues; every element came out exactly once:\n".to_owned();
    let _ = write!(out, "{DIM}{}", " ".repeat(name + 2));
    for (head, cells) in &columns {
        let _ = write!(out, "  {}", right(head, cells[0].width()));
    }
    let _ = writeln!(out, "{DIM:#}");
    for (index, arm) in arms.iter().enumerate() {
        let _ = write!(out, "  {}", fit(&arm.name, name));
        columns.iter().for_each(|(_, cells)| {
            let _ = write!(out, "  {}", cells[index]);
        });
        out.push('\n');
    }
    out + &left_out_line(&left_out, whole, width)
}

/// The width beyond which names are shortened before columns are left out.
const NAME: usize = 36;

fn cell(arm: &Arm, key: &str) -> String {
    if key == BALANCE {
        return balance(arm);
    }
    let Some(sample) = arm.sample(key) else { return String::new() };
    let value = median(&sample.readings);
    match (key, &sample.unit) {
        ("queue.late.share", _) => share(value),
        (_, Unit::Ratio) => format!("{value:.2}"),
        _ => quantity(value, &sample.unit),
    }
}

/// Writes how evenly elements came from the producers and went to the consumers, or ‘–’ if that is unknown.
fn balance(arm: &Arm) -> String {
    let of = |side: &str| {
        let sample = arm.sample(&format!("{BALANCE}.{side}"));
        sample.map_or("–".to_owned(), |sample| format!("{:.2}", median(&sample.readings)))
    };
    match (of("producers"), of("consumers")) {
        (producers, consumers) if producers == "–" && consumers == "–" => String::new(),
        (producers, consumers) => format!("{producers} in, {consumers} out"),
    }
}
