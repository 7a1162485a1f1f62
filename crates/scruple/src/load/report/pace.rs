//! Describes the pace of a load.

use scruple_core::unit::grouped;
use scruple_measure::load::{Arrivals, Pace, Plan, Scenario, Stage};

/// Describes the pace of the load.
pub(crate) fn pace(plan: &Plan) -> String {
    if let Some(scenario) = &plan.scenario {
        return users(plan, scenario);
    }
    match plan.pace {
        Pace::Closed => "closed loop".to_owned(),
        Pace::Open { rate, arrivals } => {
            let gaps = if arrivals == Arrivals::Poisson { " (Poisson)" } else { "" };
            format!("open loop, {} requests/s{gaps}", grouped(rate))
        }
    }
}

/// Describes the model of users, and their number.
fn users(plan: &Plan, scenario: &Scenario) -> String {
    if scenario.recorded() > 0 {
        return format!("{} recorded requests", grouped(scenario.recorded() as f64));
    }
    let level = |stage: &Stage| [stage.from, stage.to];
    let levels = || scenario.stages.iter().flat_map(level);
    let span = || {
        let (least, most) = (levels().fold(f64::INFINITY, f64::min), levels().fold(0.0, f64::max));
        let range = if least < most { format!("{} to ", grouped(least)) } else { String::new() };
        let stages = scenario.stages.len();
        (
            format!("{range}{}", grouped(most)),
            if stages > 1 { format!(" in {stages} stages") } else { String::new() },
        )
    };
    match (plan.pace, scenario.stages.is_empty()) {
        (Pace::Closed, true) => format!("closed model, {} users", grouped(f64::from(plan.connections))),
        (Pace::Closed, false) => {
            let (users, stages) = span();
            format!("closed model, {users} users{stages}")
        }
        (Pace::Open { rate, .. }, true) => format!("open model, {} sessions/s", grouped(rate)),
        (Pace::Open { .. }, false) => {
            let (rates, stages) = span();
            format!("open model, {rates} sessions/s{stages}")
        }
    }
}
