//! Adds the results of units to a history.

use super::Scope;
use super::building::Building;
use crate::farm::batch::PlannedUnit;
use crate::farm::merge::use_provenance_of_node;
use crate::farm::unit_data::{UnitOutcome, UnitResult};
use crate::fault::Fault;
use crate::history::arms::Arms;
use crate::store::StoredVersion;
use scruple_core::metric::{Pass, metric};
use scruple_core::run::Run;
use scruple_core::sample::{Figure, Reading};
use scruple_core::subject::Arm;
use scruple_stats::sorting::SortedMap;

/// The history that gets the results.
pub(super) struct Adoption<'a> {
    pub(super) building: Building<'a>,
    pub(super) scope: &'a Scope,
    /// The number of the next round.
    pub(super) block: &'a mut u32,
}

impl Adoption<'_> {
    /// Adopts the results of units, in the order in which the units were planned.
    pub(super) fn adopt(
        &mut self,
        builds: Vec<(String, UnitResult)>,
        measures: Vec<(&PlannedUnit, UnitResult)>,
    ) -> Result<(), Fault> {
        let (mut ready, mut failed) = (0, 0);
        for (commit, result) in builds {
            let Some(index) = self.building.journal.index_of(&commit) else { continue };
            if let UnitOutcome::Built(artefacts) = &result.found {
                ready += 1;
                let tree = self.building.builds.tree(&commit);
                let build_key = self.building.builds.builder.build_key(&commit, &tree);
                self.building.builds.builder.cache.remember(&build_key, artefacts)?;
            } else {
                failed += 1;
            }
            self.building.note_build(index, result.found)?;
        }
        if ready + failed > 0 {
            self.building.progress.done(&format!("{ready} versions built on nodes, {failed} failed"));
        }
        for (planned, result) in measures {
            let UnitOutcome::Measured { entries, arms, warnings, logs } = result.found else {
                return Err(Fault::internal(format!("the unit ‘{}’ has weighed nothing", planned.unit)));
            };
            use_provenance_of_node(&mut self.building.journal.history.run.provenance, &result.machine);
            let provenance = &mut self.building.journal.history.run.provenance;
            provenance.took(&result.node, &result.machine.machine_class, planned.first, planned.rounds);
            for theirs in &entries {
                let Some(index) = self.building.journal.index_of(&theirs.version.commit) else { continue };
                self.adopt_entry(index, theirs, &logs)?;
            }
            warnings
                .iter()
                .for_each(|one| self.building.journal.history.run.warn(&one.code, one.text.clone()));
            let own = std::mem::take(&mut self.building.journal.history.run.arms);
            let theirs = Run { arms, ..self.building.journal.history.run.clone() };
            self.building.journal.history.run.arms = own;
            self.adopt_readings(&entries, &theirs)?;
            *self.block = (*self.block).max(planned.first + planned.rounds);
            let what = match planned.rounds {
                0 => "counted and checked".to_owned(),
                rounds => format!("timed {rounds} rounds"),
            };
            self.building.progress.done(&format!("{what} on {}", result.node));
        }
        self.building.journal.put_provenance()
    }

    fn adopt_entry(
        &mut self,
        index: usize,
        theirs: &StoredVersion,
        logs: &SortedMap<String, String>,
    ) -> Result<(), Fault> {
        let commit = theirs.version.commit.clone();
        let log = self.building.builds.log(&commit);
        let entry = &mut self.building.journal.history.entries[index];
        if theirs.counted > entry.counted {
            self.building.journal.counted.insert(commit.clone());
        }
        entry.counted = entry.counted.max(theirs.counted);
        entry.instruments = entry.instruments.max(theirs.instruments);
        entry.other_time += theirs.other_time;
        entry.outputs.extend(theirs.outputs.clone());
        if theirs.version.state.failed() && !entry.version.state.failed() {
            (entry.version.state, entry.version.same_as) = (theirs.version.state, None);
            entry.version.why.clone_from(&theirs.version.why);
            entry.version.log = Some(log.display().to_string());
            if let Some(text) = logs.get(&commit) {
                std::fs::write(&log, text).map_err(|error| Fault::unwritable(&log, error))?;
            }
        }
        self.building.journal.put(index, &[])
    }

    /// Adds the readings of a unit's arms to the arms of this history.
    fn adopt_readings(&mut self, entries: &[StoredVersion], theirs: &Run) -> Result<(), Fault> {
        let of_unit = Arms::of(theirs, &self.scope.subjects, &self.building.builds.builder);
        for subject in 0..self.scope.subjects.len() {
            for entry in entries {
                let commit = &entry.version.commit;
                let ours = self.building.journal.arms.launched(subject, commit).to_vec();
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
        if let Some(place) = self.building.journal.case(subject, commit, &case.name) {
            return Ok(place);
        }
        let place = self.building.journal.history.run.arms.len();
        let arm = Arm { figures: SortedMap::default(), ..case.clone() };
        self.building
            .journal
            .add_arms(self.building.journal.index_of(commit).unwrap_or(0), vec![(subject, arm)])?;
        Ok(place)
    }

    fn adopt_arm(&mut self, place: usize, theirs: &Arm) -> Result<(), Fault> {
        let mut launches: SortedMap<(&str, u32), (Pass, Vec<Reading>)> = SortedMap::new();
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
            self.building.journal.keep(place, pass, block, readings)?;
        }
        for (key, why) in absent {
            let known = self.building.journal.history.run.arms[place].figures.contains_key(key);
            let Some(metric) = metric(key).filter(|_| !known) else { continue };
            self.building.journal.keep(place, metric.pass, 0, vec![Reading::absent(metric, why)])?;
        }
        Ok(())
    }
}
