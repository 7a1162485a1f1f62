//! Divides a load into turns and windows.

use scruple_measure::load::cost::window::LENGTHS;
use scruple_measure::load::{LoadResult, Plan, RunPart, WarmUp};
use std::time::Duration;

/// How a load is divided into turns and windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The number of windows of each server.
    pub windows: u32,
    /// The number of turns. A turn is not interrupted. The turns of other servers take place between the turns of a
    /// server.
    pub turns: u32,
    /// Whether the accounts of the server are read at the ends of windows.
    pub weighed: bool,
}

/// The smallest number of turns of several servers. Fewer do not show how much turns differ.
const TURNS: u32 = 3;

/// The smallest length of a turn of several servers, if the total duration allows it.
const TURN: Duration = Duration::from_secs(1);

/// The smallest number of parts of a turn.
const PARTS: u32 = 40;

impl Division {
    /// Returns the division of a load. A single server has one turn. Several servers have several turns, which are long
    /// enough to show a stall.
    pub fn of(plan: &Plan, servers: usize, windows: u32, weighed: bool) -> Division {
        let windows = plan
            .max_requests
            .map_or(windows, |most| windows.min(most.min(u64::from(u32::MAX)) as u32))
            .max(1);
        // The stages of a scenario run once from start to end.
        if plan.scenario.as_ref().is_some_and(|scenario| scenario.duration().is_some()) {
            return Division { windows, turns: 1, weighed };
        }
        let long = (plan.duration.as_nanos() / TURN.as_nanos()).clamp(u128::from(TURNS), u128::from(u32::MAX))
            as u32;
        let turns = if servers > 1 { long.min(windows.div_ceil(2)).max(TURNS.min(windows)) } else { 1 };
        Division { windows: windows.div_ceil(turns) * turns, turns, weighed }
    }

    /// Returns the number of windows in a turn.
    fn in_turn(self) -> u32 {
        self.windows / self.turns
    }

    /// Returns the length of one turn.
    pub fn turn(self, whole: &Plan) -> Duration {
        whole.duration / self.turns
    }

    /// Returns the plan of one turn.
    pub(super) fn plan(self, whole: &Plan, turn: u32) -> Plan {
        let at = |turn: u32| whole.max_requests.map(|all| all * u64::from(turn) / u64::from(self.turns));
        let requests = at(turn + 1).zip(at(turn)).map(|(until, from)| (until - from).max(1));
        let windows = self.in_turn();
        Plan {
            duration: self.turn(whole),
            max_requests: requests,
            warm_up: if turn == 0 { whole.warm_up } else { WarmUp::Off },
            parts: windows * PARTS.div_ceil(windows),
            marks: if self.weighed { self.marks(turn) } else { Vec::new() },
            seed: whole.seed.wrapping_add(u64::from(turn)),
            ..whole.clone()
        }
    }

    /// Returns the times within a turn at which the accounts are read. The stretches between them have [`LENGTHS`].
    fn marks(self, turn: u32) -> Vec<f64> {
        let windows = self.in_turn();
        let parts = |window: u32| LENGTHS[(turn * windows + window) as usize % LENGTHS.len()] as f64;
        let all: f64 = (0..windows).map(parts).sum();
        let mut sum = 0.0;
        let inner = (0..windows.saturating_sub(1)).map(|window| {
            sum += parts(window) / all;
            sum
        });
        inner.collect()
    }

    /// Returns the windows of a turn with their numbers. A window consists of parts of the turn, without those of the
    /// warm-up.
    pub(super) fn windows_of(self, load: &LoadResult) -> Vec<(u32, &[RunPart])> {
        let before = load.parts.iter().take_while(|part| part.to <= 0).count();
        let (cut, each) = (load.warm_up.saturating_sub(before), PARTS.div_ceil(self.in_turn()) as usize);
        let parts = load.parts.get(before..).unwrap_or_default();
        let each = if load.parts.len() == 1 { 1 } else { each };
        let windows = parts.chunks(each).enumerate().map(|(window, parts)| {
            let gone = cut.saturating_sub(window * each).min(parts.len());
            (window as u32, &parts[gone..])
        });
        windows.filter(|(_, parts)| !parts.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_measure::load::Request;

    #[test]
    fn turns_add_up_to_the_whole() {
        let whole = Plan { max_requests: Some(1003), ..Plan::of(Request::get("/")) };
        let division = Division::of(&whole, 2, 10, true);
        assert_eq!(division, Division { windows: 10, turns: 5, weighed: true });
        let plans: Vec<Plan> = (0..5).map(|turn| division.plan(&whole, turn)).collect();
        assert_eq!(plans.iter().filter_map(|plan| plan.max_requests).sum::<u64>(), 1003);
        assert_eq!(plans.iter().map(|plan| plan.duration).sum::<Duration>(), whole.duration);
        assert_eq!(plans[0].warm_up, whole.warm_up);
        assert!(plans[1..].iter().all(|plan| plan.warm_up == WarmUp::Off));
        assert!(plans.iter().all(|plan| plan.parts >= 40 && plan.marks.len() == 1));
    }

    #[test]
    fn one_server_has_one_turn_and_short_loads_of_several_have_three() {
        let whole = Plan::of(Request::get("/"));
        let alone = Division::of(&whole, 1, 10, true);
        assert_eq!((alone.turns, alone.windows), (1, 10));
        let plan = alone.plan(&whole, 0);
        assert_eq!((plan.parts, plan.marks.len()), (40, 9));
        let lengths: Vec<f64> = plan.marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(plan.marks.is_sorted() && (lengths[0] / plan.marks[0] - 3.0).abs() < 1e-9, "{lengths:?}");
        assert_eq!(Division::of(&whole, 2, 20, true), Division { windows: 20, turns: 10, weighed: true });
        let long = Plan { duration: Duration::from_secs(1800), ..whole.clone() };
        assert_eq!(Division::of(&long, 2, 60, true), Division { windows: 60, turns: 30, weighed: true });
        let short = Plan { duration: Duration::from_secs(1), ..whole.clone() };
        assert_eq!(Division::of(&short, 2, 10, false).turns, 3);
        let few = Plan { max_requests: Some(3), ..whole };
        assert_eq!(Division::of(&few, 1, 10, true).windows, 3);
    }
}
