//! The colours of all text for a terminal, and the style sheet of pages and charts. `cli/colour.rs` decides whether a
//! terminal has colours. Flame graphs and bands have theirs in `svg.rs`.

use anstyle::{AnsiColor, Style};

/// The style sheet of pages and charts, which contains no text from outside.
pub(crate) const STYLE_SHEET: &str = include_str!("style.css");

/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// What matters less than the rest.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Better, kept, correct.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Worse, exceeded, wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Undecided, and what needs attention.
pub(crate) const OPEN: Style = AnsiColor::Yellow.on_default();
