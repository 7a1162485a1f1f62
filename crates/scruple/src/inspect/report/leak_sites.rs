//! Reports which sites keep memory: below the verdict of a search for leaks, as JSON, and as a section of its page.

use super::sites::{chain, others_of};
use super::sites_json::PlaceEntry;
use crate::inspect::leak_sites::{BlockCounter, GrowingSite, LeakSites, Sites};
use crate::inspect::site_rows::place;
use crate::render::align::{fit, on_points, right, wrap};
use crate::render::colours::{BOLD, DIM};
use crate::render::page::{
    Cell, ColumnHeading, Section, SectionPart, Table, harmless_name, harmless_sentence,
};
use scruple_code::allocation_sites::MemoryBlocks;
use scruple_core::unit::{Unit, grouped, quantity};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// The largest number of sites in a table; JSON has all.
const MOST: usize = 10;

/// A row of the table: bytes and blocks per unit of work, and the site.
struct LeakSiteRow {
    bytes: String,
    blocks: String,
    site: String,
    is_sum: bool,
}

fn lines(sites: &LeakSites) -> Vec<LeakSiteRow> {
    let line = |(bytes, blocks): (f64, f64), site: String, is_sum: bool| LeakSiteRow {
        bytes: quantity(bytes, &Unit::Bytes),
        blocks: quantity(blocks, &Unit::Count),
        site,
        is_sum,
    };
    let (shown, rest) = sites.rows.split_at(MOST.min(sites.rows.len()));
    let mut lines: Vec<LeakSiteRow> =
        shown.iter().map(|site| line(sites.per_unit(site.left), chain(&site.row), false)).collect();
    if !rest.is_empty() {
        let mut left = [MemoryBlocks::default(); 2];
        rest.iter().for_each(|site| left.iter_mut().zip(site.left).for_each(|(sum, one)| *sum += one));
        lines.push(line(sites.per_unit(left), others_of(rest.len()), false));
    }
    lines.push(line(sites.total(), "all".to_owned(), true));
    lines
}

fn heading(sites: &LeakSites) -> String {
    let [(small, _), (large, _)] = sites.sizes;
    format!(
        "Where it grows, for each unit of work, from size {} to {}; every allocation was counted {}, with its size as \
         requested (malloc.live has what malloc makes of it).",
        grouped(small),
        grouped(large),
        match sites.by {
            BlockCounter::Tree(_) => "under valgrind",
            BlockCounter::Recorder => "without valgrind",
        }
    )
}

/// Writes the sites for a terminal with this many columns.
pub fn text(sites: &Sites, width: usize) -> String {
    let sites = match sites {
        Sites::NotWanted => return String::new(),
        Sites::Unknown(why) => {
            return format!("{DIM}{}{DIM:#}\n", wrap(&format!("Its sites are not known: {why}."), width));
        }
        Sites::Found(sites) => sites,
    };
    let mut out = format!("\n{}\n\n", wrap(&heading(sites), width));
    let lines = lines(sites);
    let mut columns = Vec::new();
    let bytes = lines.iter().map(|line| line.bytes.clone()).collect();
    let blocks = lines.iter().map(|line| line.blocks.clone()).collect();
    let columns_of: [(&str, Vec<String>); 2] = [("bytes", bytes), ("blocks", blocks)];
    for (title, mut cells) in columns_of {
        on_points(&mut cells);
        let wide = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(title.len());
        columns.push((right(title, wide), cells.iter().map(|cell| right(cell, wide)).collect::<Vec<_>>()));
    }
    let [(first, bytes), (second, blocks)] = &columns[..] else { return out };
    let _ = writeln!(out, "  {DIM}{first}  {second}  site{DIM:#}");
    for ((line, bytes), blocks) in lines.iter().zip(bytes).zip(blocks) {
        let text = fit(&format!("  {bytes}  {blocks}  {}", line.site), width);
        match line.is_sum {
            true => _ = writeln!(out, "{BOLD}{}{BOLD:#}", text.trim_end()),
            false => _ = writeln!(out, "{}", text.trim_end()),
        }
    }
    for remark in &sites.remarks {
        let _ = writeln!(out, "{DIM}{}{DIM:#}", wrap(remark, width));
    }
    out
}

/// Returns the section of the page, if there is anything to show.
pub fn section(sites: &Sites) -> Option<Section> {
    let parts = match sites {
        Sites::NotWanted => return None,
        Sites::Unknown(why) => {
            vec![SectionPart::Note(harmless_sentence(&format!("The sites are not known: {why}.")))]
        }
        Sites::Found(sites) => {
            let rows = lines(sites).into_iter().map(|line| {
                vec![Cell::text(harmless_name(&line.site)), Cell::text(line.bytes), Cell::text(line.blocks)]
            });
            let table = Table {
                label: "Sites by the growth of what they leave at the end".to_owned(),
                head: vec![
                    ColumnHeading::text("Site"),
                    ColumnHeading::number("Bytes per unit"),
                    ColumnHeading::number("Blocks per unit"),
                ],
                rows: rows.collect(),
                stacks: true,
                ..Table::default()
            };
            let remarks = sites.remarks.iter().map(|remark| SectionPart::Note(harmless_sentence(remark)));
            [SectionPart::Words(heading(sites)), SectionPart::Table(table)]
                .into_iter()
                .chain(remarks)
                .collect()
        }
    };
    Some(Section { title: "Sites".to_owned(), folded: None, parts })
}

/// The sites in JSON.
#[derive(Serialize)]
pub struct LeakSitesEntry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<&'a str>,
    /// What was left at the end in all, by size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<LeftEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_unit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks_per_unit: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sites: Vec<GrowingEntry<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    remarks: &'a [String],
}

#[derive(Serialize)]
struct LeftEntry {
    n: f64,
    #[serde(flatten)]
    left: MemoryBlocks,
}

#[derive(Serialize)]
struct GrowingEntry<'a> {
    #[serde(flatten)]
    place: PlaceEntry<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<&'a str>,
    bytes_per_unit: f64,
    blocks_per_unit: f64,
    left: [MemoryBlocks; 2],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    callers: Vec<String>,
}

/// Returns the sites as JSON has them, if they were wanted.
pub fn entry(sites: &Sites) -> Option<LeakSitesEntry<'_>> {
    let none = LeakSitesEntry {
        unknown: None,
        sizes: Vec::new(),
        bytes_per_unit: None,
        blocks_per_unit: None,
        sites: Vec::new(),
        remarks: &[],
    };
    match sites {
        Sites::NotWanted => None,
        Sites::Unknown(why) => Some(LeakSitesEntry { unknown: Some(why), ..none }),
        Sites::Found(found) => {
            let (bytes, blocks) = found.total();
            let entry = |site: &'_ GrowingSite| found.per_unit(site.left);
            let site = |site| growing(site, entry(site));
            Some(LeakSitesEntry {
                sizes: found.sizes.iter().map(|(n, left)| LeftEntry { n: *n, left: *left }).collect(),
                bytes_per_unit: Some(bytes),
                blocks_per_unit: Some(blocks),
                sites: found.rows.iter().map(site).collect(),
                remarks: &found.remarks,
                ..none
            })
        }
    }
}

fn growing(site: &GrowingSite, (bytes_per_unit, blocks_per_unit): (f64, f64)) -> GrowingEntry<'_> {
    let callers = std::iter::successors(site.row.callers.first(), |row| row.callers.first());
    GrowingEntry {
        place: PlaceEntry::of(&site.row.frame),
        through: site.row.through.as_deref(),
        bytes_per_unit,
        blocks_per_unit,
        left: site.left,
        callers: callers.map(|row| place(&row.frame)).collect(),
    }
}
