//! The limits of a load, from the command line and from scenarios.

use super::windows::{LoadedServer, part_name};
use crate::fault::Fault;
use scruple_core::budget::Budget;
use scruple_core::unit::Unit;

/// Returns the limits of the command line together with those of the scenarios.
pub fn with_limits_of(sides: &[LoadedServer], mut budgets: Vec<Budget>) -> Result<Vec<Budget>, Fault> {
    let subjects = sides.iter().filter(|side| side.yardstick.is_none());
    for side in subjects {
        for (row, limit) in &side.limits {
            let text = format!("load.{limit}");
            let budget = Budget::parse(&text)
                .map_err(|why| Fault::usage(format!("in [limits] of the scenario, of ‘{row}’: {why}")))?;
            let arm = match row.as_str() {
                "*" => side.name.clone(),
                row => part_name(&side.name, row, sides.len() > 1),
            };
            budgets.push(Budget { arm, text: format!("{row}: {limit}"), ..budget });
        }
    }
    refuse_changes_of_one_server(sides, &budgets)?;
    Ok(budgets)
}

/// Refuses a limit on a change if there is no second server to compare with.
fn refuse_changes_of_one_server(sides: &[LoadedServer], budgets: &[Budget]) -> Result<(), Fault> {
    let several = sides.iter().filter(|side| side.yardstick.is_none()).count() > 1;
    match budgets.iter().find(|budget| budget.limit.is_relative() && !several) {
        None => Ok(()),
        Some(Budget { text, metric, .. }) => Err(Fault::usage(format!(
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
