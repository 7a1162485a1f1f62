//! Allocation sites in the formats of call trees.

use super::stacks::{Column, Stacks};
use super::{ProfileFrame, collapsed, firefox, pprof, speedscope};
use scruple_code::allocation_sites::{HeapAmounts, HeapSites, SiteCounting};
use scruple_core::harmless_text::plain;
use std::borrow::Cow;
use std::path::Path;

/// The formats of allocation sites besides those of the report.
pub const FORMATS: [&str; 4] = ["collapsed", "pprof", "speedscope", "firefox"];

/// A figure of a context.
type ContextFigure = fn(&HeapAmounts) -> u64;

/// The figures. The first four have the names that pprof uses; `inuse` is what was in use at the peak.
const COLUMNS: [(&str, &str, ContextFigure); 6] = [
    ("alloc_objects", "count", |amounts| amounts.allocated.blocks),
    ("alloc_space", "bytes", |amounts| amounts.allocated.bytes),
    ("inuse_objects", "count", |amounts| amounts.at_peak.blocks),
    ("inuse_space", "bytes", |amounts| amounts.at_peak.bytes),
    ("end_objects", "count", |amounts| amounts.at_end.blocks),
    ("end_space", "bytes", |amounts| amounts.at_end.bytes),
];

/// The index of the bytes at the peak.
const MAIN: usize = 3;

/// Writes the sites of a program's processes in one of the [`FORMATS`].
pub fn bytes(format: &str, title: &str, processes: &[HeapSites]) -> Vec<u8> {
    let stacks = [stacks(title, processes)];
    match format {
        "collapsed" => collapsed::text(&stacks).into_bytes(),
        "pprof" => pprof::bytes(&stacks),
        "speedscope" => speedscope::text(&stacks).into_bytes(),
        _ => firefox::text(&stacks).into_bytes(),
    }
}

/// The stacks of all processes, each below a frame with its command line if there are several.
fn stacks(title: &str, processes: &[HeapSites]) -> Stacks<'static> {
    let mut frames: Vec<ProfileFrame> = Vec::new();
    let mut nodes = Vec::new();
    let mut own: Vec<HeapAmounts> = Vec::new();
    for sites in processes {
        let root = (processes.len() > 1).then_some(nodes.len());
        if root.is_some() {
            let name = plain(&format!("{} [{}]", sites.words.join(" "), sites.process));
            nodes.push((None, frames.len()));
            own.push(HeapAmounts::default());
            frames.push(ProfileFrame { name, ..ProfileFrame::default() });
        }
        let (frame, node) = (frames.len(), nodes.len());
        frames.extend(sites.frames.iter().map(|frame| {
            let object = frame.object.as_deref().unwrap_or_default();
            ProfileFrame {
                name: plain(&frame.name),
                object: plain(object),
                is_own: sites.words.first().is_some_and(|word| {
                    Path::new(word)
                        .file_name()
                        .is_some_and(|name| Some(name) == Path::new(object).file_name())
                }),
                line: frame.file.as_deref().map(plain).zip(frame.line),
            }
        }));
        nodes.extend(
            sites
                .contexts
                .iter()
                .map(|context| (context.parent.map(|parent| node + parent).or(root), frame + context.frame)),
        );
        own.extend(sites.contexts.iter().map(|context| context.own));
    }
    let column = |(word, unit, figure): &(&'static str, &'static str, ContextFigure)| Column {
        word: Cow::Borrowed(*word),
        unit,
        own: own.iter().map(figure).collect(),
    };
    let columns = COLUMNS.iter().map(column).collect();
    let between = processes.iter().find_map(|sites| match sites.counting {
        SiteCounting::Exact => None,
        SiteCounting::Sampled { bytes, .. } => Some(bytes),
    });
    let (title, frames) = (Cow::Owned(plain(title)), Cow::Owned(frames));
    Stacks { title, frames, nodes, columns, main: MAIN, bytes_between_samples: between }
}
