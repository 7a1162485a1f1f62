//! The limits of a load, from the command line and from scenarios.

use super::windows::{Side, part_name};
use crate::fault::Fault;
use scruple_core::budget::Budget;

/// Returns the limits of the command line together with those of the scenarios.
pub fn with_limits_of(sides: &[Side], mut budgets: Vec<Budget>) -> Result<Vec<Budget>, Fault> {
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
    Ok(budgets)
}
