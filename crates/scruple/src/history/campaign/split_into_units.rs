//! Divides the work of a history that is possible now into units for the nodes of a farm.

use super::builds::Builds;
use super::instruments::Instruments;
use super::journal::Journal;
use super::scope::Scope;
use crate::farm::batch::{PlannedUnit, UnitBatch};
use crate::farm::dispatch::Farm;
use crate::farm::folder::UnitFolder;
use crate::farm::same_version::{VERSION, Writer};
use crate::farm::unit_data::{UnitFile, UnitWork, VersionsToWeigh, WorkUnit, text};
use crate::fault::Fault;
use crate::history::schedule::ParallelWork;
use crate::store::StoredVersion;
use crate::versions::environment;
use scruple_core::history::VersionState;
use scruple_stats::nodes;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// The smallest number of rounds in a unit, unless fewer rounds are left.
const FEWEST: u32 = 2;

/// The state of the history from which units are written.
pub(super) struct UnitPlan<'a> {
    pub(super) journal: &'a Journal,
    pub(super) builds: &'a Builds,
    pub(super) instruments: &'a Instruments,
    pub(super) scope: &'a Scope,
    /// The number of the next round.
    pub(super) block: u32,
}

impl UnitPlan<'_> {
    /// Plans builds of the versions whose artefacts were removed by `scruple history clean`.
    pub(super) fn add_cleaned(&self, shared: &Path, ahead: &mut ParallelWork) -> Result<(), Fault> {
        let mut gone = Vec::new();
        for index in ahead.count.iter().chain(&ahead.beside).copied() {
            let entry = &self.journal.history.entries[index];
            let digest = entry.artefacts.clone().unwrap_or_default();
            let there = || shared.join("built").join(&digest).is_dir();
            if entry.version.state == VersionState::Built
                && !there()
                && !self.builds.builder.cache.has(&digest)?
            {
                gone.push(index);
            }
        }
        ahead.builds.extend(gone);
        sorting::ascending(&mut ahead.builds);
        ahead.builds.dedup();
        Ok(())
    }

    /// Writes the units of the work that is possible now.
    pub(super) fn batch(
        &self,
        farm: &mut Farm,
        (folder, shared): (&UnitFolder, &Path),
        ahead: &ParallelWork,
        basis: String,
    ) -> Result<UnitBatch, Fault> {
        let mut batch = UnitBatch { writer: Writer::this(), basis, ..UnitBatch::default() };
        let on_nodes = farm.builds_on_nodes();
        for index in ahead.builds.iter().filter(|_| on_nodes) {
            let commit = self.journal.history.entries[*index].version.commit.clone();
            let tree = self.builds.tree(&commit);
            let unit = self.unit(
                std::slice::from_ref(&commit),
                shared,
                UnitWork::Build { commit: commit.clone(), tree },
            );
            batch.builds.push((commit, folder.write_unit(&text(&UnitFile::Version(Box::new(unit)))?)?));
        }
        let known = |indices: &[usize]| -> Vec<String> {
            let ready = indices.iter().filter(|index| {
                on_nodes || self.journal.history.entries[**index].version.state == VersionState::Built
            });
            ready.map(|index| self.journal.history.entries[*index].version.commit.clone()).collect()
        };
        let (count, beside) = (known(&ahead.count), known(&ahead.beside));
        let places = farm.places()?.max(1) as u32;
        let mut chunks = Vec::new();
        if !count.is_empty() {
            for part in self.group_subjects(places as usize) {
                chunks.push((part, count.clone(), Vec::new(), self.block, 0));
            }
        }
        // A unit contains every version of its rounds, so that they run on one node; rounds and subjects are divided
        // among units.
        let rows = node_count(places, ahead.rounds);
        let mut first = self.block;
        for part in self.group_subjects(places.div_ceil(rows) as usize) {
            for row in 0..rows {
                let rounds = ahead.rounds / rows + u32::from(row < ahead.rounds % rows);
                if rounds > 0 && !beside.is_empty() {
                    chunks.push((part.clone(), Vec::new(), beside.clone(), first, rounds));
                }
                first += rounds;
            }
        }
        let builds: SortedMap<String, String> = SortedMap::from_iter(batch.builds.iter().cloned());
        for (part, count, beside, first, rounds) in chunks {
            let measure = VersionsToWeigh { part, ..self.measure(count, beside, first, rounds, &builds) };
            let commits: Vec<String> =
                measure.entries.iter().map(|entry| entry.version.commit.clone()).collect();
            for digest in measure.entries.iter().filter_map(|entry| entry.artefacts.as_ref()) {
                self.builds.builder.cache.share(shared, digest)?;
            }
            let unit = self.unit(&commits, shared, UnitWork::Measure(Box::new(measure)));
            batch.measures.push(PlannedUnit {
                unit: folder.write_unit(&text(&UnitFile::Version(Box::new(unit)))?)?,
                first,
                rounds,
            });
        }
        Ok(batch)
    }

    /// Divides the subjects into at most this many groups. Each group contains the yardsticks.
    fn group_subjects(&self, most: usize) -> Vec<Vec<usize>> {
        let (beside, weighed): (Vec<usize>, Vec<usize>) =
            (0..self.scope.subjects.len()).partition(|subject| self.scope.subjects[*subject].yardstick);
        let length = weighed.len().div_ceil(most.clamp(1, weighed.len().max(1))).max(1);
        weighed.chunks(length).map(|part| part.iter().chain(&beside).copied().collect()).collect()
    }

    fn unit(&self, commits: &[String], shared: &Path, work: UnitWork) -> WorkUnit {
        let commits: HashSet<String> = commits.iter().cloned().collect();
        WorkUnit {
            scruple: VERSION.to_owned(),
            place: self.journal.history.source.clone(),
            origin: self.builds.builder.origin().clone(),
            recipe: self.builds.builder.recipe().for_commits(&commits),
            shared: shared.to_owned(),
            work,
        }
    }

    fn measure(
        &self,
        count: Vec<String>,
        beside: Vec<String>,
        first: u32,
        rounds: u32,
        builds: &SortedMap<String, String>,
    ) -> VersionsToWeigh {
        let wanted: HashSet<&String> = count.iter().chain(&beside).chain(builds.keys()).collect();
        let same_binary = |entry: &StoredVersion| {
            entry.version.state == VersionState::SameBinary
                && entry
                    .version
                    .same_as
                    .as_ref()
                    .is_some_and(|commit| wanted.contains(commit) && !builds.contains_key(commit))
        };
        let entries = self.journal.history.entries.iter();
        let mut entries: Vec<StoredVersion> = entries
            .filter(|entry| wanted.contains(&entry.version.commit) || same_binary(entry))
            .cloned()
            .collect();
        for entry in entries.iter_mut().filter(|entry| builds.contains_key(&entry.version.commit)) {
            (entry.version.state, entry.artefacts) = (VersionState::Queued, None);
        }
        // A unit reports the time that it takes itself.
        entries.iter_mut().for_each(|entry| entry.other_time = Duration::ZERO);
        VersionsToWeigh {
            run: self.journal.history.run.id.clone(),
            seed: self.journal.history.run.seed,
            terms: self.journal.history.run.terms.clone(),
            environment: environment::as_text(&self.instruments.environment),
            entries,
            builds: builds.clone(),
            subjects: self.scope.subjects.clone(),
            part: Vec::new(),
            count,
            beside,
            first,
            rounds,
            by_number: self.scope.effort.budget.is_none().then_some(self.scope.effort.rounds),
            launches: self.scope.effort.launches,
            same_output: self.scope.same_output,
            time_only: self.scope.time_only,
            instructions: self.instruments.instructions,
            requested: self.instruments.requested,
            time_limit: self.instruments.time_limit,
        }
    }
}

/// Returns among how many nodes the rounds are divided. With fewer nodes than can represent their machine class, each
/// node gets enough rounds for an interval of its own.
pub(super) fn node_count(places: u32, rounds: u32) -> u32 {
    let rows = places.min(rounds.div_ceil(FEWEST)).max(1);
    if rows >= nodes::CLASS as u32 { rows } else { rows.min(rounds / nodes::PAIRS as u32).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_dealt_out_to_four_nodes_or_more_or_to_so_few_that_each_has_an_interval() {
        assert_eq!(node_count(8, 20), 8);
        assert_eq!(node_count(8, 8), 4);
        assert_eq!(node_count(8, 4), 1);
        assert_eq!([24, 23, 36, 8, 0].map(|rounds| node_count(3, rounds)), [3, 2, 3, 1, 1]);
    }
}
