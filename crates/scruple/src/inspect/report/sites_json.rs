//! Writes allocation sites as JSON.

use super::sites;
use crate::inspect::command_sites::CommandSites;
use crate::inspect::site_rows::{SiteRow, rows};
use crate::render::export::Formats;
use crate::render::json;
use scruple_code::allocation_sites::{
    CourseUnit, HeapAmounts, HeapSites, MemoryBlocks, SiteCounting, SiteFrame,
};
use serde::Serialize;

/// The formats of the report, besides those of a page and of call trees.
pub const FORMATS: Formats<fn(&CommandSites) -> String, 2> = [("json", text), ("svg", sites::flame_graph)];

#[derive(Serialize)]
struct SitesJson<'a> {
    command: &'a str,
    counting: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    processes: Vec<ProcessEntry<'a>>,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct ProcessEntry<'a> {
    pid: i32,
    command: &'a [String],
    #[serde(flatten)]
    total: HeapAmounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited: Option<MemoryBlocks>,
    course: CourseEntry<'a>,
    sites: Vec<SiteEntry<'a>>,
}

#[derive(Serialize)]
struct CourseEntry<'a> {
    unit: &'static str,
    points: &'a [(u64, u64)],
}

/// A site, or a caller of one, in JSON.
#[derive(Serialize)]
pub struct SiteEntry<'a> {
    #[serde(flatten)]
    place: PlaceEntry<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<&'a str>,
    #[serde(flatten)]
    amounts: HeapAmounts,
    /// Of the share in the bytes at the peak, if it is estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_at_peak: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    callers: Vec<SiteEntry<'a>>,
}

/// A frame in JSON.
#[derive(Serialize)]
pub struct PlaceEntry<'a> {
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
}

impl<'a> PlaceEntry<'a> {
    /// Creates the entry of a frame.
    pub fn of(frame: &'a SiteFrame) -> PlaceEntry<'a> {
        PlaceEntry {
            function: &frame.name,
            file: frame.file.as_deref(),
            line: frame.line,
            object: frame.object.as_deref(),
        }
    }
}

fn entries<'a>(rows: &'a [SiteRow], sites: Option<&HeapSites>) -> Vec<SiteEntry<'a>> {
    let entry = |row: &'a SiteRow| SiteEntry {
        place: PlaceEntry::of(&row.frame),
        through: row.through.as_deref(),
        amounts: row.amounts,
        share_at_peak: sites
            .and_then(|sites| sites::interval(sites, std::slice::from_ref(row)))
            .map(|interval| [interval.low, interval.high]),
        callers: entries(&row.callers, None),
    };
    rows.iter().map(entry).collect()
}

/// Writes all sites of all processes as JSON.
pub fn text(found: &CommandSites) -> String {
    let all: Vec<Vec<SiteRow>> = found.processes.iter().map(|sites| rows(sites, sites::peak)).collect();
    let processes = found.processes.iter().zip(&all).map(|(sites, rows)| ProcessEntry {
        pid: sites.process,
        command: &sites.words,
        total: sites.total,
        inherited: Some(sites.inherited).filter(|blocks| blocks.blocks > 0 || blocks.bytes > 0),
        course: CourseEntry {
            unit: match sites.course.unit {
                CourseUnit::Instructions => "instructions",
                CourseUnit::Nanoseconds => "ns",
                CourseUnit::AllocatedBytes => "allocated_bytes",
            },
            points: &sites.course.points,
        },
        sites: entries(rows, Some(sites)),
    });
    let (counting, sampled) = match found.processes.first().map(|sites| sites.counting) {
        Some(SiteCounting::Sampled { bytes, samples }) => ("sampled", Some((bytes, samples))),
        _ => ("exact", None),
    };
    json::document(&SitesJson {
        command: &found.title,
        counting,
        sampled_bytes: sampled.map(|(bytes, _)| bytes),
        samples: sampled.map(|(_, samples)| samples),
        processes: processes.collect(),
        remarks: sites::remarks(found),
    })
}
