//! `scruple inspect metrics`: prints the table of metrics.

use crate::fault::{Code, Fault};
use crate::render::output;
use scruple_core::metric::METRICS;
use std::fmt::Write as _;

/// Prints the table of metrics.
pub fn metrics() -> Result<Code, Fault> {
    let mut text = String::new();
    for metric in METRICS {
        let _ = writeln!(
            text,
            "{:<21} {:<6} {:<9} {:<9} {}",
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
