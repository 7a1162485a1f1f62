//! The time of suites with more cases than their budget can suffice for. The program declares all of them in each
//! process, so that listing the cases and starting the program count against the budget, too.

use std::time::{Duration, Instant};

/// The part of the budget in which cases are listed once there are too many.
const LISTING: u32 = 4;

/// The part of the budget that calibration gets in any case.
const LEAST: u32 = 20;

/// The work on calibrated cases, in units of the time of their calibration: blocks in the first process, and what two
/// further processes take.
const BLOCKS: f64 = 0.4;
const FURTHER: f64 = 1.0;

/// What is left of the budget of such a suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct TightBudget {
    opened: Instant,
    budget: Duration,
    /// How long the program takes from its start to its first answer.
    pub(super) starting: Duration,
}

impl TightBudget {
    pub(super) fn new(opened: Instant, budget: Duration, starting: Duration) -> TightBudget {
        TightBudget { opened, budget, starting }
    }

    /// Whether cases are still listed after this time, although there are too many.
    pub(super) fn lists(budget: Duration, elapsed: Duration) -> bool {
        elapsed < budget / LISTING
    }

    /// What is left of the budget.
    pub(super) fn left(&self) -> Duration {
        self.budget.saturating_sub(self.opened.elapsed())
    }

    /// How long cases are calibrated in the first process, which has started: so long that there is time to weigh them,
    /// in three processes where that is possible, and to count in one.
    pub(super) fn calibration(&self, counts: bool) -> Duration {
        let left = self.left().saturating_sub(self.starting * u32::from(counts));
        let three = left.saturating_sub(2 * self.starting).div_f64(1.0 + BLOCKS + FURTHER);
        let one = left.div_f64(1.0 + BLOCKS);
        let chosen = if 4 * self.starting <= left { three } else { one };
        chosen.max(self.budget / LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_starts_slowly_is_weighed_in_one_process() {
        let s = Duration::from_secs;
        let quick = TightBudget::new(Instant::now(), s(100), s(1)).calibration(false);
        let slow = TightBudget::new(Instant::now(), s(100), s(30)).calibration(false);
        assert!(quick > s(35) && quick < s(45), "{quick:?}");
        assert!(slow > s(65) && slow < s(75), "{slow:?}");
        let counting = TightBudget::new(Instant::now(), s(100), s(30)).calibration(true);
        assert!(counting < slow, "{counting:?}");
        let over = TightBudget::new(Instant::now(), s(0), s(30));
        assert_eq!((over.left(), over.calibration(true)), (s(0), s(0)));
    }
}
