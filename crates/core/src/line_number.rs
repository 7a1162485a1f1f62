//! Where an error is in a text.

use std::fmt::Display;

/// Returns the text of an error, with the number of the line that has this byte.
///
/// ```
/// use scruple_core::line_number::in_line;
/// assert_eq!(in_line("a = 1\nb = x\n", 10, "a number is needed"), "line 2: a number is needed");
/// ```
pub fn in_line(text: &str, at: usize, why: impl Display) -> String {
    let before = &text.as_bytes()[..at.min(text.len())];
    format!("line {}: {why}", before.iter().filter(|byte| **byte == b'\n').count() + 1)
}
