//! The summary of a gate in every format.

pub mod badge;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod sarif;
pub mod terminal;

use super::explained::Origin;
use super::summary::Summary;
use crate::show::export::Format;
use scruple_core::unit::grouped;

/// The summary in one of the formats of gates.
pub fn formatted(summary: &Summary, format: Format) -> String {
    match format {
        Format::Json => json::text(summary),
        Format::Junit => junit::text(summary),
        Format::Sarif => sarif::text(summary),
        Format::Svg => badge::text(summary),
        _ => markdown::text(summary),
    }
}

/// How much more a function costs, and where the change touches it.
fn origin_words(origin: &Origin) -> (String, String) {
    let name = if origin.function.is_empty() { "(no name)" } else { &origin.function };
    let place = origin.hunk.as_ref().map_or_else(String::new, |hunk| format!(", {}", hunk.place()));
    (name.to_owned(), format!("+{}{place}", grouped(origin.delta.round())))
}
