//! Runs a history on a farm: hands out all work that is possible now, and adopts the results in one transaction.

use super::Campaign;
use super::adopt::Adoption;
use super::building::Building;
use super::split_into_units::UnitPlan;
use crate::digest::{digest, entry};
use crate::farm::batch::{PlannedUnit, UnitBatch};
use crate::farm::dispatch::{Farm, WorkOrder};
use crate::farm::folder::UnitFolder;
use crate::farm::machine_classes::{UnitMachine, check_classes};
use crate::farm::unit_data::UnitResult;
use crate::fault::Fault;
use crate::history::schedule::{ParallelWork, Step, VersionProgress, ahead};
use crate::progress::Progress;
use crate::versions::environment;
use crate::versions::source_repository::key;
use scruple_core::history::VersionState;
use std::time::Duration;

impl Campaign {
    /// Has the farm do this step, together with all work that does not depend on its result.
    pub(super) fn hand_out_step(
        &mut self,
        farm: &mut Farm,
        step: Step,
        seen: &[VersionProgress],
    ) -> Result<(), Fault> {
        let unclear = self.questions.unclear(&self.journal, &self.scope, seen);
        let mut now = ahead(
            seen,
            &self.questions.graph,
            &self.scope.effort,
            self.journal.spent(self.scope.effort.adaptive),
            farm.places()?,
            |a, b| self.questions.difference(&self.journal, &unclear, a, b),
        );
        now.rounds = now.rounds.min(self.rounds_within_budget(seen, &now));
        if now == ParallelWork::default()
            && let Step::Count(index) = step
        {
            // Both sides of a change are counted again on the same machine.
            now.count = vec![index];
            now.count.extend(std::mem::take(&mut self.questions.again));
        }
        self.hand_out(farm, now, seen)
    }

    /// Returns how many rounds may run before the budget is checked again, beside the counts of the same step. The
    /// number is small until the time of a round is known.
    fn rounds_within_budget(&self, seen: &[VersionProgress], now: &ParallelWork) -> u32 {
        let Some(budget) = self.scope.effort.budget else { return u32::MAX };
        let known: u32 = seen.iter().map(|one| if one.rounds == u32::MAX { 0 } else { one.rounds }).sum();
        if known == 0 {
            return self.scope.effort.first();
        }
        let journal = &self.journal;
        let counted = journal.history.entries.iter().filter(|entry| entry.counted > 0);
        let others: Vec<Duration> = counted.map(|entry| entry.other_time).collect();
        let of_a_count = others.iter().sum::<Duration>() / others.len().max(1) as u32;
        let counting = of_a_count * now.count.len() as u32;
        let left = budget.saturating_sub(journal.spent(self.scope.effort.adaptive) + counting);
        let each = journal.sampled_time(false).as_secs_f64() / f64::from(known) * now.beside.len() as f64;
        ((left.as_secs_f64() / each) as u32).max(1)
    }

    /// Has the farm do the work that is possible now, and adopts all its results at once: if this process is killed,
    /// none are adopted.
    fn hand_out(
        &mut self,
        farm: &mut Farm,
        mut ahead: ParallelWork,
        seen: &[VersionProgress],
    ) -> Result<(), Fault> {
        let shared = match &farm.folder {
            Some(folder) => folder.join(key(&self.journal.history.source)),
            None => self.builds.builder.cache.folder().to_owned(),
        };
        let folder = UnitFolder::make(entry(&shared.join("farm"), &self.journal.history.run.id))?;
        for part in ["built", "lists"].map(|part| shared.join(part)) {
            std::fs::create_dir_all(&part).map_err(|error| Fault::unwritable(&part, error))?;
        }
        let commits: Vec<&str> =
            self.journal.history.entries.iter().map(|entry| entry.version.commit.as_str()).collect();
        let basis = digest(&format!("{seen:?} {commits:?}"));
        tell_units(&ahead, self.journal.history.entries.len(), &self.progress);
        if farm.builds_on_nodes() {
            self.unit_plan().add_cleaned(&shared, &mut ahead)?;
        } else {
            for index in &ahead.builds {
                self.building().build(*index)?;
            }
            for index in ahead.count.iter().chain(&ahead.beside) {
                if self.journal.history.entries[*index].version.state == VersionState::Built {
                    self.building().is_at_hand(*index)?;
                }
            }
        }
        let batch = match UnitBatch::sent(&folder, &basis)? {
            Some(batch) => batch,
            None => {
                let batch = self.unit_plan().batch(farm, (&folder, &shared), &ahead, basis)?;
                batch.write(&folder)?;
                batch
            }
        };
        let stages = batch.stages();
        folder.clear_failures(&stages.concat());
        let environment = environment::as_text(&self.instruments.environment);
        farm.run(&WorkOrder {
            folder: &folder,
            stages: &stages,
            pairs: false,
            environment: &environment,
            progress: &self.progress,
            interrupted: &self.interrupted,
        })?;
        let builds: Vec<(String, UnitResult)> = batch
            .builds
            .iter()
            .map(|(commit, unit)| Ok((commit.clone(), folder.needed_result(unit)?)))
            .collect::<Result<_, Fault>>()?;
        let measures: Vec<(&PlannedUnit, UnitResult)> = batch
            .measures
            .iter()
            .map(|planned| Ok((planned, folder.needed_result(&planned.unit)?)))
            .collect::<Result<_, Fault>>()?;
        if !farm.entry.mixed {
            self.check_classes(&folder, &measures)?;
        }
        self.journal.hold()?;
        let Campaign { journal, builds: own, scope, progress, block, .. } = self;
        let building = Building { journal, builds: own, subjects: &scope.subjects, progress };
        let adopted = Adoption { building, scope, block }.adopt(builds, measures);
        self.journal.release(adopted)?;
        folder.remove();
        Ok(())
    }

    /// Returns an error if nodes are of different machine classes. The class of the earlier readings is the right one.
    fn check_classes(
        &self,
        folder: &UnitFolder,
        measures: &[(&PlannedUnit, UnitResult)],
    ) -> Result<(), Fault> {
        let of = |(planned, result): &(&PlannedUnit, UnitResult)| UnitMachine {
            node: result.node.clone(),
            class: result.machine.machine_class.clone(),
            result: folder.result_path(&planned.unit),
        };
        let provenance = &self.journal.history.run.provenance;
        let before = provenance.nodes.first().map(|node| (&*node.name, &*provenance.machine_class));
        check_classes(&measures.iter().map(of).collect::<Vec<UnitMachine>>(), before)
    }

    fn unit_plan(&self) -> UnitPlan<'_> {
        let Campaign { journal, builds, instruments, scope, block, .. } = self;
        UnitPlan { journal, builds, instruments, scope, block: *block }
    }
}

/// Prints what the next units do.
fn tell_units(ahead: &ParallelWork, all: usize, progress: &Progress) {
    let (builds, count, beside) = (ahead.builds.len(), ahead.count.len(), ahead.beside.len());
    let mut work = Vec::new();
    for (number, what) in [(builds, "to build"), (count, "to count"), (beside, "to time")] {
        if number > 0 {
            work.push(format!("{number} {what}"));
        }
    }
    progress.say(&format!("next, of {all} versions: {}", work.join(", ")));
}
