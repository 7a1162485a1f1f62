//! The colours of all text for a terminal. `cli/colour.rs` decides whether they are used. Pages have theirs in
//! `page/style.css`, and pictures in `svg.rs`.

use anstyle::{AnsiColor, Style};

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
