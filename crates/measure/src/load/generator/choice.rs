//! Chooses which of the plan's requests is sent next, if no user determines it.

use super::super::plan::Plan;
use super::super::request::RequestOrder;
use scruple_stats::rng::Pcg;

pub(super) struct Choice {
    random: Pcg,
    /// The index of the next request in turn.
    next: usize,
    order: RequestOrder,
}

impl Choice {
    pub(super) fn of(plan: &Plan, thread: u32) -> Choice {
        // This stream is distinct from those of the schedules.
        let random = Pcg::with_stream(plan.seed, 1 << 32 | u64::from(thread));
        Choice { random, next: 0, order: plan.order }
    }

    /// The index of the next request; `cumulated` are the cumulative sums of the weights.
    pub(super) fn next(&mut self, cumulated: &[f64]) -> u32 {
        if cumulated.len() == 1 {
            return 0;
        }
        if self.order == RequestOrder::InTurn {
            let chosen = self.next;
            self.next = (self.next + 1) % cumulated.len();
            return chosen as u32;
        }
        let drawn = self.random.unit() * cumulated[cumulated.len() - 1];
        cumulated.partition_point(|sum| *sum <= drawn).min(cumulated.len() - 1) as u32
    }
}
