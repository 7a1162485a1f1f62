//! Runs a campaign inside a farm unit, which weighs only the versions that the unit names.

use super::Campaign;
use crate::farm::folder::appears;
use crate::farm::unit_data::{UnitOutcome, VersionsToWeigh};
use crate::fault::Fault;
use crate::store::StoredVersion;
use scruple_core::history::VersionState;
use scruple_core::metric::Pass;
use scruple_core::run::Run;
use scruple_core::sample::Figure;
use std::path::{Path, PathBuf};

impl Campaign {
    /// Records what other units have built, and takes the artefacts of all versions from the shared folder.
    pub fn begin_unit(
        &mut self,
        shared: &Path,
        built: impl Fn(&str) -> Result<Option<UnitOutcome>, Fault>,
    ) -> Result<(), Fault> {
        for index in 0..self.journal.history.entries.len() {
            let commit = self.journal.history.entries[index].version.commit.clone();
            match built(&commit)? {
                None => self.building().add_arms(index)?,
                Some(found) => self.building().note_build(index, found)?,
            }
            let Some(digest) = self.journal.history.entries[index].artefacts.clone() else { continue };
            let cache = &self.builds.builder.cache;
            if !appears(&self.interrupted, || cache.fetch(shared, &digest))? {
                return Err(Fault::usage(format!(
                    "the artefacts of {commit} are not in ‘{}’: all nodes must see that folder; [farm] folder names another one",
                    shared.display()
                )));
            }
        }
        Ok(())
    }

    /// Runs the counting pass of some versions and rounds of others, as the unit says. All builds are finished by now.
    pub fn perform(&mut self, work: &VersionsToWeigh) -> Result<(), Fault> {
        self.scope.part = Some(work.part.clone());
        let places = |this: &Campaign, commits: &[String]| -> Vec<usize> {
            let entries = this.journal.history.entries.iter().enumerate();
            let wanted = |entry: &StoredVersion| {
                entry.version.state == VersionState::Built && commits.contains(&entry.version.commit)
            };
            entries.filter(|(_, entry)| wanted(entry)).map(|(index, _)| index).collect()
        };
        for index in places(self, &work.count) {
            self.count(index)?;
        }
        self.block = work.first;
        for _ in 0..work.rounds {
            let set = places(self, &work.beside);
            let Some(&first) = set.first() else { break };
            self.recording_time(first, |campaign| campaign.take_block(&set))?;
        }
        Ok(())
    }

    /// Returns the states of the versions, the run, and the logs of the versions that failed. Build costs are removed,
    /// because the results of the units that built the versions contain them.
    pub fn into_parts(self) -> (Vec<StoredVersion>, Run, Vec<(String, PathBuf)>) {
        let mut run = self.journal.history.run;
        for arm in &mut run.arms {
            arm.figures
                .retain(|_, figure| !matches!(figure, Figure::Sample(sample) if sample.pass == Pass::Build));
        }
        let failed = self.journal.history.entries.iter().filter(|entry| entry.version.state.failed());
        let logs = failed.map(|entry| (entry.version.commit.clone(), self.builds.log(&entry.version.commit)));
        (self.journal.history.entries.clone(), run, logs.collect())
    }
}
