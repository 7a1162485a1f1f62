//! Writes findings for people and for programs.

pub mod json;
pub mod markdown;
pub mod page;
pub mod terminal;
pub mod words;

use super::counted_runs::Gathered;
use super::findings::Findings;
use crate::show::export::Formats;

/// The number of functions that are listed. JSON contains all of them.
pub const ROWS: usize = 10;

/// The formats of an explanation, by the endings of their file names.
pub const FORMATS: Formats<fn(&Findings, &Gathered) -> String, 3> = [
    ("md", |found, _| markdown::text(found, ROWS)),
    ("html", |found, gathered| page::text(found, ROWS, gathered)),
    ("json", |found, _| json::text(found)),
];
