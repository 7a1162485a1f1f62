//! Which of the plan's requests is sent next, where no user says so.

use super::super::plan::{Order, Plan};
use scruple_core::stats::rng::Pcg;

pub(super) struct Choice {
    random: Pcg,
    /// The next in turn.
    next: usize,
    order: Order,
}

impl Choice {
    pub(super) fn of(plan: &Plan, thread: u32) -> Choice {
        // A stream apart from those of the schedules.
        let random = Pcg::with_stream(plan.seed, 1 << 32 | u64::from(thread));
        Choice { random, next: 0, order: plan.order }
    }

    /// The next request; `cumulated` are the sums of weights up to and with each.
    pub(super) fn next(&mut self, cumulated: &[f64]) -> u32 {
        if cumulated.len() == 1 {
            return 0;
        }
        if self.order == Order::InTurn {
            let chosen = self.next;
            self.next = (self.next + 1) % cumulated.len();
            return chosen as u32;
        }
        let drawn = self.random.unit() * cumulated[cumulated.len() - 1];
        cumulated.partition_point(|sum| *sum <= drawn).min(cumulated.len() - 1) as u32
    }
}
