//! Writes findings for people and for programs.

mod clauses;
pub mod json;
pub mod markdown;
pub mod page;
mod remarks;
pub mod row_words;
mod short_names;
pub mod terminal;
pub mod words;

use super::findings::{Findings, ROWS};
use super::gathered_launches::GatheredLaunches;
use crate::profile::{CallProfile, TreeWriter};
use crate::render::export::Formats;

/// The formats of an explanation, by the endings of their file names.
pub const FORMATS: Formats<fn(&Findings, &GatheredLaunches) -> String, 4> = [
    ("md", |found, _| markdown::text(found, ROWS)),
    ("html", |found, gathered| page::text(found, ROWS, gathered)),
    ("svg", page::picture),
    ("json", |found, _| json::text(found)),
];

/// Writes the call trees of both sides: those of the script, if there is one. If there were several runs, these are the
/// first ones.
pub fn trees(found: &Findings, gathered: &GatheredLaunches, write: TreeWriter) -> Vec<u8> {
    let gathered = gathered.script.as_deref().unwrap_or(gathered);
    let side = |(place, letter): (usize, &str)| {
        let title = format!("{letter}: {}", found.names[place]);
        CallProfile::of(&title, &gathered.sides[place][0], &gathered.kind)
    };
    let sides = [(0, "A"), (1, "B")].map(side);
    let count = if gathered.kind.word.is_none() { sides[0].main() } else { gathered.count };
    write(&sides, count)
}
