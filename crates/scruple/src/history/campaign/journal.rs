//! The history of a campaign, in memory and in the store, which are changed together.

use super::builds::EARLIER_BUILD;
use crate::fault::{Code, Fault};
use crate::history::arms::Arms;
use crate::history::remarks;
use crate::store::{Store, StoredHistory, add_readings};
use crate::versions::build_process::append_to_log;
use scruple_core::history::{History, VersionState};
use scruple_core::metric::Pass;
use scruple_core::run::{self, Run};
use scruple_core::sample::{Reading, Sample};
use scruple_core::subject::{Arm, Role, Subject};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

/// The history so far. Each step is stored before the next one begins.
pub(super) struct Journal {
    store: Store,
    pub(super) history: StoredHistory,
    pub(super) arms: Arms,
    /// The number of the next stored readings.
    sequence: u64,
    /// Whether the history in memory differs from the stored one, because the results of units could not be stored.
    half_adopted: bool,
    /// The commits that were counted by this process.
    pub(super) counted: HashSet<String>,
    /// For each commit, the number of its last readings of this process.
    last_readings: HashMap<String, u64>,
    /// The comparisons so far, by the indices of both versions.
    compared: RefCell<HashMap<(usize, usize), Compared>>,
}

/// How two versions compared.
struct Compared {
    /// The numbers of their last readings by then.
    last: [u64; 2],
    /// By how much they differed.
    size: f64,
}

impl Journal {
    /// Continues a stored history, whose arms these are.
    pub(super) fn resume(store: Store, history: StoredHistory, arms: Arms) -> Result<Journal, Fault> {
        let sequence = store.next_sequence(&history.run.id)?;
        Ok(Journal {
            store,
            history,
            arms,
            sequence,
            half_adopted: false,
            counted: HashSet::new(),
            last_readings: HashMap::new(),
            compared: RefCell::default(),
        })
    }

    /// Returns by how much two versions differ, as `compare` says. The comparison is repeated only if one of the
    /// versions has new readings, because each step of a history compares all neighbours.
    pub(super) fn difference(&self, a: usize, b: usize, compare: impl FnOnce() -> f64) -> f64 {
        let last = [a, b].map(|index| {
            let version = &self.history.entries[index].version;
            let commit = version.same_as.as_ref().unwrap_or(&version.commit);
            self.last_readings.get(commit).copied().unwrap_or(0)
        });
        if let Some(known) = self.compared.borrow().get(&(a, b))
            && known.last == last
        {
            return known.size;
        }
        let size = compare();
        self.compared.borrow_mut().insert((a, b), Compared { last, size });
        size
    }

    /// Notes that the memory and counting passes of a version were run, with this number of instruments.
    pub(super) fn note_count(&mut self, index: usize, attached: u32) {
        let entry = &mut self.history.entries[index];
        entry.counted += 1;
        entry.instruments = entry.instruments.max(attached);
        self.counted.insert(entry.version.commit.clone());
    }

    /// Stores the state of a version, and arms of it with their indices.
    pub(super) fn put(&self, index: usize, arms: &[(usize, &Arm)]) -> Result<(), Fault> {
        let (run, entry) = (&self.history.run.id, &self.history.entries[index]);
        Ok(self.store.put_version(run, index, entry, arms)?)
    }

    /// Adds readings to an arm.
    pub(super) fn keep(
        &mut self,
        arm: usize,
        pass: Pass,
        block: u32,
        readings: Vec<Reading>,
    ) -> Result<(), Fault> {
        let run = &self.history.run.id;
        self.store.journal(run, self.sequence, arm, pass, block, &readings)?;
        self.sequence += 1;
        if let Some(commit) = &self.history.run.arms[arm].version {
            self.last_readings.insert(commit.clone(), self.sequence);
        }
        add_readings(&mut self.history.run.arms[arm], readings, pass, block);
        Ok(())
    }

    /// Records that a built version cannot be weighed, and that neither can the versions with the same artefacts. The
    /// reason, and the last output of the program, are added to its log.
    pub(super) fn reject(
        &mut self,
        index: usize,
        state: VersionState,
        why: String,
        (log, error_output): (&Path, &str),
    ) -> Result<(), Fault> {
        let commit = self.history.entries[index].version.commit.clone();
        let original = self.history.entries[index].version.same_as.clone().unwrap_or(commit.clone());
        append_to_log(log, &format!("{why}{error_output}\n"))?;
        for other in 0..self.history.entries.len() {
            let version = &mut self.history.entries[other].version;
            let alike =
                version.state == VersionState::SameBinary && version.same_as.as_ref() == Some(&original);
            if other == index || alike {
                (version.state, version.same_as) = (state, None);
                (version.why, version.log) = (Some(why.clone()), Some(log.display().to_string()));
                self.put(other, &[])?;
            }
        }
        Ok(())
    }

    /// Returns the times of the builds of a version.
    pub(super) fn build_times(&self, index: usize) -> Option<&Sample> {
        let arm = self.build_arm(index)?;
        self.history.run.arms[arm].sample("build.time")
    }

    /// Returns the arm that carries the build costs of a version.
    pub(super) fn build_arm(&self, index: usize) -> Option<usize> {
        self.arms.launched(0, &self.history.entries[index].version.commit).first().copied()
    }

    /// Adds arms of a subject at a version, without readings.
    pub(super) fn add_arms(&mut self, index: usize, arms: Vec<(usize, Arm)>) -> Result<(), Fault> {
        let first = self.history.run.arms.len();
        for (place, (subject, arm)) in (first..).zip(arms) {
            self.arms.add(subject, &self.history.entries[index].version.commit, place, &arm);
            self.history.run.arms.push(arm);
        }
        let added: Vec<(usize, &Arm)> = self.history.run.arms.iter().enumerate().skip(first).collect();
        self.put(index, &added)
    }

    /// Returns the index of the arm of a case with this name at a version, if the case is known there.
    pub(super) fn case(&self, subject: usize, commit: &str, name: &str) -> Option<usize> {
        let mut known = self.arms.cases(subject, commit).iter().copied();
        known.find(|place| self.history.run.arms[*place].name == name)
    }

    /// Returns the index of the version with this commit.
    pub(super) fn index_of(&self, commit: &str) -> Option<usize> {
        self.history.entries.iter().position(|entry| entry.version.commit == commit)
    }

    /// Returns the time used so far, over the whole life of the history. Builds that the history found cost it nothing.
    pub(super) fn spent(&self, with_builds: bool) -> Duration {
        let other = self.history.entries.iter().map(|entry| entry.other_time).sum::<Duration>();
        other + self.sampled_time(with_builds)
    }

    /// Returns the time of the builds so far, over the whole life of the history.
    pub(super) fn build_time(&self) -> Duration {
        self.sampled_time(true) - self.sampled_time(false)
    }

    /// Returns the part of the time that samples hold: the launches of the timing pass, and the builds.
    pub(super) fn sampled_time(&self, with_builds: bool) -> Duration {
        let total = |key: &str| -> f64 {
            // The time of a case's iterations is already part of the time of its process.
            let took =
                self.history.run.arms.iter().filter(|arm| !matches!(arm.subject, Subject::Case { .. }));
            let samples = took.filter_map(|arm| arm.sample(key));
            // Later readings of such a sample are builds of this history.
            let own = |sample: &Sample| usize::from(sample.source == EARLIER_BUILD);
            samples.flat_map(|sample| sample.readings.iter().skip(own(sample))).sum()
        };
        let builds = if with_builds { total("build.time") } else { 0.0 };
        Duration::from_nanos((total("time.wall") + builds) as u64)
    }

    /// Returns the arms of a version, or those of the weighed version that has the same artefacts.
    pub(super) fn arms_of(&self, index: usize) -> Vec<&Arm> {
        let version = &self.history.entries[index].version;
        let commit = version.same_as.as_ref().unwrap_or(&version.commit);
        let arms = self.arms.of_version(commit).map(|place| &self.history.run.arms[place]);
        arms.filter(|arm| arm.role == Role::Subject).collect()
    }

    /// Marks the stored history as running.
    pub(super) fn begin(&self) -> Result<(), Fault> {
        Ok(self.store.resume_history(&self.history)?)
    }

    /// Begins a transaction: if this process is killed before [`Journal::release`], no change is stored.
    pub(super) fn hold(&self) -> Result<(), Fault> {
        Ok(self.store.hold()?)
    }

    /// Ends the transaction. Stores the changes, or none if `changed` is an error.
    pub(super) fn release(&mut self, changed: Result<(), Fault>) -> Result<(), Fault> {
        self.half_adopted = true;
        self.store.release(changed)?;
        self.half_adopted = false;
        Ok(())
    }

    /// Stores where the readings come from.
    pub(super) fn put_provenance(&self) -> Result<(), Fault> {
        Ok(self.store.put_provenance(&self.history.run)?)
    }

    /// Stores how the campaign ended, and the versions that it left out.
    pub(super) fn end(&mut self, result: Result<(), Fault>) -> Result<(), Fault> {
        if self.half_adopted {
            return result;
        }
        self.history.run.state = match &result {
            Ok(()) => run::RunState::Complete,
            Err(fault) if fault.code == Code::Interrupted => run::RunState::Interrupted,
            Err(_) => run::RunState::Failed,
        };
        let mut stored = Ok(());
        for index in 0..self.history.entries.len() {
            let version = &mut self.history.entries[index].version;
            if result.is_ok() && matches!(version.state, VersionState::Queued | VersionState::Building) {
                version.state = VersionState::Skipped;
                stored = stored.and_then(|()| self.put(index, &[]));
            }
        }
        remarks::end(&mut self.history);
        let stored = stored.and_then(|()| Ok(self.store.pause_history(&self.history.run)?));
        result.and(stored)
    }

    /// Returns the first result of `find` in the other histories of the repository, the newest first.
    pub(super) fn find_in_others<T>(&self, find: impl Fn(&Run) -> Option<T>) -> Result<Option<T>, Fault> {
        for listed in self.store.histories_of(&self.history.source)? {
            if listed.id == self.history.run.id {
                continue;
            }
            let other = self.store.history_of_run(&listed.id)?;
            if let Some(found) = other.and_then(|other| find(&other.run)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns a copy of the history in the form that reports use.
    pub(super) fn view(&self) -> History {
        self.history.clone().view()
    }
}
