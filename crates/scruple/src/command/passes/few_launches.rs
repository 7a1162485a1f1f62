//! The passes that need few launches: the memory pass, and the counting pass of each instrument.
//!
//! Three launches show whether a count repeats. If readings do not repeat and the verdict is open, the pass continues
//! to the number of launches that an interval needs. Verdicts are not computed in between, because repeated looks would
//! stop as soon as one is favourable.

use super::{CommandPasses, RunEffort, Stop};
use scruple_core::evidence::{DIFFER, MOST_OF_FEW, REPEATED};
use scruple_core::judge;
use scruple_core::metric::{METRICS, Metric, Pass};
use scruple_core::sample::{Figure, Reading};
use scruple_core::subject::{Arm, Role};
use scruple_core::verdict::Verdict;
use scruple_measure::heap;
use scruple_measure::streams::Captured;
use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

/// The number of launches of each command in the memory pass.
pub(super) const MEMORY: u32 = 3;

/// The number of launches of each command with each instrument.
pub(super) const COUNTING: u32 = DIFFER as u32;

/// The number of launches, in either pass, if the verdict is open.
const ENOUGH: u32 = MOST_OF_FEW as u32;

/// Passes that are expected to take longer than this are announced.
const LONG: Duration = Duration::from_secs(20);

/// Reading more bytes than this takes a noticeable time.
const MUCH: u64 = 32 << 20;

impl CommandPasses {
    /// Reads the memory of every command. Returns the time of one block.
    pub fn memory_pass(&mut self, effort: &RunEffort) -> Result<Duration, Stop> {
        let mut time = self.timed_round(0, MEMORY)?;
        let mut rounds = self.rounds(effort, MEMORY, time);
        if rounds > 1 {
            // The first launch may be slow only because files were not in memory yet.
            time = time.min(self.timed_round(1, rounds)?);
            rounds = self.rounds(effort, MEMORY, time);
        }
        if !self.prints_much() {
            self.announce(effort, time);
        }
        for block in 2..rounds {
            self.round(Pass::Memory, block, rounds)?;
        }
        if self.open(Pass::Memory).iter().any(|(metric, _)| metric == "memory.peak") {
            for block in rounds..self.rounds(effort, ENOUGH, time) {
                self.round(Pass::Memory, block, ENOUGH)?;
            }
        }
        Ok(time)
    }

    /// Runs the instruments. Each is attached to launches of its own.
    pub fn counting_pass(&mut self, effort: &RunEffort, time: Duration) -> Result<(), Stop> {
        let instruments = self.weigher.counting_launches();
        let bounded = effort.at_least.is_none() && !effort.gate.counts;
        if bounded && !self.affords(effort, time * instruments) {
            self.leave_out(Pass::Counting, "the budget was spent before the counting pass: raise --budget");
            return Ok(());
        }
        // A gate whose counts were read too few times cannot tell. Equal counts take two rounds; only instruments whose
        // counts differ take a third.
        let (least, least_if_open) = if effort.gate.counts { (REPEATED as u32, COUNTING) } else { (1, 1) };
        let rounds = self.rounds(effort, COUNTING, time * instruments).max(least);
        let before = self.spent;
        self.attach(0..rounds, |_| true)?;
        let most = self.rounds(effort, ENOUGH, time * instruments);
        let most = most.max(self.differing(effort, rounds, (self.spent - before) / rounds));
        self.attach_again(rounds..most.max(least_if_open), u32::MAX)
    }

    /// Takes rounds of the counting pass with these instruments. A round attaches each of them once.
    pub(super) fn attach(&mut self, rounds: Range<u32>, wanted: impl Fn(&u32) -> bool) -> Result<(), Stop> {
        let instruments = self.weigher.counting_launches();
        for block in rounds.start * instruments..rounds.end * instruments {
            if wanted(&(block % instruments)) {
                self.round(Pass::Counting, block, rounds.end * instruments)?;
            }
        }
        Ok(())
    }

    /// Takes further rounds with the instruments whose metrics are open so far, in at most this many launches of each
    /// command.
    pub(super) fn attach_again(&mut self, rounds: Range<u32>, launches: u32) -> Result<(), Stop> {
        let instruments = self.weigher.counting_launches();
        let open = self.open(Pass::Counting);
        let open: HashSet<u32> =
            open.iter().flat_map(|(_, blocks)| blocks).map(|block| block % instruments).collect();
        let affordable = launches / open.len().max(1) as u32;
        let end = rounds.end.min(rounds.start.saturating_add(affordable));
        self.attach(rounds.start..end, |instrument| open.contains(instrument))
    }

    /// Returns the time to reserve for the counting pass.
    pub fn counting_reserve(&self, effort: &RunEffort, time: Duration) -> Duration {
        match effort.passes.count() {
            false => Duration::ZERO,
            true => time * self.weigher.counting_launches() * COUNTING,
        }
    }

    /// Returns how many of the wanted rounds of a pass to run: as many as fit into a quarter of the budget, but at
    /// least one.
    fn rounds(&self, effort: &RunEffort, wanted: u32, time: Duration) -> u32 {
        (1..=wanted).rev().find(|rounds| time * *rounds <= effort.budget / 4).unwrap_or(1)
    }

    /// Returns how many rounds of the counting pass to run in total if counts differ after `taken` rounds: enough to
    /// show that they differ, as far as the whole budget allows.
    fn differing(&self, effort: &RunEffort, taken: u32, each: Duration) -> u32 {
        let fits = |rounds: &u32| self.affords(effort, each * (*rounds - taken));
        (taken + 1..=COUNTING).rev().find(fits).unwrap_or(taken)
    }

    fn affords(&self, effort: &RunEffort, time: Duration) -> bool {
        self.elapsed() + time <= effort.budget.mul_f64(1.1)
    }

    /// Whether a command prints so much that reading it takes a good part of a launch of the memory pass. How long
    /// other launches take is then known only after one of them.
    pub(super) fn prints_much(&self) -> bool {
        let printed = |output: &Captured| output.stdout.length.max(output.stderr.length);
        self.outputs.values().flatten().any(|output| printed(output) > MUCH)
    }

    /// Announces the launches if they are expected to take long.
    pub(super) fn announce(&mut self, effort: &RunEffort, time: Duration) {
        let instruments = self.weigher.counting_launches();
        let few = self.rounds(effort, MEMORY, time)
            + instruments * self.rounds(effort, COUNTING, time * instruments);
        let affordable = (effort.budget.as_secs_f64() / time.as_secs_f64().max(1e-9)) as u32;
        let least = few + effort.at_least.unwrap_or(1);
        let most = affordable.clamp(least, few + effort.at_most);
        let about = effort.budget.max(time * least);
        self.announce_launches(&format!("up to {most}"), "at most about", time, about);
    }

    /// Announces how many launches of each command there will be, if all of them are expected to take long. `time` is
    /// that of one launch of each.
    pub(super) fn announce_launches(&mut self, most: &str, bound: &str, time: Duration, about: Duration) {
        if about >= LONG && time * 3 >= Duration::from_secs(1) {
            self.progress.say(&format!(
                "one launch of each command takes {:.1} s: {most} of each, {bound} {:.0} s in all; -r and --budget limit \
                 this",
                time.as_secs_f64(),
                about.as_secs_f64()
            ));
        }
    }

    /// Takes a round of the memory pass. Returns its time.
    pub(super) fn timed_round(&mut self, block: u32, blocks: u32) -> Result<Duration, Stop> {
        let before = self.spent;
        self.round(Pass::Memory, block, blocks)?;
        Ok(self.spent - before)
    }

    /// Visits every arm whose memory and allocations matter once. The empty program is skipped because its figures do
    /// not matter, and the twin because its figures are those of the reference.
    pub(super) fn round(&mut self, pass: Pass, block: u32, blocks: u32) -> Result<(), Stop> {
        let counts = |arm: &Arm| matches!(arm.role, Role::Subject | Role::Shell);
        let arms: Vec<usize> =
            (0..self.run.arms.len()).filter(|index| counts(&self.run.arms[*index])).collect();
        for (visited, index) in arms.iter().enumerate() {
            let name = self.run.arms[*index].name.clone();
            self.progress.show(pass, block, blocks, visited, arms.len(), &name);
            let weighing = self.visit(*index, pass, block, 0)?;
            self.keep(*index, pass, block, weighing);
        }
        Ok(())
    }

    /// Returns the metrics of a pass whose verdict is can't tell so far, each with the blocks of its readings.
    pub(super) fn open(&self, pass: Pass) -> Vec<(String, Vec<u32>)> {
        let judged = judge::compare_pairs(&judge::pairs(&self.run), &self.run.terms);
        let open = judged.into_iter().filter(|judged| judged.comparison.verdict == Verdict::CantTell);
        open.filter_map(|judged| {
            let arm = self.run.arms.iter().find(|arm| arm.name == judged.arm)?;
            let sample = arm.sample(&judged.metric).filter(|sample| sample.pass == pass)?;
            Some((judged.metric, sample.blocks.clone()))
        })
        .collect()
    }

    /// Records why the metrics of a pass that every run has were not read.
    pub(super) fn leave_out(&mut self, pass: Pass, why: &str) {
        let families = ["malloc.", "alloc.", "gc.", "heap."];
        let usual = |key: &str| {
            families.iter().any(|family| key.starts_with(family)) && !heap::REQUESTED_KEYS.contains(&key)
        };
        let counted: Vec<&Metric> =
            METRICS.iter().filter(|metric| metric.pass == pass && usual(&metric.key)).collect();
        for arm in self.run.arms.iter_mut().filter(|arm| arm.role == Role::Subject) {
            for metric in &counted {
                let mut figure = arm.figures.remove(metric.key.as_ref());
                Figure::add(&mut figure, Reading::absent(metric, why), pass, 0);
                arm.figures.extend(figure.map(|figure| (metric.key.clone().into_owned(), figure)));
            }
        }
    }
}
