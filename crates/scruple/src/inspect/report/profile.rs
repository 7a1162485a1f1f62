//! Reports Haskell profiles: the live heap, and the cost centres with most time and memory.

use crate::render::align::{fit, on_points, right, wrap};
use crate::render::block_characters;
use crate::render::colours::{BOLD, DIM};
use crate::render::flame_graph::{self, FlameBox};
use crate::render::stacked_areas::{self, Band};
use scruple_core::unit::{Unit, grouped, quantity, share};
use scruple_measure::runtimes::ghc::cost_centres::CostCentreProfile;
use scruple_measure::runtimes::ghc::heap_profile::HeapProfile;
use scruple_stats::sorting::{self, SortedMap};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The width of a band over time, in columns.
const LINE: usize = 30;

/// A heap profile in JSON. Sizes are in bytes, times in the unit of the profile.
#[derive(Serialize)]
pub struct HeapReport<'a> {
    job: &'a str,
    time_unit: &'a str,
    samples: usize,
    peak: Option<HeapPeak>,
    bands: Vec<HeapBand<'a>>,
}

#[derive(Serialize)]
struct HeapPeak {
    at: f64,
    bytes: f64,
}

#[derive(Serialize)]
struct HeapBand<'a> {
    name: &'a str,
    most: f64,
    at_peak: f64,
}

/// Creates the report on the largest bands.
pub fn heap_report(profile: &HeapProfile, top: usize) -> HeapReport<'_> {
    let peak = profile.peak();
    let at_peak = |name: &str| peak.and_then(|peak| peak.bands.get(name).copied()).unwrap_or(0.0);
    HeapReport {
        job: &profile.job,
        time_unit: &profile.sample_unit,
        samples: profile.samples.len(),
        peak: peak.map(|peak| HeapPeak { at: peak.at, bytes: peak.total() }),
        bands: profile
            .largest()
            .into_iter()
            .take(top)
            .map(|(name, most)| HeapBand { name, most, at_peak: at_peak(name) })
            .collect(),
    }
}

fn moment(profile: &HeapProfile, at: f64) -> String {
    match profile.sample_unit.as_str() {
        "seconds" => quantity(at * 1e9, &Unit::Nanoseconds),
        // A profile may count time in allocated bytes.
        unit => format!("{} {unit}", grouped(at)),
    }
}

/// Writes the table of the largest bands.
pub fn heap_text(profile: &HeapProfile, top: usize, width: usize) -> String {
    let bytes = |bytes: f64| quantity(bytes, &Unit::Bytes);
    let mut out = format!("{BOLD}Heap of ‘{}’{BOLD:#}\n", profile.job);
    let Some(peak) = profile.peak() else {
        out.push_str("The profile has no samples: the program ended before the first.\n");
        return out;
    };
    let all = profile.largest();
    if all.is_empty() {
        let why = "Nothing was live in any of its samples: the program ended before the first that was due; take them more often, with +RTS -i0.01.\n";
        let _ = writeln!(out, "{}", wrap(why, width));
        return out;
    }
    let head = format!(
        "{} samples; in the largest, {} after the start, {} were live; {} bands, the largest first\n",
        profile.samples.len(),
        moment(profile, peak.at),
        bytes(peak.total()),
        all.len()
    );
    let _ = writeln!(out, "{}", wrap(&head, width));
    let report = heap_report(profile, top);
    let mut most: Vec<String> = report.bands.iter().map(|band| bytes(band.most)).collect();
    let mut at_peak: Vec<String> = report.bands.iter().map(|band| bytes(band.at_peak)).collect();
    for cells in [&mut most, &mut at_peak] {
        on_points(cells);
    }
    let widest = |cells: &[String], title: &str| {
        cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(title.len())
    };
    let (first, second) = (widest(&most, "at most"), widest(&at_peak, "at the peak"));
    let room = width.saturating_sub(first + second + 9 + LINE + 10).max(16);
    let name = report.bands.iter().map(|band| band.name.width()).max().unwrap_or(0).min(room);
    let _ = writeln!(
        out,
        "{DIM}  {}  {}  {}  {}{DIM:#}",
        fit("", name),
        right("at most", first),
        right("at the peak", second),
        right("share", 6)
    );
    let end = profile.samples.last().map_or(0.0, |sample| sample.at);
    for ((band, most), at_peak) in report.bands.iter().zip(&most).zip(&at_peak) {
        let line = block_characters::course(&profile.series(band.name), end, band.most, LINE);
        let part = share(band.at_peak / peak.total().max(1.0));
        let text = format!(
            "  {}  {}  {}  {}  {line}",
            fit(band.name, name),
            right(most, first),
            right(at_peak, second),
            right(&part, 6)
        );
        let _ = writeln!(out, "{}", text.trim_end());
    }
    out
}

/// Draws the largest bands over time, and the others as one more band.
pub fn heap_svg(profile: &HeapProfile, top: usize) -> String {
    let moments: Vec<f64> = profile.samples.iter().map(|sample| sample.at).collect();
    let largest: Vec<&str> = profile.largest().into_iter().take(top).map(|(name, _)| name).collect();
    let heights = |name: &str| profile.series(name).into_iter().map(|(_, height)| height).collect();
    let mut bands: Vec<Band> =
        largest.iter().map(|name| Band { name: (*name).to_owned(), heights: heights(name) }).collect();
    let rest: Vec<f64> = profile
        .samples
        .iter()
        .enumerate()
        .map(|(at, sample)| sample.total() - bands.iter().map(|band| band.heights[at]).sum::<f64>())
        .map(|rest| rest.max(0.0))
        .collect();
    if rest.iter().any(|rest| *rest > 0.0) {
        bands.push(Band { name: "everything else".to_owned(), heights: rest });
    }
    let title = format!("Live heap of ‘{}’", profile.job);
    let bytes = |bytes: f64| quantity(bytes, &Unit::Bytes);
    stacked_areas::svg(&title, &moments, &bands, |at| moment(profile, at), bytes)
}

/// The cost by which cost centres are ranked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CostCentreOrder {
    /// Ticks of the profiler's clock.
    Time,
    /// Allocated bytes.
    Bytes,
}

/// A cost centre, summed over all its places in the call tree. Shares of the whole are between 0 and 1.
#[derive(Serialize)]
pub struct CostCentreSum {
    name: String,
    place: String,
    entries: u64,
    time: f64,
    time_with_callees: f64,
    bytes: Option<u64>,
    bytes_share: f64,
    bytes_with_callees: f64,
}

/// A cost-centre profile in JSON.
#[derive(Serialize)]
pub struct CostCentreReport {
    ticks: u64,
    bytes: u64,
    by: &'static str,
    cost_centres: Vec<CostCentreSum>,
}

/// Returns the own cost of a node. It is exact if the profile contains it, and otherwise derived from a rounded share.
fn own(profile: &CostCentreProfile, node: usize, by: CostCentreOrder) -> f64 {
    let node = &profile.nodes[node];
    let (exact, whole, share) = match by {
        CostCentreOrder::Time => (node.ticks, profile.ticks, node.shares.map(|shares| shares.0)),
        CostCentreOrder::Bytes => (node.bytes, profile.bytes, node.shares.map(|shares| shares.1)),
    };
    match (exact, share) {
        (Some(exact), _) => exact as f64 / whole.max(1) as f64,
        (None, Some(share)) => share / 100.0,
        (None, None) => 0.0,
    }
}

fn frames(profile: &CostCentreProfile, by: CostCentreOrder) -> Vec<FlameBox> {
    let frame =
        |(index, node): (usize, &scruple_measure::runtimes::ghc::cost_centres::CostCentreNode)| FlameBox {
            label: profile.label(index),
            group: node.module.clone(),
            own: own(profile, index, by),
            parent: node.parent,
        };
    profile.nodes.iter().enumerate().map(frame).collect()
}

/// Returns the cost centres, the most costly first.
pub fn centres(profile: &CostCentreProfile, by: CostCentreOrder) -> Vec<CostCentreSum> {
    let whole =
        [CostCentreOrder::Time, CostCentreOrder::Bytes].map(|by| flame_graph::totals(&frames(profile, by)));
    let mut found: SortedMap<(String, &str), CostCentreSum> = SortedMap::new();
    for (index, node) in profile.nodes.iter().enumerate() {
        let name = profile.label(index);
        let centre = found.entry((name.clone(), &node.place)).or_insert_with(|| CostCentreSum {
            name: name.clone(),
            place: node.place.clone(),
            entries: 0,
            time: 0.0,
            time_with_callees: 0.0,
            bytes: None,
            bytes_share: 0.0,
            bytes_with_callees: 0.0,
        });
        centre.entries += node.entries;
        centre.time += own(profile, index, CostCentreOrder::Time);
        centre.bytes_share += own(profile, index, CostCentreOrder::Bytes);
        centre.bytes = node.bytes.map(|bytes| bytes + centre.bytes.unwrap_or(0)).or(centre.bytes);
        // The cost of a recursive call is already included in that of the outer call.
        if !called_by_itself(profile, index) {
            centre.time_with_callees += whole[0][index];
            centre.bytes_with_callees += whole[1][index];
        }
    }
    let mut centres: Vec<CostCentreSum> = found.into_values().collect();
    let key = |centre: &CostCentreSum| match by {
        CostCentreOrder::Time => (centre.time, centre.bytes_share),
        CostCentreOrder::Bytes => (centre.bytes_share, centre.time),
    };
    sorting::by(&mut centres, |a, b| {
        let ((a1, a2), (b1, b2)) = (key(a), key(b));
        b1.total_cmp(&a1).then(b2.total_cmp(&a2)).then_with(|| a.name.cmp(&b.name))
    });
    centres
}

fn called_by_itself(profile: &CostCentreProfile, index: usize) -> bool {
    let node = &profile.nodes[index];
    let mut above = node.parent;
    while let Some(parent) = above.map(|at| &profile.nodes[at]) {
        if (&parent.name, &parent.module, &parent.place) == (&node.name, &node.module, &node.place) {
            return true;
        }
        above = parent.parent;
    }
    false
}

/// Creates the report on the most costly cost centres.
pub fn report(profile: &CostCentreProfile, by: CostCentreOrder, top: usize) -> CostCentreReport {
    let mut cost_centres = centres(profile, by);
    cost_centres.truncate(top);
    let by = if by == CostCentreOrder::Time { "time" } else { "bytes" };
    CostCentreReport { ticks: profile.ticks, bytes: profile.bytes, by, cost_centres }
}

/// Writes the table of the most costly cost centres.
pub fn text(
    title: &str,
    profile: &CostCentreProfile,
    by: CostCentreOrder,
    top: usize,
    width: usize,
) -> String {
    let mut out = format!("{BOLD}Cost centres of ‘{title}’{BOLD:#}\n");
    let all = centres(profile, by);
    let _ = writeln!(
        out,
        "{} ticks of the clock, {} allocated; {} cost centres, sorted by {}\n",
        grouped(profile.ticks as f64),
        quantity(profile.bytes as f64, &Unit::Bytes),
        all.len(),
        if by == CostCentreOrder::Time { "time" } else { "bytes" }
    );
    if by == CostCentreOrder::Time && profile.ticks < 100 {
        let few = format!(
            "With {} ticks the times are little more than a guess: let it run longer, or take --sort bytes.\n",
            profile.ticks
        );
        let _ = writeln!(out, "{}", wrap(&few, width));
    }
    let shown = &all[..all.len().min(top)];
    let room = width.saturating_sub(56).max(16);
    let name = shown.iter().map(|centre| centre.name.width()).max().unwrap_or(0).min(room);
    let _ = writeln!(out, "{DIM}  {}  {:>15}  {:>15}{DIM:#}", fit("", name), "time", "bytes");
    let _ = writeln!(
        out,
        "{DIM}  {}  {:>6}  {:>7}  {:>6}  {:>7}  {:>13}{DIM:#}",
        fit("", name),
        "own",
        "in all",
        "own",
        "in all",
        "entered"
    );
    for centre in shown {
        let _ = writeln!(
            out,
            "  {}  {}  {}  {}  {}  {}",
            fit(&centre.name, name),
            right(&share(centre.time), 6),
            right(&share(centre.time_with_callees), 7),
            right(&share(centre.bytes_share), 6),
            right(&share(centre.bytes_with_callees), 7),
            right(&grouped(centre.entries as f64), 13)
        );
    }
    out
}

/// Draws the call tree as a flame graph.
pub fn svg(title: &str, profile: &CostCentreProfile, by: CostCentreOrder) -> String {
    let (what, whole) = match by {
        CostCentreOrder::Time => ("time", profile.ticks),
        CostCentreOrder::Bytes => ("bytes allocated", profile.bytes),
    };
    let written = |part: f64| match by {
        CostCentreOrder::Time => format!("{} ticks", grouped((part * whole as f64).round())),
        CostCentreOrder::Bytes => quantity((part * whole as f64).round(), &Unit::Bytes),
    };
    flame_graph::svg(&format!("{what} of ‘{title}’"), &frames(profile, by), written)
}
