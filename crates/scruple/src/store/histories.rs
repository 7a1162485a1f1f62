//! Histories in the store: a run whose arms are versions of a repository, and the state of each version.
//!
//! A history is never finally complete: a longer range adds versions and arms to it, and the journal continues after
//! the samples that are already there.

use super::database::{Failure, StoredRow, Value};
use super::{Store, StoreError, damaged, json, owner, parse};
use scruple_core::history::{Acceptance, State, Version};
use scruple_core::run::{self, Run};
use scruple_core::subject::Arm;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// One version, with data that only the pipeline needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The version, as reports see it.
    pub version: Version,
    /// The digest of its artefacts, once they are built.
    pub artefacts: Option<String>,
    /// How often memory and counting passes were taken.
    pub counted: u32,
    /// What its commands printed, by the name of the subject, as a digest.
    pub outputs: BTreeMap<String, String>,
}

/// The properties of a version that do not depend on its state.
#[derive(Serialize, Deserialize)]
struct Facts {
    parents: Vec<String>,
    /// Unknown in stores that an earlier Scruple wrote.
    #[serde(default)]
    follows: Option<Vec<String>>,
    title: String,
    author: String,
    time: i64,
    tags: Vec<String>,
    accepted: Vec<Acceptance>,
    #[serde(default)]
    left_out: usize,
}

/// A history in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The id of its run.
    pub id: String,
    /// When it began, in milliseconds since 1970.
    pub started: i64,
    /// The word of its run's state.
    pub state: String,
    /// The words that began it.
    pub argv: Vec<String>,
}

/// A stored history.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredHistory {
    /// A digest of the repository, the recipe and the subjects: the same command finds its history by it.
    pub identity: String,
    /// The absolute path or the URL of the repository.
    pub source: String,
    /// The last part of that.
    pub repository: String,
    /// The URL of the remote.
    pub remote: Option<String>,
    /// The range as it was asked for last.
    pub range: String,
    /// The versions of that range, oldest first.
    pub entries: Vec<Entry>,
    /// Versions of earlier ranges that the last one does not have.
    pub unlisted: Vec<Entry>,
    /// What the history is of, in a form that [`crate::history`] reads; none where no Scruple took it, or an earlier one
    /// did.
    pub request: Option<String>,
    /// The readings.
    pub run: Run,
}

/// The version of a store from which on histories have requests.
const REQUESTS: i64 = 5;

impl Store {
    /// The newest history of that identity.
    pub fn history(&self, identity: &str) -> Result<Option<StoredHistory>, StoreError> {
        match self.newest_history("h.identity = $1", identity)? {
            None => self.beyond().map_or(Ok(None), |server| server.history(identity)),
            found => Ok(found),
        }
    }

    /// The history that is this run.
    pub fn history_of_run(&self, run: &str) -> Result<Option<StoredHistory>, StoreError> {
        match self.newest_history("h.run_id = $1", run)? {
            None => self.beyond().map_or(Ok(None), |server| server.history_of_run(run)),
            found => Ok(found),
        }
    }

    /// The histories of the repository there, the newest first, except that those without any weighed version come
    /// last: such a history is a mistake that should not hide the intended one.
    pub fn histories_of(&self, source: &str) -> Result<Vec<Listed>, StoreError> {
        let work = || {
            if self.version()? < 2 {
                return Ok(Vec::new());
            }
            let weighed = "EXISTS (SELECT 1 FROM version v WHERE v.run_id = r.id AND v.state = $2)";
            let sql = format!(
                "SELECT r.id, r.started, r.state, r.argv FROM history h JOIN run r ON r.id = h.run_id \
                 WHERE h.source = $1 ORDER BY {weighed} DESC, r.started DESC, r.id DESC"
            );
            let rows = self.database.query(&sql, &[source.into(), State::Built.word().into()])?;
            let listed = |row: &StoredRow| {
                let (id, state) = (row.text(0)?.to_owned(), row.text(2)?.to_owned());
                Ok(Listed { id, started: row.integer(1)?, state, argv: parse(row.text(3)?, "argv")? })
            };
            rows.iter().map(listed).collect()
        };
        let mut found: Vec<Listed> = work().map_err(|failure| self.error(failure))?;
        if let Some(server) = self.beyond() {
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

    pub(super) fn load_history(&self, which: &str, value: &str) -> Result<Option<StoredHistory>, Failure> {
        let request = if self.version()? < REQUESTS { "NULL" } else { "h.request" };
        let sql = format!(
            "SELECT h.run_id, h.identity, h.source, h.repository, h.remote, h.commits, {request} FROM history h \
             JOIN run r ON r.id = h.run_id WHERE {which} ORDER BY r.started DESC, r.id DESC LIMIT 1"
        );
        // A store that an earlier Scruple made and that is only read has no such table yet, and no history.
        if self.version()? < 2 {
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

    /// Writes runs and histories that were taken elsewhere, with all their readings: all of them or none.
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

    pub(super) fn insert_history(&self, history: &StoredHistory) -> Result<(), Failure> {
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

    /// Resumes a history: this process owns it, and sets its range and versions.
    pub fn resume_history(&self, history: &StoredHistory) -> Result<(), StoreError> {
        let id = || Value::from(history.run.id.clone());
        let work = || {
            if self.database.query("SELECT id FROM run WHERE id = $1", &[id()])?.is_empty() {
                // It was taken up from the server's store.
                self.insert_history(history)?;
                self.insert_figures(&history.run)?;
            }
            self.database.execute(
                "UPDATE run SET state = $1, owner = $2, host = $3 WHERE id = $4",
                &[
                    run::State::Running.word().into(),
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

    fn list_versions(&self, history: &StoredHistory) -> Result<(), Failure> {
        let mut entries = history.entries.iter().enumerate();
        entries.try_for_each(|(position, entry)| self.upsert(&history.run.id, Some(position), entry))
    }

    /// Writes the state of a version, with the arms that it adds, before anything else is done.
    pub fn put_version(
        &self,
        run: &str,
        position: usize,
        entry: &Entry,
        arms: &[(usize, &Arm)],
    ) -> Result<(), StoreError> {
        let work = || {
            self.upsert(run, Some(position), entry)?;
            arms.iter().try_for_each(|(place, arm)| self.insert_arm(run, *place, arm))
        };
        self.database.transaction(work).map_err(|failure| self.error(failure))
    }

    pub(super) fn upsert(&self, run: &str, position: Option<usize>, entry: &Entry) -> Result<(), Failure> {
        let version = &entry.version;
        let facts = Facts {
            parents: version.parents.clone(),
            follows: Some(version.follows.clone()),
            title: version.title.clone(),
            author: version.author.clone(),
            time: version.time,
            tags: version.tags.clone(),
            accepted: version.accepted.clone(),
            left_out: version.left_out,
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
                position.map_or(Value::Null, |position| (position as i64).into()),
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

    /// The number that the next launch has in the journal of a run.
    pub fn next_sequence(&self, run: &str) -> Result<u64, StoreError> {
        let sql = "SELECT COALESCE(MAX(sequence) + 1, 0) FROM journal WHERE run_id = $1";
        let rows = self.database.query(sql, &[run.into()]);
        let next = rows.and_then(|rows| rows.first().map_or(Ok(0), |row| row.count(0)));
        next.map_err(|failure| self.error(failure))
    }

    /// Writes a history that has ended for now: its samples, old and new, replace its journal.
    pub fn rest_history(&self, run: &Run) -> Result<(), StoreError> {
        let work = || {
            self.database.execute("DELETE FROM sample WHERE run_id = $1", &[run.id.clone().into()])?;
            self.write_end(run)
        };
        self.database.transaction(work).map_err(|failure| self.error(failure))?;
        self.hand_over(&run.id);
        Ok(())
    }
}

/// Stands for the versions that one follows where the store does not say.
const UNKNOWN: [&str; 1] = [""];

/// Versions without a recorded parent follow their parents, or where these are not listed, the version listed before
/// them.
fn link(entries: &mut [Entry]) {
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

fn entry(row: &StoredRow) -> Result<Entry, Failure> {
    let facts: Facts = parse(row.text(9)?, "a version")?;
    let version = Version {
        commit: row.text(0)?.to_owned(),
        parents: facts.parents,
        follows: facts.follows.unwrap_or_else(|| UNKNOWN.map(str::to_owned).to_vec()),
        title: facts.title,
        author: facts.author,
        time: facts.time,
        tags: facts.tags,
        state: State::from_word(row.text(2)?).ok_or_else(|| damaged("a version has an unknown state"))?,
        why: row.optional_text(3)?.map(str::to_owned),
        log: row.optional_text(4)?.map(str::to_owned),
        same_as: row.optional_text(5)?.map(str::to_owned),
        accepted: facts.accepted,
        left_out: facts.left_out,
    };
    Ok(Entry {
        version,
        artefacts: row.optional_text(6)?.map(str::to_owned),
        counted: row.count(7)?,
        outputs: parse(row.text(8)?, "outputs")?,
    })
}
