//! Stores histories. A history is a run whose arms are versions of a repository, and the state of each version.
//!
//! A history is never finally complete. A longer range adds versions and arms, and the journal continues after the
//! samples that exist.

use super::database::{DatabaseFailure, SqlValue, StoredRow};
use super::read_runs::HISTORIES;
use super::{Store, StoreError, damaged, json, owner, parse};
use scruple_core::history::{Acceptance, History, Version, VersionState};
use scruple_core::run::{self, Run};
use scruple_core::subject::Arm;
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::time::Duration;

/// A version, with data that only the measuring code needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredVersion {
    /// The version in the form that reports use.
    pub version: Version,
    /// The digest of the version's artefacts, once they are built.
    pub artefacts: Option<String>,
    /// How often the memory and counting passes were run.
    pub counted: u32,
    /// The most instruments that were attached in one of these counting passes.
    #[serde(default)]
    pub instruments: u32,
    /// The digest of what each command printed, by the name of the subject.
    pub outputs: SortedMap<String, String>,
    /// The time spent on the version besides the times that its samples hold: in the memory and counting passes, and
    /// around launches and builds.
    #[serde(default)]
    pub other_time: Duration,
}

impl StoredVersion {
    /// A version that was not built yet.
    pub fn new(version: Version) -> StoredVersion {
        StoredVersion {
            version,
            artefacts: None,
            counted: 0,
            instruments: 0,
            outputs: SortedMap::new(),
            other_time: Duration::ZERO,
        }
    }
}

/// The properties of a version that do not depend on its state.
#[derive(Serialize, Deserialize)]
struct VersionFacts {
    parents: Vec<String>,
    /// The listed versions that this one follows; `None` in stores that an earlier Scruple wrote.
    #[serde(default)]
    follows: Option<Vec<String>>,
    title: String,
    author: String,
    time: i64,
    tags: Vec<String>,
    accepted: Vec<Acceptance>,
    #[serde(default)]
    left_out: usize,
    #[serde(default)]
    other_time: Duration,
    #[serde(default)]
    instruments: Option<u32>,
}

impl VersionFacts {
    /// The number of instruments of a version that was counted so often. An earlier Scruple did not record it; versions
    /// that it counted are not counted again.
    fn instruments(&self, counted: u32) -> u32 {
        self.instruments.unwrap_or(if counted > 0 { u32::MAX } else { 0 })
    }
}

/// A history in a list of histories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedHistory {
    /// The id of the history's run.
    pub id: String,
    /// The start of the history, in milliseconds since 1970.
    pub started: i64,
    /// The word for the state of the run.
    pub state: String,
    /// The command line that began the history.
    pub argv: Vec<String>,
}

/// A stored history.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredHistory {
    /// A digest of the repository, the recipe and the subjects. The same command finds its history by this digest.
    pub identity: String,
    /// The absolute path or the URL of the repository.
    pub source: String,
    /// The name of the repository: the last part of `source`.
    pub repository: String,
    /// The URL of the remote, if there is one.
    pub remote: Option<String>,
    /// The range of the last request.
    pub range: String,
    /// The versions of that range, oldest first.
    pub entries: Vec<StoredVersion>,
    /// The versions of earlier ranges that the last range does not have.
    pub unlisted: Vec<StoredVersion>,
    /// The definition of the history, in a form that [`crate::history`] reads; `None` if it was imported or an earlier
    /// Scruple wrote it.
    pub request: Option<String>,
    /// The run with all readings.
    pub run: Run,
}

impl StoredHistory {
    /// The form that reports use, without versions outside the range.
    pub fn view(self) -> History {
        let versions: Vec<_> = self.entries.into_iter().map(|entry| entry.version).collect();
        let mut run = self.run;
        run.arms.retain(|arm| versions.iter().any(|version| Some(&version.commit) == arm.version.as_ref()));
        History { repository: self.repository, remote: self.remote, range: self.range, versions, run }
    }
}

/// The schema version from which on histories have requests.
const REQUESTS: i64 = 5;

impl Store {
    /// Returns the newest history with this identity.
    pub fn history(&self, identity: &str) -> Result<Option<StoredHistory>, StoreError> {
        match self.newest_history("h.identity = $1", identity)? {
            None => self.server_of_waiting_runs().map_or(Ok(None), |server| server.history(identity)),
            found => Ok(found),
        }
    }

    /// Returns the history that this run belongs to.
    pub fn history_of_run(&self, run: &str) -> Result<Option<StoredHistory>, StoreError> {
        match self.newest_history("h.run_id = $1", run)? {
            None => self.server_of_waiting_runs().map_or(Ok(None), |server| server.history_of_run(run)),
            found => Ok(found),
        }
    }

    /// Returns the histories of a repository, newest first. Those without any weighed version come last, because they
    /// are mistakes that should not hide the intended history.
    pub fn histories_of(&self, source: &str) -> Result<Vec<ListedHistory>, StoreError> {
        let work = || {
            if self.version()? < HISTORIES {
                return Ok(Vec::new());
            }
            let weighed = "EXISTS (SELECT 1 FROM version v WHERE v.run_id = r.id AND v.state = $2)";
            let sql = format!(
                "SELECT r.id, r.started, r.state, r.argv FROM history h JOIN run r ON r.id = h.run_id \
                 WHERE h.source = $1 ORDER BY {weighed} DESC, r.started DESC, r.id DESC"
            );
            let rows = self.database.query(&sql, &[source.into(), VersionState::Built.word().into()])?;
            let listed = |row: &StoredRow| {
                let (id, state) = (row.text(0)?.to_owned(), row.text(2)?.to_owned());
                Ok(ListedHistory { id, started: row.integer(1)?, state, argv: parse(row.text(3)?, "argv")? })
            };
            rows.iter().map(listed).collect()
        };
        let mut found: Vec<ListedHistory> = work().map_err(|failure| self.error(failure))?;
        if let Some(server) = self.server_of_waiting_runs() {
            let more = server.histories_of(source)?;
            found.extend(
                more.into_iter().filter(|one| !found.iter().any(|own| own.id == one.id)).collect::<Vec<_>>(),
            );
        }
        Ok(found)
    }

    fn newest_history(&self, which: &str, value: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.load_history(which, value).map_err(|failure| self.error(failure))
    }

    pub(super) fn load_history(
        &self,
        which: &str,
        value: &str,
    ) -> Result<Option<StoredHistory>, DatabaseFailure> {
        self.database.reading(|| self.read_history(which, value))
    }

    fn read_history(&self, which: &str, value: &str) -> Result<Option<StoredHistory>, DatabaseFailure> {
        let request = if self.version()? < REQUESTS { "NULL" } else { "h.request" };
        let sql = format!(
            "SELECT h.run_id, h.identity, h.source, h.repository, h.remote, h.commits, {request} FROM history h \
             JOIN run r ON r.id = h.run_id WHERE {which} ORDER BY r.started DESC, r.id DESC LIMIT 1"
        );
        // A store of an earlier Scruple that is only read has no table of histories yet.
        if self.version()? < HISTORIES {
            return Ok(None);
        }
        let rows = self.database.query(&sql, &[value.into()])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let versions = self.database.query(
            "SELECT commit_id, position, state, why, log, same_as, artefacts, counted, outputs, facts FROM version \
             WHERE run_id = $1 ORDER BY position",
            &[row.text(0)?.into()],
        )?;
        let mut history = StoredHistory {
            identity: row.text(1)?.to_owned(),
            source: row.text(2)?.to_owned(),
            repository: row.text(3)?.to_owned(),
            remote: row.optional_text(4)?.map(str::to_owned),
            range: row.text(5)?.to_owned(),
            entries: Vec::new(),
            unlisted: Vec::new(),
            request: row.optional_text(6)?.map(str::to_owned),
            run: self.load(row.text(0)?)?,
        };
        for row in &versions {
            let list = if row.is_null(1) { &mut history.unlisted } else { &mut history.entries };
            list.push(entry(row)?);
        }
        link(&mut history.entries);
        Ok(Some(history))
    }

    /// Writes a new history without arms.
    pub fn begin_history(&self, history: &StoredHistory) -> Result<(), StoreError> {
        let work = || self.insert_history(history);
        self.database.transaction(work).map_err(|failure| self.error(failure))
    }

    /// Writes runs and histories that come from elsewhere, with all their readings, in one transaction.
    pub fn add(&self, runs: &[Run], histories: &[StoredHistory]) -> Result<(), StoreError> {
        let work = || {
            for run in runs {
                self.insert_run(run)?;
                self.insert_figures(run)?;
            }
            for history in histories {
                self.insert_history(history)?;
                self.insert_figures(&history.run)?;
            }
            Ok(())
        };
        self.database.transaction(work).map_err(|failure| self.error(failure))
    }

    pub(super) fn insert_history(&self, history: &StoredHistory) -> Result<(), DatabaseFailure> {
        self.insert_run(&history.run)?;
        self.database.execute(
            "INSERT INTO history (run_id, identity, source, repository, remote, commits, request) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                history.run.id.clone().into(),
                history.identity.clone().into(),
                history.source.clone().into(),
                history.repository.clone().into(),
                history.remote.clone().into(),
                history.range.clone().into(),
                history.request.clone().into(),
            ],
        )?;
        self.list_versions(history)
    }

    /// Resumes a history: makes this process its owner, and sets its range and versions.
    pub fn resume_history(&self, history: &StoredHistory) -> Result<(), StoreError> {
        let id = || SqlValue::from(history.run.id.clone());
        let work = || {
            if self.database.query("SELECT id FROM run WHERE id = $1", &[id()])?.is_empty() {
                // The history was read from the server's store, and this store does not have it yet.
                self.insert_history(history)?;
                history.unlisted.iter().try_for_each(|entry| self.upsert(&history.run.id, None, entry))?;
                self.insert_figures(&history.run)?;
            }
            self.database.execute(
                "UPDATE run SET state = $1, owner = $2, host = $3 WHERE id = $4",
                &[
                    run::RunState::Running.word().into(),
                    i64::from(std::process::id()).into(),
                    owner::host().into(),
                    id(),
                ],
            )?;
            self.database.execute(
                "UPDATE history SET commits = $1, request = $2 WHERE run_id = $3",
                &[history.range.clone().into(), history.request.clone().into(), id()],
            )?;
            self.database.execute("UPDATE version SET position = NULL WHERE run_id = $1", &[id()])?;
            self.list_versions(history)
        };
        self.database.transaction(work).map_err(|failure| self.error(failure))
    }

    fn list_versions(&self, history: &StoredHistory) -> Result<(), DatabaseFailure> {
        let mut entries = history.entries.iter().enumerate();
        entries.try_for_each(|(position, entry)| self.upsert(&history.run.id, Some(position), entry))
    }

    /// Writes the state of a version together with the arms that it adds.
    pub fn put_version(
        &self,
        run: &str,
        position: usize,
        entry: &StoredVersion,
        arms: &[(usize, &Arm)],
    ) -> Result<(), StoreError> {
        let work = || {
            self.upsert(run, Some(position), entry)?;
            arms.iter().try_for_each(|(place, arm)| self.insert_arm(run, *place, arm))
        };
        self.database.transaction(work).map_err(|failure| self.error(failure))
    }

    pub(super) fn upsert(
        &self,
        run: &str,
        position: Option<usize>,
        entry: &StoredVersion,
    ) -> Result<(), DatabaseFailure> {
        let version = &entry.version;
        let facts = VersionFacts {
            parents: version.parents.clone(),
            follows: Some(version.follows.clone()),
            title: version.title.clone(),
            author: version.author.clone(),
            time: version.time,
            tags: version.tags.clone(),
            accepted: version.accepted.clone(),
            left_out: version.left_out,
            other_time: entry.other_time,
            instruments: Some(entry.instruments),
        };
        self.database.execute(
            "INSERT INTO version (run_id, commit_id, position, state, why, log, same_as, artefacts, counted, outputs, \
             facts) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
             ON CONFLICT (run_id, commit_id) DO UPDATE SET position = excluded.position, state = excluded.state, \
             why = excluded.why, log = excluded.log, same_as = excluded.same_as, artefacts = excluded.artefacts, \
             counted = excluded.counted, outputs = excluded.outputs, facts = excluded.facts",
            &[
                run.into(),
                version.commit.clone().into(),
                position.map_or(SqlValue::Null, |position| (position as i64).into()),
                version.state.word().into(),
                version.why.clone().into(),
                version.log.clone().into(),
                version.same_as.clone().into(),
                entry.artefacts.clone().into(),
                i64::from(entry.counted).into(),
                json(&entry.outputs),
                json(&facts),
            ],
        )?;
        Ok(())
    }

    /// Returns the next sequence number in the journal of a run.
    pub fn next_sequence(&self, run: &str) -> Result<u64, StoreError> {
        let sql = "SELECT COALESCE(MAX(sequence) + 1, 0) FROM journal WHERE run_id = $1";
        let rows = self.database.query(sql, &[run.into()]);
        let next = rows.and_then(|rows| rows.first().map_or(Ok(0), |row| row.count(0)));
        next.map_err(|failure| self.error(failure))
    }

    /// Writes a history that has ended for now. Its samples, old and new, replace its journal.
    pub fn pause_history(&self, run: &Run) -> Result<(), StoreError> {
        let work = || {
            self.database.execute("DELETE FROM sample WHERE run_id = $1", &[run.id.clone().into()])?;
            self.write_end(run)
        };
        self.database.transaction(work).map_err(|failure| self.error(failure))?;
        self.hand_over(&run.id);
        Ok(())
    }
}

/// The value that marks versions for which the store does not say which versions they follow.
const UNKNOWN: [&str; 1] = [""];

/// Determines which versions a version follows if the store does not say so: its listed parents, or if it has none, the
/// version listed before it.
fn link(entries: &mut [StoredVersion]) {
    let ids: Vec<String> = entries.iter().map(|entry| entry.version.commit.clone()).collect();
    let listed: HashSet<&String> = ids.iter().collect();
    for (place, entry) in entries.iter_mut().enumerate().filter(|(_, entry)| entry.version.follows == UNKNOWN)
    {
        let parents = entry.version.parents.iter().filter(|parent| listed.contains(parent));
        entry.version.follows = parents.cloned().collect();
        if entry.version.follows.is_empty() {
            entry.version.follows.extend(place.checked_sub(1).map(|before| ids[before].clone()));
        }
    }
}

fn entry(row: &StoredRow) -> Result<StoredVersion, DatabaseFailure> {
    let facts: VersionFacts = parse(row.text(9)?, "a version")?;
    let counted = row.count(7)?;
    let instruments = facts.instruments(counted);
    let version = Version {
        commit: row.text(0)?.to_owned(),
        parents: facts.parents,
        follows: facts.follows.unwrap_or_else(|| UNKNOWN.map(str::to_owned).to_vec()),
        title: facts.title,
        author: facts.author,
        time: facts.time,
        tags: facts.tags,
        state: VersionState::from_word(row.text(2)?)
            .ok_or_else(|| damaged("a version has an unknown state"))?,
        why: row.optional_text(3)?.map(str::to_owned),
        log: row.optional_text(4)?.map(str::to_owned),
        same_as: row.optional_text(5)?.map(str::to_owned),
        accepted: facts.accepted,
        left_out: facts.left_out,
    };
    Ok(StoredVersion {
        version,
        artefacts: row.optional_text(6)?.map(str::to_owned),
        counted,
        instruments,
        outputs: parse(row.text(8)?, "outputs")?,
        other_time: facts.other_time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_scruple_did_not_count_has_no_instruments() {
        let of = |more: &str, counted: u32| {
            let text =
                format!(r#"{{"parents":[],"title":"","author":"","time":0,"tags":[],"accepted":[]{more}}}"#);
            parse::<VersionFacts>(&text, "a version").expect("facts").instruments(counted)
        };
        assert_eq!((of("", 1), of("", 0)), (u32::MAX, 0));
        assert_eq!((of(r#","instruments":2"#, 1), of(r#","instruments":0"#, 1)), (2, 0));
    }
}
