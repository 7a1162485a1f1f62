//! The timing pass: blocks in which every arm is launched once, until the verdicts are clear.

use super::{CommandPasses, RunEffort, Stop};
use scruple_core::judge;
use scruple_core::subject::{Arm, Role};
use scruple_core::verdict::Verdict;
use scruple_core::visit_order::VisitOrder;
use scruple_stats::median_interval::median_interval;
use scruple_stats::power;
use scruple_stats::quantile::median;
use std::time::Duration;

/// The number of blocks before the first look at the verdicts.
const FIRST_LOOK: u32 = 10;

impl CommandPasses {
    /// Runs the interleaved pass: blocks until the verdicts are clear or the budget is spent. `block_time` is that of a
    /// block of the memory pass. Returns the time of a block, corrected by that of the first block here.
    pub(super) fn timing_pass(
        &mut self,
        effort: &RunEffort,
        mut block_time: Option<Duration>,
    ) -> Result<Option<Duration>, Stop> {
        let plan = self.warm_up(effort)?;
        let before = self.spent;
        self.block(&plan, 0, Some(self.most_blocks(effort, block_time)))?;
        // In the memory pass Scruple reads what a program prints, which takes longer than to discard it.
        block_time = block_time.map(|time| time.min(self.spent - before));
        if self.prints_much() {
            self.announce(effort, block_time.unwrap_or_default());
        }
        let most = self.most_blocks(effort, block_time);
        let first = FIRST_LOOK.max(effort.at_least.unwrap_or(0)).min(most);
        let looks: Vec<u32> = power::looks(first as usize, most as usize, self.run.terms.level)
            .iter()
            .map(|look| look.blocks as u32)
            .collect();
        self.run.terms.looks = looks.len() as u32;
        let until =
            effort.budget.saturating_sub(self.counting_reserve(effort, block_time.unwrap_or_default()));
        let least = effort.at_least.unwrap_or(match block_time {
            Some(time) if time * 3 > effort.budget => 1,
            _ => 3,
        });
        for taken in 1..=most {
            if taken > 1 {
                self.block(&plan, taken - 1, Some(most))?;
            }
            let out_of_time = self.elapsed() >= until && taken >= least;
            let looks_now = looks.contains(&taken) && taken < most;
            if out_of_time || (looks_now && self.enough(&effort.gate.times, most - taken)) {
                break;
            }
        }
        Ok(block_time)
    }

    /// Runs the blocks that are not measured. Returns the order of the blocks to measure.
    pub(super) fn warm_up(&mut self, effort: &RunEffort) -> Result<VisitOrder, Stop> {
        let plan = VisitOrder::new(self.jobs.len(), self.run.seed);
        for block in 0..effort.warmup {
            self.block(&plan, u32::MAX - block, None)?;
        }
        Ok(plan)
    }

    /// Returns the largest number of blocks: what the budget allows within a fixed range.
    fn most_blocks(&self, effort: &RunEffort, block_time: Option<Duration>) -> u32 {
        let affordable = block_time
            .filter(|time| !time.is_zero())
            .map_or(f64::INFINITY, |time| effort.budget.as_secs_f64() / time.as_secs_f64());
        let affordable = affordable.min(f64::from(u32::MAX)) as u32;
        affordable.max(FIRST_LOOK).min(effort.at_most).max(effort.at_least.unwrap_or(0))
    }

    /// Whether the verdicts are clear, or depend only on metrics that more blocks will not settle. Where these times
    /// decide a gate, only their verdicts matter.
    fn enough(&self, deciding: &[String], remaining: u32) -> bool {
        let level = 1.0 - (1.0 - self.run.terms.level) / f64::from(self.run.terms.looks.max(1));
        let pairs = judge::pairs(&self.run);
        if pairs.is_empty() {
            return self.run.reference().is_some_and(|arm| self.precise(arm, level));
        }
        let judged = judge::compare_pairs(&pairs, &self.run.terms);
        let clear = |key: &str, arm: &str| {
            let found = judged.iter().find(|judged| judged.arm == arm && judged.metric == key);
            let Some(comparison) = found.map(|judged| &judged.comparison) else { return (false, u32::MAX) };
            let clear = matches!(comparison.verdict, Verdict::Different | Verdict::Same)
                || power::precise(comparison.half_width(), comparison.margin);
            (clear, comparison.more_blocks as u32)
        };
        pairs.iter().filter(|pair| pair.arm.role == Role::Subject).all(|pair| {
            if !deciding.is_empty() {
                return deciding.iter().all(|key| clear(key, &pair.arm.name).0);
            }
            let (wall, needed) = clear("time.wall", &pair.arm.name);
            wall || (needed > remaining && clear("time.cpu", &pair.arm.name).0)
        })
    }

    /// Whether the interval of a single arm is below half the margin, in wall time or at least in processor time.
    fn precise(&self, arm: &Arm, level: f64) -> bool {
        let of = |key: &str| {
            arm.sample(key).and_then(|sample| {
                let interval = median_interval(&sample.readings, level)?;
                let middle = median(&sample.readings);
                Some(power::precise((interval.high - interval.low) / 2.0 / middle, self.run.terms.margin))
            })
        };
        of("time.wall") == Some(true) || of("time.cpu") == Some(true)
    }
}
