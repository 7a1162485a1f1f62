//! The limits of a load, from the command line and from scenarios.

use super::windows::{TargetServer, part_name};
use crate::fault::Fault;
use scruple_core::limit::Limit;
use scruple_core::unit::Unit;

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
    refuse_changes_of_one_server(sides, &limits)?;
    Ok(limits)
}

/// Refuses a limit on a change if there is no second server to compare with.
fn refuse_changes_of_one_server(sides: &[TargetServer], limits: &[Limit]) -> Result<(), Fault> {
    let several = sides.iter().filter(|side| side.yardstick.is_none()).count() > 1;
    match limits.iter().find(|limit| limit.bound.is_relative() && !several) {
        None => Ok(()),
        Some(Limit { text, metric, .. }) => Err(Fault::usage(format!(
            "the limit ‘{text}’ is a change, and there is only one server: give the one to compare with \
             (--against old=URL), or limit the amount ({metric}<{})",
            match scruple_core::metric::metric(metric).map(|metric| &metric.unit) {
                Some(Unit::Nanoseconds) => "20ms",
                Some(Unit::Bytes) => "1MB",
                Some(Unit::Ratio) => "1%",
                _ => "1000",
            }
        ))),
    }
}
