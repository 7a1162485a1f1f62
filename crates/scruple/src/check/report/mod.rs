//! Writes the summary of a gate in every format.

pub mod badge;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod page;
pub mod sarif;
pub mod terminal;

use super::origins::RegressionOrigin;
use super::summary::GateSummary;
use super::weighed_run::WeighedRun;
use crate::render::export::Formats;
use scruple_core::judge::limits::Kept;
use scruple_core::unit::grouped;

/// The formats of a gate, by the endings of their file names.
pub const FORMATS: Formats<fn(&GateSummary, &[WeighedRun]) -> String, 6> = [
    ("html", page::text),
    ("md", |summary, _| markdown::text(summary)),
    ("json", |summary, _| json::text(summary)),
    ("xml", |summary, _| junit::text(summary)),
    ("sarif", |summary, _| sarif::text(summary)),
    ("svg", |summary, _| badge::text(summary)),
];

/// Describes the outcome of a limit. The name of the arm follows.
fn outcome_of_limit(kept: Kept) -> String {
    format!("{} {}", kept.word(), if kept == Kept::CantTell { "for" } else { "by" })
}

/// Returns the name of a function, and its additional cost with the place where the change touches it.
fn origin_words(origin: &RegressionOrigin) -> (String, String) {
    let name = if origin.function.is_empty() { "(no name)" } else { &origin.function };
    let counts = origin.counts.as_ref().map_or_else(String::new, |word| format!(" {word}"));
    let code = if origin.same_code { ", its code is the same" } else { "" };
    let place = origin.hunk.as_ref().map_or_else(String::new, |hunk| format!(", {}", hunk.places()));
    (name.to_owned(), format!("+{}{counts}{code}{place}", grouped(origin.delta.round())))
}
