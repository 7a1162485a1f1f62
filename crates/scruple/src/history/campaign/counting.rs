//! Counts what a version costs: the memory and counting passes.

use super::given_launches::{BRIEF, GivenLaunches, LONG, REPEATS};
use super::visits::Visits;
use crate::fault::Fault;
use crate::progress::Progress;
use scruple_core::history::VersionState;
use scruple_core::metric::Pass;
use scruple_core::sample::BLOCKS_OF_A_VISIT;
use std::time::Duration;

/// The memory and counting passes of a history.
pub(super) struct Counting<'a> {
    pub(super) visits: Visits<'a>,
    /// The time of the first launch of the history.
    pub(super) first_launch: &'a mut Option<Duration>,
    pub(super) progress: &'a Progress,
}

impl Counting<'_> {
    /// Runs the memory and counting passes of one version, whose artefacts must be at hand.
    pub(super) fn count(&mut self, index: usize) -> Result<(), Fault> {
        let counting = self.visits.instruments.weigher.counting_launches();
        let first_block = self.visits.journal.history.entries[index].counted * BLOCKS_OF_A_VISIT;
        for (subject, launch) in self.visits.launches(index) {
            if self.visits.scope.subjects[subject].yardstick {
                continue;
            }
            let mut first = None;
            for (pass, least, most) in self.other_passes(self.visits.scope.subjects[subject].bench, counting)
            {
                // The blocks go to the instruments in turn. If the launches do not suffice for all instruments, the
                // last ones get none.
                let of_instruments = pass == Pass::Counting && !self.visits.scope.subjects[subject].bench;
                let all = if of_instruments { counting } else { least };
                for block in 0..most {
                    let by_number = pass == Pass::Memory && self.visits.scope.effort.budget.is_none();
                    let long = |limit| !by_number && first.is_some_and(|first| first > limit);
                    if block >= least && long(LONG) {
                        break;
                    }
                    let repeats = || self.repeats(index, (subject, launch), first_block);
                    let is_enough = || long(BRIEF) || pass == Pass::Counting && repeats();
                    if block == least * REPEATS && is_enough() {
                        break;
                    }
                    let block = first_block + block / least * all + block % least;
                    let Some(weighing) = self.visits.visit(index, (subject, launch), pass, block, 0)? else {
                        match self.visits.journal.history.entries[index].version.state {
                            VersionState::Built => break,
                            _ => return Ok(()),
                        }
                    };
                    first = first.or(Some(weighing));
                    self.first_launch.get_or_insert(weighing);
                }
            }
        }
        let attached = self.visits.scope.attached(counting);
        self.visits.journal.note_count(index, attached);
        let version = &self.visits.journal.history.entries[index].version;
        self.progress.done(&format!("counted and checked: {} {}", version.short(), version.title));
        self.visits.journal.put(index, &[])
    }

    /// Returns the passes besides the timing pass, each with the launches after which every instrument has run once,
    /// and with the most launches.
    fn other_passes(&self, bench: bool, instruments: u32) -> Vec<(Pass, u32, u32)> {
        // If the user wants few rounds, these passes have few launches as well.
        let enough = self.visits.scope.effort.counted().max(REPEATS);
        let usual = GivenLaunches { timed: 0, memory: enough, instruments, counted: enough };
        let given = self.visits.scope.given.unwrap_or(usual);
        match bench {
            // The memory of the process does not belong to any single case.
            true => vec![(Pass::Counting, 1, REPEATS.min(given.others()))],
            false => vec![
                (Pass::Memory, 1, given.memory),
                (Pass::Counting, given.instruments, given.instruments * given.counted),
            ],
        }
    }

    /// Whether the counts of a command, from a given block on, are the same in each launch.
    fn repeats(&self, index: usize, (subject, launch): (usize, usize), from: u32) -> bool {
        let launched = self
            .visits
            .journal
            .arms
            .launched(subject, &self.visits.journal.history.entries[index].version.commit);
        let Some(arm) = launched.get(launch).map(|place| &self.visits.journal.history.run.arms[*place])
        else {
            return true;
        };
        let samples = arm.figures.keys().filter_map(|key| arm.sample(key));
        samples.filter(|sample| sample.pass == Pass::Counting).all(|sample| {
            let readings = sample.blocks.iter().zip(&sample.readings);
            let mut recent = readings.filter(|(block, _)| **block >= from).map(|(_, value)| value);
            let first = recent.next();
            recent.all(|value| Some(value) == first)
        })
    }
}
