//! The store holds every run with every reading, in a file or in a database of a PostgreSQL server.
//!
//! While a run is under way, the readings of each launch are written to a journal. When it ends, they become one row
//! for each sample. If its process is killed, the run is restored from its journal, so that at most the reading under
//! way is lost.

pub mod args;
mod attachments;
pub mod check;
pub mod copy;
#[cfg(test)]
mod damaged_rows;
mod database;
pub mod error;
pub mod export;
pub mod histories;
pub mod import;
pub mod journal_entry;
pub mod list;
mod migrations;
pub mod newest;
pub mod open_store;
mod outbox;
mod owner;
pub mod read_runs;
pub mod remove;
pub mod run_writer;
pub mod subject_readings;
pub mod verb;

pub use error::StoreError;
pub use histories::{StoredHistory, StoredVersion};
pub use run_writer::RunWriter;
pub use subject_readings::StoredPoint;

use crate::address::{ServerUrl, StoreAddress};
use crate::paths;
use database::{Database, DatabaseFailure, Refusal, SqlValue};
use journal_entry::JournalEntry;
use scruple_core::metric::Pass;
use scruple_core::run::{Run, RunState};
use scruple_core::sample::{Figure, Reading};
use scruple_core::subject::Arm;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// An open store.
pub struct Store {
    database: Database,
    address: StoreAddress,
    /// The server that receives ended runs, if this is the local file in which they wait for it.
    server: Option<ServerUrl>,
}

/// A run in the list of runs.
#[derive(Clone, Debug)]
pub struct ListedRun {
    /// The id of the run.
    pub id: String,
    /// The label of the run.
    pub label: Option<String>,
    /// The start of the run, in milliseconds since 1970.
    pub started: i64,
    /// The state of the run.
    pub state: RunState,
    /// The class of the machine on which the run was measured.
    pub machine: String,
    /// The command line of the run.
    pub argv: Vec<String>,
    /// The names of the run's subjects.
    pub arms: Vec<String>,
}

impl Store {
    /// Opens a store for writing. Creates or migrates it if necessary.
    pub fn open(address: &StoreAddress) -> Result<Store, StoreError> {
        if let StoreAddress::File(path) = address
            && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            make_folder(folder).map_err(|error| StoreError::ReadOnly {
                path: path.display().to_string(),
                message: error.to_string(),
            })?;
        }
        let store = Store::connect(address, true)?;
        store.migrate().map_err(|failure| store.error(failure))?;
        store.check_version()?;
        Ok(store)
    }

    /// Opens an existing store for reading.
    pub fn open_existing(address: &StoreAddress) -> Result<Store, StoreError> {
        let missing = || StoreError::Missing(address.to_string());
        if let StoreAddress::File(path) = address
            && !path.exists()
        {
            return Err(missing());
        }
        let store = Store::connect(address, false)?;
        // Where the disk was full when a store was to be made, there is a database without tables.
        if store.database.is_empty().map_err(|failure| store.error(failure))? {
            return Err(missing());
        }
        store.check_version()?;
        Ok(store)
    }

    fn connect(address: &StoreAddress, writable: bool) -> Result<Store, StoreError> {
        if let StoreAddress::File(path) = address
            && path.is_dir()
        {
            return Err(StoreError::NotAStore {
                path: path.display().to_string(),
                message: "it is a folder".to_owned(),
            });
        }
        let database = Database::open(address, writable).map_err(|failure| failure.at(address))?;
        Ok(Store { database, address: address.clone(), server: None })
    }

    /// Returns the address of the store.
    pub fn address(&self) -> &StoreAddress {
        &self.address
    }

    /// The command that lists the runs of this store, as messages show it.
    pub fn list_command(&self) -> String {
        format!("`scruple store list{}`", paths::store_option(&self.address))
    }

    /// Begins a transaction that contains everything written until [`Store::release`].
    pub fn hold(&self) -> Result<(), StoreError> {
        self.database.hold().map_err(|failure| self.error(failure))
    }

    /// Ends the transaction that [`Store::hold`] began. Commits it, or rolls it back if `result` is an error.
    pub fn release<E: From<StoreError>>(&self, result: Result<(), E>) -> Result<(), E> {
        let released = self.database.release(result.is_ok()).map_err(|failure| self.error(failure));
        result.and(released.map_err(E::from))
    }

    /// Writes the provenance of a run under way, once it is known.
    pub fn put_provenance(&self, run: &Run) -> Result<(), StoreError> {
        let sql = "UPDATE run SET machine_class = $1, provenance = $2 WHERE id = $3";
        let class = run.provenance.machine_class.clone();
        let values = [class.into(), json(&run.provenance), run.id.clone().into()];
        self.database.execute(sql, &values).map(|_| ()).map_err(|failure| self.error(failure))
    }

    fn error(&self, failure: DatabaseFailure) -> StoreError {
        failure.at(&self.address)
    }

    /// Writes a new run without its readings.
    pub fn begin(&self, run: &Run) -> Result<(), StoreError> {
        self.database.transaction(|| self.insert_run(run)).map_err(|failure| self.error(failure))
    }

    fn insert_run(&self, run: &Run) -> Result<(), DatabaseFailure> {
        self.database.execute(
                    "INSERT INTO run (id, label, started, state, owner, seed, machine_class, argv, terms, provenance, \
                     warnings, host) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
                    &[
                        run.id.clone().into(),
                        run.label.clone().into(),
                        run.started.into(),
                        run.state.word().into(),
                        i64::from(std::process::id()).into(),
                        run.seed.to_string().into(),
                        run.provenance.machine_class.clone().into(),
                        json(&run.argv),
                        json(&run.terms),
                        json(&run.provenance),
                        json(&run.warnings),
                        owner::host().into(),
                    ],
                )?;
        let mut arms = run.arms.iter().enumerate();
        arms.try_for_each(|(position, arm)| self.insert_arm(&run.id, position, arm))
    }

    fn insert_arm(&self, run: &str, position: usize, arm: &Arm) -> Result<(), DatabaseFailure> {
        self.database.execute(
            "INSERT INTO arm (run_id, position, name, role, version, subject, params, course, memory) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            &[
                run.into(),
                (position as i64).into(),
                arm.name.clone().into(),
                arm.role.word().into(),
                arm.version.clone().into(),
                json(&arm.subject),
                json(&arm.params),
                arm.course.as_ref().map_or(SqlValue::Null, json),
                arm.memory.as_ref().map_or(SqlValue::Null, json),
            ],
        )?;
        Ok(())
    }

    /// Adds the readings of one launch to the journal of a run under way.
    pub fn journal(
        &self,
        run: &str,
        sequence: u64,
        position: usize,
        pass: Pass,
        block: u32,
        readings: &[Reading],
    ) -> Result<(), StoreError> {
        let readings: Vec<JournalEntry> = readings.iter().map(JournalEntry::from).collect();
        self.database
            .execute(
                "INSERT INTO journal (run_id, sequence, position, pass, block, readings, taken) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                &[
                    run.into(),
                    (sequence as i64).into(),
                    (position as i64).into(),
                    pass.word().into(),
                    i64::from(block).into(),
                    json(&readings),
                    owner::now().into(),
                ],
            )
            .map(|_| ())
            .map_err(|failure| self.error(failure))
    }

    /// Writes a run that has ended. Its samples replace its journal.
    pub fn finish(&self, run: &Run) -> Result<(), StoreError> {
        self.database.transaction(|| self.write_end(run)).map_err(|failure| self.error(failure))?;
        self.hand_over(&run.id);
        Ok(())
    }

    fn write_end(&self, run: &Run) -> Result<(), DatabaseFailure> {
        self.database.execute(
            "UPDATE run SET state = $1, terms = $2, warnings = $3, provenance = $4 WHERE id = $5",
            &[
                run.state.word().into(),
                json(&run.terms),
                json(&run.warnings),
                json(&run.provenance),
                run.id.clone().into(),
            ],
        )?;
        self.insert_figures(run)?;
        for (position, arm) in run.arms.iter().enumerate() {
            if arm.course.is_none() && arm.memory.is_none() {
                continue;
            }
            self.database.execute(
                "UPDATE arm SET course = $1, memory = $2 WHERE run_id = $3 AND position = $4",
                &[
                    arm.course.as_ref().map_or(SqlValue::Null, json),
                    arm.memory.as_ref().map_or(SqlValue::Null, json),
                    run.id.clone().into(),
                    (position as i64).into(),
                ],
            )?;
        }
        self.database.execute("DELETE FROM journal WHERE run_id = $1", &[run.id.clone().into()])?;
        Ok(())
    }

    fn insert_figures(&self, run: &Run) -> Result<(), DatabaseFailure> {
        for (position, arm) in run.arms.iter().enumerate() {
            for (metric, figure) in &arm.figures {
                self.insert_figure(&run.id, position as i64, metric, figure)?;
            }
        }
        Ok(())
    }

    fn insert_figure(
        &self,
        run: &str,
        position: i64,
        metric: &str,
        figure: &Figure,
    ) -> Result<(), DatabaseFailure> {
        let rest = match figure {
            Figure::Sample(sample) => [
                sample.pass.word().into(),
                sample.unit.name().into(),
                sample.quality.word().into(),
                sample.source.clone().into(),
                json(&sample.readings),
                json(&sample.blocks),
                SqlValue::Null,
            ],
            Figure::Absent { absent } => [
                SqlValue::Null,
                SqlValue::Null,
                SqlValue::Null,
                SqlValue::Null,
                SqlValue::Null,
                SqlValue::Null,
                absent.clone().into(),
            ],
        };
        let mut values = vec![run.into(), position.into(), metric.into()];
        values.extend(rest);
        self.database.execute(
            "INSERT INTO sample (run_id, position, metric, pass, unit, quality, source, readings, blocks, absent) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            &values,
        )?;
        Ok(())
    }
}

/// Adds the readings of one launch to an arm's figures.
pub fn add_readings(arm: &mut Arm, readings: impl IntoIterator<Item = Reading>, pass: Pass, block: u32) {
    for reading in readings {
        let key = reading.key.clone();
        let mut figure = arm.figures.remove(&key);
        Figure::add(&mut figure, reading, pass, block);
        if let Some(figure) = figure {
            arm.figures.insert(key, figure);
        }
    }
}

fn json(value: &impl Serialize) -> SqlValue {
    // Serialization cannot fail, because these types have text keys and no failing serializers.
    SqlValue::Text(serde_json::to_string(value).unwrap_or_default())
}

fn parse<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, DatabaseFailure> {
    serde_json::from_str(text).map_err(|error| damaged(&format!("{what}: {error}")))
}

fn damaged(message: &str) -> DatabaseFailure {
    DatabaseFailure { refusal: Refusal::Corrupt, message: message.to_owned() }
}

/// Creates the store's folder. A folder named `.scruple` contains a `.gitignore` for itself, so that measurements are
/// not committed by accident.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    if folder.file_name().is_some_and(|name| name == ".scruple") {
        std::fs::write(folder.join(".gitignore"), "*\n")?;
    }
    Ok(())
}
