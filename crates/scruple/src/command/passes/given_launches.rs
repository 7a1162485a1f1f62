//! The passes of a run whose number of launches the user gave (`-r`): all passes together launch no command more often.

use super::few_launches::{COUNTING, MEMORY};
use super::{CommandPasses, RunEffort, Stop};
use scruple_core::launch_shares::LaunchShares;
use scruple_core::metric::{Pass, Quality, metric};
use scruple_core::sample::Reading;
use scruple_core::subject::Role;
use scruple_measure::command::WeighedLaunch;

impl CommandPasses {
    /// Returns how the launches are divided, if the user gave their number.
    pub(super) fn shares(&self, effort: &RunEffort) -> Option<LaunchShares> {
        let passes = match effort.passes.count() {
            true => 1 + self.weigher.counting_launches(),
            false => 0,
        };
        let shares =
            effort.launches.map(|launches| LaunchShares::of(launches, passes, effort.passes.time()))?;
        Some(if effort.gate.only_counts() { shares.counts_first() } else { shares })
    }

    /// Runs the passes. The timing pass comes last and takes the launches that the others leave.
    pub(super) fn take_given_launches(
        &mut self,
        effort: &RunEffort,
        shares: &LaunchShares,
    ) -> Result<(), Stop> {
        if effort.passes.count() {
            self.count_within(effort, shares)?;
        }
        if !effort.passes.time() {
            return Ok(());
        }
        self.only_timed = effort.passes.count() && shares.passes() == 0;
        let plan = self.warm_up(effort)?;
        self.run.terms.looks = 1;
        let most = effort.launches.unwrap_or(1) - self.launched.iter().max().unwrap_or(&0);
        for block in 0..most {
            let before = self.spent;
            self.block(&plan, block, Some(most))?;
            if block == 0 && self.prints_much() {
                let (all, time) = (effort.launches.unwrap_or(1), self.spent - before);
                self.announce_launches(&all.to_string(), "about", time, time * all);
            }
        }
        Ok(())
    }

    fn count_within(&mut self, effort: &RunEffort, shares: &LaunchShares) -> Result<(), Stop> {
        let all = effort.launches.unwrap_or(1);
        let instruments = shares.passes().saturating_sub(1);
        if shares.passes() > 0 {
            let mut time = self.timed_round(0, shares.each())?;
            let few = MEMORY.min(shares.each());
            if few > 1 {
                time = time.min(self.timed_round(1, shares.each())?);
            }
            if !self.prints_much() {
                self.announce_launches(&all.to_string(), "about", time, time * all);
            }
            for block in 2..few {
                self.round(Pass::Memory, block, shares.each())?;
            }
            if self.open(Pass::Memory).iter().any(|(metric, _)| metric == "memory.peak") {
                for block in few..shares.each() {
                    self.round(Pass::Memory, block, shares.each())?;
                }
            }
        }
        let few = COUNTING.min(shares.each());
        self.attach(0..few, |instrument| *instrument < instruments)?;
        if instruments < self.weigher.counting_launches() {
            let least = 1 + self.weigher.counting_launches() + u32::from(effort.passes.time());
            let why = format!("there were no launches left for it: give -r {least} or more");
            self.leave_out(Pass::Counting, &why);
        } else {
            // Two readings show that a count is the same, but not that it differs.
            let most = shares.each().max(if effort.gate.only_counts() { COUNTING } else { 0 });
            let launched = self.launched.iter().max().unwrap_or(&0);
            let left = all.saturating_sub(launched + u32::from(effort.passes.time()));
            self.attach_again(few..most, left)?;
        }
        Ok(())
    }

    /// Keeps the peak memory by the kernel's account of a timed launch, if nothing else reads it. That of a small
    /// program cannot be distinguished from that of the process that starts it.
    pub(super) fn keep_peak_of_timed(&mut self, index: usize, weighing: &WeighedLaunch) {
        let is_shown = matches!(self.run.arms[index].role, Role::Subject | Role::Shell);
        let Some(declared) = metric("memory.peak").filter(|_| is_shown) else { return };
        let reading = match weighing.resident {
            Some(peak) => {
                Reading::of(declared, peak as f64, "kernel accounting").with_quality(Quality::Noisy)
            }
            None => {
                Reading::absent(declared, "it is too small to be read from a timed launch: give -r 2 or more")
            }
        };
        self.writer.keep(&mut self.run, index, Pass::Memory, 0, vec![reading]);
    }
}
