//! The limits of a load, from the command line and from scenarios.

use super::windows::{TargetServer, part_name};
use crate::fault::Fault;
use crate::run_report::metrics_and_limits;
use scruple_core::limit::Limit;

/// Returns the limits of the command line together with those of the scenarios.
pub fn with_limits_of(sides: &[TargetServer], mut limits: Vec<Limit>) -> Result<Vec<Limit>, Fault> {
    let subjects = sides.iter().filter(|side| side.yardstick.is_none());
    for side in subjects {
        for (row, text_of_limit) in &side.limits {
            let text = format!("load.{text_of_limit}");
            let limit = Limit::parse(&text)
                .map_err(|why| Fault::usage(format!("in [limits] of the scenario, of ‘{row}’: {why}")))?;
            let arm = match row.as_str() {
                "*" => side.name.clone(),
                row => part_name(&side.name, row, sides.len() > 1),
            };
            limits.push(Limit { arm, text: format!("{row}: {text_of_limit}"), ..limit });
        }
    }
    if sides.iter().filter(|side| side.yardstick.is_none()).count() < 2 {
        let why = "there is only one server: give the one to compare with (--against old=URL)";
        metrics_and_limits::refuse_changes(&limits, why)?;
    }
    Ok(limits)
}
