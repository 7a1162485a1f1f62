//! Runs a history on a farm: writes all work that is possible now into units, and adopts their results in one
//! transaction.

use super::Campaign;
use crate::digest::digest;
use crate::farm::batch::{Batch, Planned};
use crate::farm::classes::{OfNode, check_classes};
use crate::farm::dispatch::{Farm, Order};
use crate::farm::folder::Folder;
use crate::farm::merge::use_provenance_of_node;
use crate::farm::unit::{Measure, UnitOutcome, UnitResult, Work, WorkUnit, Written, parse, text};
use crate::fault::Fault;
use crate::history::arms::Arms;
use crate::history::schedule::{Ahead, Seen, Step, ahead};
use crate::store::Entry;
use crate::versions::source::key;
use scruple_core::history::State;
use scruple_core::metric::{Pass, metric};
use scruple_core::run::Run;
use scruple_core::sample::{Figure, Reading};
use scruple_core::sorting;
use scruple_core::stats::nodes;
use scruple_core::subject::Arm;
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::Path;

/// The smallest number of rounds in a unit, unless fewer rounds are left.
const FEWEST: u32 = 2;

impl Campaign {
    /// Has the farm do this step, together with all work that does not depend on its result.
    pub(super) fn hand_out_step(&mut self, farm: &mut Farm, step: Step, seen: &[Seen]) -> Result<(), Fault> {
        let unclear = self.unclear(seen);
        let room = (farm.places()?, self.rounds_within_budget(seen));
        let mut now = ahead(
            seen,
            &self.questions.graph,
            &self.scope.effort,
            self.journal.spent(self.scope.effort.adaptive),
            room,
            |a, b| self.difference(&unclear, a, b),
        );
        if now == Ahead::default()
            && let Step::Count(index) = step
        {
            // Both sides of a change are counted again on the same machine.
            now.count = vec![index];
            now.count.extend(std::mem::take(&mut self.questions.again));
        }
        self.hand_out(farm, now, seen)
    }

    /// Returns how many rounds may run before the budget is checked again. The number is small until the time of a
    /// round is known.
    fn rounds_within_budget(&self, seen: &[Seen]) -> u32 {
        let Some(budget) = self.scope.effort.budget else { return u32::MAX };
        let known: u32 = seen.iter().map(|one| if one.rounds == u32::MAX { 0 } else { one.rounds }).sum();
        if known == 0 {
            return self.scope.effort.first();
        }
        let built = seen.iter().filter(|one| one.state == State::Built).count();
        let each =
            self.journal.spent(self.scope.effort.adaptive).as_secs_f64() / f64::from(known) * built as f64;
        ((budget.saturating_sub(self.journal.spent(self.scope.effort.adaptive)).as_secs_f64() / each) as u32)
            .max(1)
    }

    /// Has the farm do the work that is possible now, and adopts all its results at once: if this process is killed,
    /// none are adopted.
    fn hand_out(&mut self, farm: &mut Farm, mut ahead: Ahead, seen: &[Seen]) -> Result<(), Fault> {
        let shared = match &farm.folder {
            Some(folder) => folder.join(key(&self.journal.history.source)),
            None => self.builds.builder.cache.folder().to_owned(),
        };
        let folder = Folder::make(shared.join("farm").join(&self.journal.history.run.id))?;
        for part in ["built", "lists"].map(|part| shared.join(part)) {
            std::fs::create_dir_all(&part).map_err(|error| Fault::unwritable(&part, error))?;
        }
        let commits: Vec<&str> =
            self.journal.history.entries.iter().map(|entry| entry.version.commit.as_str()).collect();
        let basis = digest(&format!("{seen:?} {commits:?}"));
        self.tell_units(&ahead);
        if farm.builds_on_nodes() {
            self.add_cleaned(&shared, &mut ahead)?;
        } else {
            for index in &ahead.builds {
                self.build(*index)?;
            }
            for index in ahead.count.iter().chain(&ahead.beside) {
                if self.journal.history.entries[*index].version.state == State::Built {
                    self.is_at_hand(*index)?;
                }
            }
        }
        let batch = match Batch::sent(&folder, &basis)? {
            Some(batch) => batch,
            None => {
                let batch = self.plan_units(farm, (&folder, &shared), &ahead, basis)?;
                batch.write(&folder)?;
                batch
            }
        };
        let stages = batch.stages();
        folder.forgive(&stages.concat());
        let environment = self.environment_as_text();
        farm.run(&Order {
            folder: &folder,
            stages: &stages,
            pairs: false,
            environment: &environment,
            progress: &self.progress,
            interrupted: &self.interrupted,
        })?;
        let told = |name: &String| -> Result<UnitResult, Fault> {
            let text = folder.result(name)?.unwrap_or_default();
            parse(&text, &folder.path().join("results").join(name))
        };
        let builds: Vec<(String, UnitResult)> = batch
            .builds
            .iter()
            .map(|(commit, unit)| Ok((commit.clone(), told(unit)?)))
            .collect::<Result<_, Fault>>()?;
        let measures: Vec<(&Planned, UnitResult)> = batch
            .measures
            .iter()
            .map(|planned| Ok((planned, told(&planned.unit)?)))
            .collect::<Result<_, Fault>>()?;
        if !farm.entry.mixed {
            self.check_classes(&folder, &measures)?;
        }
        self.journal.hold()?;
        let adopted = self.adopt(builds, measures);
        self.journal.release(adopted)?;
        folder.remove();
        Ok(())
    }

    /// Plans builds of the versions whose artefacts were removed by `scruple history clean`.
    fn add_cleaned(&self, shared: &Path, ahead: &mut Ahead) -> Result<(), Fault> {
        let mut gone = Vec::new();
        for index in ahead.count.iter().chain(&ahead.beside).copied() {
            let entry = &self.journal.history.entries[index];
            let digest = entry.artefacts.clone().unwrap_or_default();
            let there = || shared.join("built").join(&digest).is_dir();
            if entry.version.state == State::Built && !there() && !self.builds.builder.cache.has(&digest)? {
                gone.push(index);
            }
        }
        ahead.builds.extend(gone);
        ahead.builds.sort_unstable();
        ahead.builds.dedup();
        Ok(())
    }

    /// Writes the units of the work that is possible now.
    fn plan_units(
        &self,
        farm: &mut Farm,
        (folder, shared): (&Folder, &Path),
        ahead: &Ahead,
        basis: String,
    ) -> Result<Batch, Fault> {
        let mut batch = Batch { basis, ..Batch::default() };
        let on_nodes = farm.builds_on_nodes();
        for index in ahead.builds.iter().filter(|_| on_nodes) {
            let commit = self.journal.history.entries[*index].version.commit.clone();
            let tree = self.builds.tree(&commit);
            let unit = self.unit(
                std::slice::from_ref(&commit),
                shared,
                Work::Build { commit: commit.clone(), tree },
            );
            batch.builds.push((commit, folder.write_unit(&text(&Written::Version(Box::new(unit)))?)?));
        }
        let known = |indices: &[usize]| -> Vec<String> {
            let ready = indices.iter().filter(|index| {
                on_nodes || self.journal.history.entries[**index].version.state == State::Built
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
        let builds: BTreeMap<String, String> = sorting::map(batch.builds.iter().cloned());
        for (part, count, beside, first, rounds) in chunks {
            let measure = Measure { part, ..self.measure(count, beside, first, rounds, &builds) };
            let commits: Vec<String> =
                measure.entries.iter().map(|entry| entry.version.commit.clone()).collect();
            for digest in measure.entries.iter().filter_map(|entry| entry.artefacts.as_ref()) {
                self.builds.builder.cache.share(shared, digest)?;
            }
            let unit = self.unit(&commits, shared, Work::Measure(Box::new(measure)));
            batch.measures.push(Planned {
                unit: folder.write_unit(&text(&Written::Version(Box::new(unit)))?)?,
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

    fn unit(&self, commits: &[String], shared: &Path, work: Work) -> WorkUnit {
        let commits: HashSet<String> = commits.iter().cloned().collect();
        WorkUnit {
            scruple: env!("CARGO_PKG_VERSION").to_owned(),
            place: self.journal.history.source.clone(),
            origin: self.builds.builder.origin().clone(),
            recipe: self.builds.builder.recipe().for_commits(&commits),
            shared: shared.to_owned(),
            work,
        }
    }

    /// Returns the environment of counting launches in the form that units have.
    fn environment_as_text(&self) -> BTreeMap<String, String> {
        let text = |part: &OsString| part.to_string_lossy().into_owned();
        self.instruments.environment.iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    fn measure(
        &self,
        count: Vec<String>,
        beside: Vec<String>,
        first: u32,
        rounds: u32,
        builds: &BTreeMap<String, String>,
    ) -> Measure {
        let wanted: HashSet<&String> = count.iter().chain(&beside).chain(builds.keys()).collect();
        let twin = |entry: &Entry| {
            entry.version.state == State::SameBinary
                && entry
                    .version
                    .same_as
                    .as_ref()
                    .is_some_and(|commit| wanted.contains(commit) && !builds.contains_key(commit))
        };
        let entries = self.journal.history.entries.iter();
        let mut entries: Vec<Entry> =
            entries.filter(|entry| wanted.contains(&entry.version.commit) || twin(entry)).cloned().collect();
        for entry in entries.iter_mut().filter(|entry| builds.contains_key(&entry.version.commit)) {
            (entry.version.state, entry.artefacts) = (State::Queued, None);
        }
        Measure {
            run: self.journal.history.run.id.clone(),
            seed: self.journal.history.run.seed,
            terms: self.journal.history.run.terms.clone(),
            environment: self.environment_as_text(),
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

    /// Returns an error if nodes are of different machine classes. The class of the earlier readings is the right one.
    fn check_classes(&self, folder: &Folder, measures: &[(&Planned, UnitResult)]) -> Result<(), Fault> {
        let of = |(planned, told): &(&Planned, UnitResult)| OfNode {
            node: told.node.clone(),
            class: told.machine.machine_class.clone(),
            result: folder.path().join("results").join(&planned.unit),
        };
        let provenance = &self.journal.history.run.provenance;
        let before = provenance.nodes.first().map(|node| (&*node.name, &*provenance.machine_class));
        check_classes(&measures.iter().map(of).collect::<Vec<OfNode>>(), before)
    }

    /// Adopts the results of units, in the order in which the units were planned.
    fn adopt(
        &mut self,
        builds: Vec<(String, UnitResult)>,
        measures: Vec<(&Planned, UnitResult)>,
    ) -> Result<(), Fault> {
        let (mut ready, mut failed) = (0, 0);
        for (commit, told) in builds {
            let Some(index) = self.journal.index_of(&commit) else { continue };
            if let UnitOutcome::Built(artefacts) = &told.found {
                ready += 1;
                let tree = self.builds.tree(&commit);
                let essence = self.builds.builder.essence(&commit, &tree);
                self.builds.builder.cache.remember(&essence, artefacts)?;
            } else {
                failed += 1;
            }
            self.note_build(index, told.found)?;
        }
        if ready + failed > 0 {
            self.progress.done(&format!("{ready} versions built on nodes, {failed} failed"));
        }
        for (planned, told) in measures {
            let UnitOutcome::Measured { entries, arms, warnings, logs } = told.found else {
                return Err(Fault::internal(format!("the unit ‘{}’ has weighed nothing", planned.unit)));
            };
            use_provenance_of_node(&mut self.journal.history.run.provenance, &told.machine);
            let provenance = &mut self.journal.history.run.provenance;
            provenance.took(&told.node, &told.machine.machine_class, planned.first, planned.rounds);
            for theirs in &entries {
                let Some(index) = self.journal.index_of(&theirs.version.commit) else { continue };
                self.adopt_entry(index, theirs, &logs)?;
            }
            warnings.iter().for_each(|one| self.journal.history.run.warn(&one.code, one.text.clone()));
            let own = std::mem::take(&mut self.journal.history.run.arms);
            let theirs = Run { arms, ..self.journal.history.run.clone() };
            self.journal.history.run.arms = own;
            self.adopt_readings(&entries, &theirs)?;
            self.block = self.block.max(planned.first + planned.rounds);
            let what = match planned.rounds {
                0 => "counted and checked".to_owned(),
                rounds => format!("timed {rounds} rounds"),
            };
            self.progress.done(&format!("{what} on {}", told.node));
        }
        self.journal.put_provenance()
    }

    fn adopt_entry(
        &mut self,
        index: usize,
        theirs: &Entry,
        logs: &BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let commit = theirs.version.commit.clone();
        let log = self.builds.log(&commit);
        let entry = &mut self.journal.history.entries[index];
        entry.counted = entry.counted.max(theirs.counted);
        entry.outputs.extend(theirs.outputs.clone());
        if theirs.version.state.failed() && !entry.version.state.failed() {
            (entry.version.state, entry.version.same_as) = (theirs.version.state, None);
            entry.version.why.clone_from(&theirs.version.why);
            entry.version.log = Some(log.display().to_string());
            if let Some(text) = logs.get(&commit) {
                std::fs::write(&log, text).map_err(|error| Fault::unwritable(&log, error))?;
            }
        }
        self.journal.put(index, &[])
    }

    /// Adds the readings of a unit's arms to the arms of this history.
    fn adopt_readings(&mut self, entries: &[Entry], theirs: &Run) -> Result<(), Fault> {
        let of_unit = Arms::of(theirs, &self.scope.subjects, &self.builds.builder);
        for subject in 0..self.scope.subjects.len() {
            for entry in entries {
                let commit = &entry.version.commit;
                let ours = self.journal.arms.launched(subject, commit).to_vec();
                for (place, from) in ours.iter().zip(of_unit.launched(subject, commit)) {
                    self.adopt_arm(*place, &theirs.arms[*from])?;
                }
                for from in of_unit.cases(subject, commit) {
                    let case = &theirs.arms[*from];
                    let place = self.place_of_case(subject, commit, case)?;
                    self.adopt_arm(place, case)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the index of the arm of a case. Creates the arm if the case is new.
    fn place_of_case(&mut self, subject: usize, commit: &str, case: &Arm) -> Result<usize, Fault> {
        if let Some(place) = self.journal.case(subject, commit, &case.name) {
            return Ok(place);
        }
        let place = self.journal.history.run.arms.len();
        let arm = Arm { figures: BTreeMap::default(), ..case.clone() };
        self.journal.add_arms(self.journal.index_of(commit).unwrap_or(0), vec![(subject, arm)])?;
        Ok(place)
    }

    fn adopt_arm(&mut self, place: usize, theirs: &Arm) -> Result<(), Fault> {
        let mut launches: BTreeMap<(&str, u32), (Pass, Vec<Reading>)> = BTreeMap::new();
        let mut absent = Vec::new();
        for (key, figure) in &theirs.figures {
            match figure {
                Figure::Sample(sample) => {
                    for (value, block) in sample.readings.iter().zip(&sample.blocks) {
                        let reading = Reading {
                            key: key.clone(),
                            unit: sample.unit.clone(),
                            quality: sample.quality,
                            source: sample.source.clone(),
                            value: Ok(*value),
                        };
                        let launch = launches.entry((sample.pass.word(), *block));
                        launch.or_insert_with(|| (sample.pass, Vec::new())).1.push(reading);
                    }
                }
                Figure::Absent { absent: why } => absent.push((key, why)),
            }
        }
        for ((_, block), (pass, readings)) in launches {
            self.journal.keep(place, pass, block, readings)?;
        }
        for (key, why) in absent {
            let known = self.journal.history.run.arms[place].figures.contains_key(key);
            let Some(metric) = metric(key).filter(|_| !known) else { continue };
            self.journal.keep(place, metric.pass, 0, vec![Reading::absent(metric, why)])?;
        }
        Ok(())
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
