//! Writes the gate as a badge: a small picture whose text does not depend on colours.

use crate::check::sentence;
use crate::check::summary::GateSummary;
use maud::html;
use scruple_core::judge::limits::Kept;

/// The width of a letter in the font of the badge, and the padding of a text, in pixels.
const LETTER: f64 = 6.6;
const ROOM: f64 = 12.0;

/// Writes the badge as SVG.
pub fn text(summary: &GateSummary) -> String {
    let (word, colour) = match summary.kept {
        Kept::Yes => ("not worse".to_owned(), "#2e7d32"),
        Kept::No => (sentence::exceeding(summary).join(", "), "#b3261e"),
        Kept::CantTell => ("can’t tell".to_owned(), "#5f6368"),
    };
    let label = "performance";
    let width = |text: &str| text.chars().count() as f64 * LETTER + ROOM;
    let (left, right) = (width(label), width(&word));
    let all = format!("{:.0}", left + right);
    let middle = |from: f64, wide: f64| format!("{:.1}", from + wide / 2.0);
    let badge = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(all) height="20" role="img" aria-label={ (label) ": " (word) } {
            title { (label) ": " (word) }
            rect width=(all) height="20" rx="3" fill="#3c4043" {}
            rect x=(format!("{left:.0}")) width=(format!("{right:.0}")) height="20" rx="3" fill=(colour) {}
            g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" {
                text x=(middle(0.0, left)) y="14" { (label) }
                text x=(middle(left, right)) y="14" { (word) }
            }
        }
    };
    badge.into_string() + "\n"
}
