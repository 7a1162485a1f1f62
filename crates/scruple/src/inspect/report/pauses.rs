//! Reports the pauses of a collector that logs every collection: by generation, and as a distribution.

use crate::render::align::{fit, on_points, right, wrap};
use crate::render::block_characters;
use crate::render::colours::{BOLD, DIM};
use scruple_core::unit::{Unit, grouped, quantity};
use scruple_measure::runtimes::ghc::log::{Collection, CollectionLog};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The width of the bars of the distribution, and of the heap over time, in columns.
const BAR: usize = 40;

/// The pauses of one program.
#[derive(Serialize)]
pub struct ProgramPauses {
    /// The name of the program or of the log file.
    subject: String,
    /// The number of processes that logged.
    processes: usize,
    /// The figures of all collections, then those of each generation.
    generations: Vec<Generation>,
    /// The number of pauses in each bin.
    histogram: Vec<Bin>,
    /// The live bytes after each collection of the oldest generation.
    residency: Vec<Residency>,
}

/// The pauses of one generation, or of all, in nanoseconds.
#[derive(Serialize)]
struct Generation {
    generation: Option<u32>,
    count: usize,
    median: f64,
    p90: f64,
    p99: f64,
    max: f64,
    total: f64,
    copied: f64,
}

/// A bin of the distribution, with bounds in nanoseconds.
#[derive(Serialize)]
struct Bin {
    above: f64,
    up_to: f64,
    count: usize,
}

/// The live memory at a moment.
#[derive(Serialize)]
struct Residency {
    at: f64,
    live: f64,
}

const NANOSECONDS: f64 = 1e9;

impl ProgramPauses {
    /// Creates the report from the logs of one program, which contain at least one collection.
    pub fn of(subject: &str, logs: &[&CollectionLog]) -> ProgramPauses {
        let all = CollectionLog {
            collections: logs.iter().flat_map(|log| log.collections.iter().copied()).collect(),
        };
        let mut known: Vec<u32> = all.collections.iter().map(|collection| collection.generation).collect();
        known.sort_unstable();
        known.dedup();
        let mut generations = vec![generation(None, &all)];
        for one in known {
            let of_it = |collection: &&Collection| collection.generation == one;
            let collections = all.collections.iter().filter(of_it).copied().collect();
            generations.push(generation(Some(one), &CollectionLog { collections }));
        }
        // The heaps of several processes are unrelated. The first process that logged is the main one.
        let residency = logs.first().map(|log| log.residency()).unwrap_or_default();
        ProgramPauses {
            subject: subject.to_owned(),
            processes: logs.len(),
            generations,
            histogram: histogram(&all),
            residency: residency
                .into_iter()
                .map(|(at, live)| Residency { at: at * NANOSECONDS, live })
                .collect(),
        }
    }
}

fn generation(generation: Option<u32>, log: &CollectionLog) -> Generation {
    let sum = |pick: fn(&Collection) -> f64| log.collections.iter().map(pick).sum::<f64>();
    let pause = |share: f64| log.pause(share).unwrap_or(0.0) * NANOSECONDS;
    Generation {
        generation,
        count: log.collections.len(),
        median: pause(0.5),
        p90: pause(0.9),
        p99: pause(0.99),
        max: pause(1.0),
        total: sum(|collection| collection.pause) * NANOSECONDS,
        copied: sum(|collection| collection.copied),
    }
}

/// Returns bins that end at 1, 2 and 5 times each power of ten, from the resolution of the log to the longest pause.
fn histogram(log: &CollectionLog) -> Vec<Bin> {
    let pauses: Vec<f64> = log.collections.iter().map(|collection| collection.pause).collect();
    let count =
        |above: f64, up_to: f64| pauses.iter().filter(|pause| **pause > above && **pause <= up_to).count();
    let mut bins = vec![Bin { above: f64::NEG_INFINITY, up_to: 0.0, count: count(f64::NEG_INFINITY, 0.0) }];
    let mut above = 0.0;
    'powers: for power in -3..6 {
        for digit in [1.0, 2.0, 5.0] {
            if log.longest_pause() <= above {
                break 'powers;
            }
            let up_to = digit * 10_f64.powi(power);
            // The bound is computed with rounding errors, which must not move a pause of exactly this length to the
            // next bin.
            let bound = up_to * (1.0 + 1e-9);
            bins.push(Bin { above, up_to, count: count(above, bound) });
            above = bound;
        }
    }
    for bin in &mut bins {
        bin.above = if bin.above > 0.0 { (bin.above * NANOSECONDS).round() } else { 0.0 };
        bin.up_to *= NANOSECONDS;
    }
    bins
}

/// Writes the pauses and the live memory for a terminal with this many columns.
pub fn text(pauses: &ProgramPauses, width: usize) -> String {
    let time = |ns: f64| quantity(ns, &Unit::Nanoseconds);
    // A pause takes some time, even if the log rounds it to zero.
    let pause = |ns: f64| if ns == 0.0 { "< 1.00 ms".to_owned() } else { time(ns) };
    let mut out = format!("{BOLD}Pauses of ‘{}’{BOLD:#}\n", pauses.subject);
    let _ = writeln!(
        out,
        "{}\n",
        wrap(
            &format!(
                "every collection of {}, to the thousandth of a second in which the runtime logs them",
                if pauses.processes == 1 {
                    "one process".to_owned()
                } else {
                    format!("{} processes", pauses.processes)
                }
            ),
            width
        )
    );
    let heads = ["count", "median", "p90", "p99", "longest", "total", "copied"];
    let name = |one: &Generation| one.generation.map_or("all".to_owned(), |n| format!("generation {n}"));
    let mut texts: Vec<String> =
        pauses.generations.iter().map(|one| format!("  {}", fit(&name(one), 13))).collect();
    let mut head = fit("", 15);
    for (index, title) in heads.iter().enumerate() {
        let cell = |one: &Generation| match index {
            0 => grouped(one.count as f64),
            1 => pause(one.median),
            2 => pause(one.p90),
            3 => pause(one.p99),
            4 => pause(one.max),
            5 => time(one.total),
            _ => quantity(one.copied, &Unit::Bytes),
        };
        let mut cells: Vec<String> = pauses.generations.iter().map(cell).collect();
        on_points(&mut cells);
        let columns = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(title.len());
        let _ = write!(head, "  {}", right(title, columns));
        for (text, cell) in texts.iter_mut().zip(&cells) {
            let _ = write!(text, "  {}", right(cell, columns));
        }
    }
    let _ = writeln!(out, "{DIM}{head}{DIM:#}");
    for text in texts {
        let _ = writeln!(out, "{}", text.trim_end());
    }
    let _ = writeln!(out);
    let most = pauses.histogram.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    for bin in &pauses.histogram {
        let label = match bin.up_to == 0.0 {
            true => "< 1 ms".to_owned(),
            false => format!("to {}", time(bin.up_to)),
        };
        let columns = (bin.count * BAR).div_ceil(most);
        let line = format!(
            "  {}  {}  {}",
            right(&label, 12),
            right(&grouped(bin.count as f64), 9),
            "▇".repeat(columns)
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if let (Some(last), true) = (pauses.residency.last(), pauses.residency.len() > 1) {
        let values: Vec<(f64, f64)> = pauses.residency.iter().map(|one| (one.at, one.live)).collect();
        let top = values.iter().map(|(_, live)| *live).fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "\n  {}  {}  at most {}, {} at the end",
            fit("live heap", 9),
            block_characters::course(&values, last.at, top, BAR),
            quantity(top, &Unit::Bytes),
            quantity(last.live, &Unit::Bytes)
        );
    }
    out
}
