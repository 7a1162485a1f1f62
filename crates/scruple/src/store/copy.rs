//! `scruple store copy`: copies runs of one store into another. Doing it twice changes nothing.

use super::args::CopyArgs;
use super::database::DatabaseFailure;
use super::{Store, StoreError, StoredHistory};
use crate::fault::{Code, Fault};
use crate::paths;
use crate::render::output;
use scruple_core::history;
use scruple_core::plural::counted;
use scruple_core::run::{Run, RunState};
use scruple_core::sample::Figure;
use scruple_core::subject::Arm;

/// The result of copying a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// The target did not have the run.
    New,
    /// The target had the run with fewer readings or versions, which the copy continues.
    Longer,
    /// The target already had the complete run.
    Known,
    /// The run has not ended, and was not copied.
    UnderWay,
}

/// A run with its history, if it is a history.
struct WholeRun {
    run: Run,
    history: Option<StoredHistory>,
}

impl Store {
    /// Copies a run of this store into another store. If both have the same readings of a history, nothing else says
    /// which of the two ranges is the present one: `present` says that it is that of this store.
    pub(super) fn copy_to(&self, to: &Store, id: &str, present: bool) -> Result<Copied, StoreError> {
        let ours = self.whole(id).map_err(|failure| self.error(failure))?;
        if ours.run.state == RunState::Running {
            return Ok(Copied::UnderWay);
        }
        let work = || to.add_or_continue(&ours, present);
        let copied = to.database.transaction(work).map_err(|failure| to.error(failure))?;
        let copied =
            copied.ok_or_else(|| StoreError::Diverged { path: to.address.to_string(), id: id.to_owned() })?;
        self.copy_profiles(to, id).map(|()| copied)
    }

    fn whole(&self, id: &str) -> Result<WholeRun, DatabaseFailure> {
        let read = || Ok(WholeRun { run: self.load(id)?, history: self.load_history("h.run_id = $1", id)? });
        self.database.reading(read)
    }

    /// Adds a run to this store. Returns `None` if the store has the run with other readings.
    fn add_or_continue(&self, ours: &WholeRun, present: bool) -> Result<Option<Copied>, DatabaseFailure> {
        let id = &ours.run.id;
        let known = self.database.query("SELECT id FROM run WHERE id = $1", &[id.clone().into()])?;
        if known.is_empty() {
            return self.insert_whole(ours).map(|()| Some(Copied::New));
        }
        let theirs = self.whole(id)?;
        let has_other_range = present && ours.has_other_range(&theirs) && ours.continues(&theirs);
        if theirs.continues(ours) && !has_other_range {
            return Ok(Some(Copied::Known));
        }
        if theirs.run.state == RunState::Running || !ours.continues(&theirs) {
            return Ok(None);
        }
        self.database.execute("DELETE FROM run WHERE id = $1", &[id.clone().into()])?;
        self.insert_whole(ours).map(|()| Some(Copied::Longer))
    }

    fn insert_whole(&self, whole: &WholeRun) -> Result<(), DatabaseFailure> {
        match &whole.history {
            Some(history) => {
                self.insert_history(history)?;
                let unlisted = &history.unlisted;
                unlisted.iter().try_for_each(|entry| self.upsert(&whole.run.id, None, entry))?;
            }
            None => self.insert_run(&whole.run)?,
        }
        self.insert_figures(&whole.run)
    }
}

impl WholeRun {
    /// Returns the number of steps that leave no readings: versions with a known state, and the end of the run.
    fn finished_steps(&self) -> usize {
        let versions =
            self.history.iter().flat_map(|history| history.entries.iter().chain(&history.unlisted));
        let open = [history::VersionState::Queued, history::VersionState::Building];
        let known = versions.filter(|entry| !open.contains(&entry.version.state)).count();
        known + usize::from(self.run.state == RunState::Complete)
    }

    /// Whether both are a history, with different ranges.
    fn has_other_range(&self, other: &WholeRun) -> bool {
        let ranges = self.history.as_ref().zip(other.history.as_ref());
        ranges.is_some_and(|(ours, theirs)| ours.range != theirs.range)
    }

    /// Whether this run contains everything of the other one, in the same order.
    fn continues(&self, other: &WholeRun) -> bool {
        let versions = match (&self.history, &other.history) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => {
                let has = |commit: &String| {
                    ours.entries.iter().chain(&ours.unlisted).any(|entry| entry.version.commit == *commit)
                };
                theirs.entries.iter().chain(&theirs.unlisted).all(|entry| has(&entry.version.commit))
            }
            _ => false,
        };
        let arm_of = |arm: &Arm| {
            self.run
                .arms
                .iter()
                .find(|own| own.name == arm.name && own.version == arm.version && own.params == arm.params)
        };
        let versions = versions && self.finished_steps() >= other.finished_steps();
        versions && other.run.arms.iter().all(|arm| arm_of(arm).is_some_and(|own| arm_continues(own, arm)))
    }
}

fn arm_continues(own: &Arm, other: &Arm) -> bool {
    other.figures.iter().all(|(metric, figure)| match (figure, own.figures.get(metric)) {
        (Figure::Absent { .. }, found) => found.is_some(),
        (Figure::Sample(theirs), Some(Figure::Sample(ours))) => ours.readings.starts_with(&theirs.readings),
        (Figure::Sample(_), _) => false,
    })
}

/// Copies the requested runs from one store to another.
pub fn copy(args: &CopyArgs) -> Result<Code, Fault> {
    let (from, to) = (paths::address(&args.from)?, paths::address(&args.to)?);
    if from == to {
        return Err(Fault::usage(format!("‘{from}’ cannot be copied to itself: name another store")));
    }
    let from = Store::open_existing(&from)?;
    let ids: Vec<String> = match args.runs.is_empty() {
        true => from.list(usize::MAX)?.into_iter().rev().map(|run| run.id).collect(),
        false => args.runs.iter().map(|name| from.find_id(name)).collect::<Result<_, _>>()?,
    };
    let to = Store::open(&to)?;
    let mut counts = CopyCounts::default();
    let mut apart = Vec::new();
    for id in &ids {
        match from.copy_to(&to, id, false) {
            Ok(copied) => counts.add(copied),
            Err(error @ StoreError::Diverged { .. }) => apart.push(error.to_string()),
            Err(error) => {
                output::print(&counts.text())?;
                return Err(Fault::usage(format!(
                    "{error}. What was copied before stays; the same command copies the rest"
                )));
            }
        }
    }
    output::print(&counts.text())?;
    match apart.is_empty() {
        true => Ok(Code::Fine),
        false => Err(Fault::usage(apart.join("; "))),
    }
}

#[derive(Default)]
struct CopyCounts {
    new: usize,
    longer: usize,
    known: usize,
    under_way: usize,
}

impl CopyCounts {
    fn add(&mut self, copied: Copied) {
        let count = match copied {
            Copied::New => &mut self.new,
            Copied::Longer => &mut self.longer,
            Copied::Known => &mut self.known,
            Copied::UnderWay => &mut self.under_way,
        };
        *count += 1;
    }

    fn text(&self) -> String {
        let mut text = format!("Copied {}", counted(self.new, "run"));
        for (count, what) in [
            (self.longer, "replaced an earlier copy"),
            (self.known, "already there"),
            (self.under_way, "under way and left out"),
        ] {
            if count > 0 {
                text.push_str(&format!("; {count} {what}"));
            }
        }
        text + ".\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::StoreAddress;
    use crate::new_run::empty_run;
    use crate::store::add_readings;
    use scruple_core::metric::{Pass, metric};
    use scruple_core::run::Terms;
    use scruple_core::sample::Reading;
    use scruple_core::subject::{Role, Subject};
    use std::path::Path;

    /// A store with this run, whose launches took these times.
    fn store(place: &Path, head: &Run, state: RunState, times: &[f64]) -> Store {
        let file =
            tempfile::Builder::new().suffix(".db").tempfile_in(place).expect("a file").into_temp_path();
        let path = file.to_path_buf();
        file.close().expect("the name is free");
        let store = Store::open(&StoreAddress::File(path)).expect("a store");
        let command = Subject::Command { argv: vec!["app".to_owned()] };
        let mut arm = Arm::new("app".to_owned(), command, Role::Subject);
        for (block, time) in (0..).zip(times) {
            let reading = Reading::of(metric("time.wall").expect("a metric"), *time, "a test");
            add_readings(&mut arm, [reading], Pass::Timing, block);
        }
        let run = Run { state, arms: vec![arm], ..head.clone() };
        store.begin(&run).expect("writable");
        if state != RunState::Running {
            store.finish(&run).expect("writable");
        }
        store
    }

    #[test]
    fn a_copy_continues_a_run_and_never_replaces_other_readings() {
        use RunState::{Complete, Interrupted, Running};
        let place = tempfile::tempdir().expect("a folder");
        let head = empty_run(Some(1), None, Terms::default(), &[]);
        let store = |state, times: &[f64]| store(place.path(), &head, state, times);
        // Copies the first run to a store with the second one. Returns the outcome, and which of the two is there
        // afterwards.
        let copied = |ours: (RunState, &[f64]), theirs: (RunState, &[f64])| {
            let (from, to) = (store(ours.0, ours.1), store(theirs.0, theirs.1));
            let copied = from.copy_to(&to, &head.id, false).ok();
            let run = to.load(&head.id).expect("a run");
            let times = run.arms[0].sample("time.wall").map(|sample| sample.readings.clone());
            (copied, run.state, times.unwrap_or_default())
        };
        let (short, long, other) = (&[5.0, 6.0][..], &[5.0, 6.0, 7.0][..], &[5.0, 9.0, 7.0][..]);
        assert_eq!(
            copied((Complete, long), (Interrupted, short)),
            (Some(Copied::Longer), Complete, long.to_vec())
        );
        assert_eq!(
            copied((Interrupted, short), (Complete, long)),
            (Some(Copied::Known), Complete, long.to_vec())
        );
        assert_eq!(copied((Complete, other), (Interrupted, short)), (None, Interrupted, short.to_vec()));
        // The same readings, and the run has ended only in one of the stores.
        assert_eq!(
            copied((Complete, long), (Interrupted, long)),
            (Some(Copied::Longer), Complete, long.to_vec())
        );
        assert_eq!(
            copied((Interrupted, long), (Complete, long)),
            (Some(Copied::Known), Complete, long.to_vec())
        );
        // Another process still writes to one of them.
        let (copied_from, ..) = copied((Running, long), (Interrupted, short));
        assert_eq!(copied_from, Some(Copied::UnderWay));
        let (copied_to, state, _) = copied((Complete, long), (Running, &[]));
        assert_eq!((copied_to, state), (None, Running));
    }
}
