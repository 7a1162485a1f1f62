//! `scruple inspect metrics`: prints the table of metrics.

use crate::fault::{Code, Fault};
use crate::render::output;
use scruple_core::metric::METRICS;
use std::fmt::Write as _;

/// Prints the table of metrics.
pub fn metrics() -> Result<Code, Fault> {
    let mut text = String::new();
    for metric in METRICS {
        // For a function, events that come once in many iterations are not as certain as for a program.
        let of_function =
            if metric.is_rare { "; of a function, a mean over long batches with an interval" } else { "" };
        let _ = writeln!(
            text,
            "{:<21} {:<6} {:<9} {:<9} {}{of_function}",
            metric.key,
            metric.unit.name(),
            metric.pass.word(),
            metric.quality.word(),
            metric.help
        );
    }
    output::print(&text)?;
    Ok(Code::Fine)
}
