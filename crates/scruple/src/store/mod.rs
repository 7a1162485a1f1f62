//! The store: every run with every reading, in one database file.
//!
//! A run's readings are journalled one launch at a time while it goes on, and become one row for each sample when it
//! ends. A run whose process was killed is read back from its journal, so that at most the reading under way is lost.

pub mod args;
pub mod error;
pub mod histories;
pub mod import;
pub mod journal;
pub mod ledger;
pub mod list;
pub mod sqlite;
pub mod verb;

pub use error::StoreError;
pub use histories::{Entry, StoredHistory};
pub use ledger::Ledger;

use journal::Journalled;
use scruple_core::metric::{Pass, Quality};
use scruple_core::run::{Run, State};
use scruple_core::sample::{Figure, Reading, Sample};
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::Unit;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlite::{Database, Failure, Refusal, Row, Value};
use std::path::{Path, PathBuf};

/// The migrations, in order; the position of the last one applied is the version of a store.
const MIGRATIONS: &[&str] = &[include_str!("sql/0001_runs.sql"), include_str!("sql/0002_histories.sql")];

/// An open store.
pub struct Store {
    database: Database,
    path: PathBuf,
}

/// One line of the list of runs.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The run's id.
    pub id: String,
    /// Its label.
    pub label: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: i64,
    /// How it ended.
    pub state: State,
    /// The words of its command line.
    pub argv: Vec<String>,
    /// The names of its arms.
    pub arms: Vec<String>,
}

impl Store {
    /// Opens a store for writing, making or migrating it as needed.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make_folder(folder).map_err(|error| StoreError::ReadOnly {
                path: path.display().to_string(),
                message: error.to_string(),
            })?;
        }
        let store = Store::connect(path, true)?;
        store.migrate().map_err(|failure| store.error(failure))?;
        store.check_version()?;
        Ok(store)
    }

    /// Opens an existing store for reading.
    pub fn open_existing(path: &Path) -> Result<Store, StoreError> {
        if path.metadata().is_ok_and(|data| data.len() == 0) || !path.exists() {
            return Err(StoreError::Missing(path.display().to_string()));
        }
        let store = Store::connect(path, false)?;
        store.check_version()?;
        Ok(store)
    }

    fn connect(path: &Path, writable: bool) -> Result<Store, StoreError> {
        let database = Database::open(path, writable).map_err(|failure| error_at(path, failure))?;
        Ok(Store { database, path: path.to_owned() })
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn migrate(&self) -> Result<(), Failure> {
        self.database.transaction(|| {
            self.database.batch("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")?;
            let done = self.version()?;
            for (index, migration) in MIGRATIONS.iter().enumerate().skip(done.max(0) as usize) {
                self.database.batch(migration)?;
                self.database.execute("DELETE FROM schema_version", &[])?;
                let version = index as i64 + 1;
                self.database
                    .execute("INSERT INTO schema_version (version) VALUES ($1)", &[version.into()])?;
            }
            Ok(())
        })
    }

    fn version(&self) -> Result<i64, Failure> {
        let rows = self.database.query("SELECT version FROM schema_version", &[])?;
        Ok(rows.first().map_or(0, |row| row.integer(0)))
    }

    fn check_version(&self) -> Result<(), StoreError> {
        let found = self.version().map_err(|failure| match failure.refusal {
            Refusal::Other => {
                StoreError::Corrupt { path: self.path.display().to_string(), message: failure.message }
            }
            _ => self.error(failure),
        })?;
        if found > MIGRATIONS.len() as i64 {
            let path = self.path.display().to_string();
            return Err(StoreError::Newer { path, found, known: MIGRATIONS.len() });
        }
        Ok(())
    }

    fn error(&self, failure: Failure) -> StoreError {
        error_at(&self.path, failure)
    }

    /// Writes a run that is about to be taken: everything but its readings.
    pub fn begin(&self, run: &Run) -> Result<(), StoreError> {
        self.database.transaction(|| self.insert_run(run)).map_err(|failure| self.error(failure))
    }

    /// Writes runs that were taken elsewhere, with all their readings: all of them or none.
    pub fn add(&self, runs: &[Run]) -> Result<(), StoreError> {
        let add = |run| self.insert_run(run).and_then(|()| self.insert_figures(run));
        self.database.transaction(|| runs.iter().try_for_each(add)).map_err(|failure| self.error(failure))
    }

    fn insert_run(&self, run: &Run) -> Result<(), Failure> {
        self.database.execute(
                    "INSERT INTO run (id, label, started, state, owner, seed, machine_class, argv, terms, provenance, \
                     warnings) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
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
                    ],
                )?;
        let mut arms = run.arms.iter().enumerate();
        arms.try_for_each(|(position, arm)| self.insert_arm(&run.id, position, arm))
    }

    fn insert_arm(&self, run: &str, position: usize, arm: &Arm) -> Result<(), Failure> {
        self.database.execute(
            "INSERT INTO arm (run_id, position, name, role, version, subject, params) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                run.into(),
                (position as i64).into(),
                arm.name.clone().into(),
                arm.role.word().into(),
                arm.version.clone().into(),
                json(&arm.subject),
                json(&arm.params),
            ],
        )?;
        Ok(())
    }

    /// Adds one launch's readings to the journal of a run under way.
    pub fn journal(
        &self,
        run: &str,
        sequence: u64,
        position: usize,
        pass: Pass,
        block: u32,
        readings: &[Reading],
    ) -> Result<(), StoreError> {
        let readings: Vec<Journalled> = readings.iter().map(Journalled::from).collect();
        self.database
            .execute(
                "INSERT INTO journal (run_id, sequence, position, pass, block, readings) VALUES ($1, $2, $3, $4, $5, $6)",
                &[
                    run.into(),
                    (sequence as i64).into(),
                    (position as i64).into(),
                    pass.word().into(),
                    i64::from(block).into(),
                    json(&readings),
                ],
            )
            .map(|_| ())
            .map_err(|failure| self.error(failure))
    }

    /// Writes a run that has ended: its samples take the place of its journal.
    pub fn finish(&self, run: &Run) -> Result<(), StoreError> {
        self.database.transaction(|| self.write_end(run)).map_err(|failure| self.error(failure))
    }

    fn write_end(&self, run: &Run) -> Result<(), Failure> {
        self.database.execute(
            "UPDATE run SET state = $1, terms = $2, warnings = $3 WHERE id = $4",
            &[run.state.word().into(), json(&run.terms), json(&run.warnings), run.id.clone().into()],
        )?;
        self.insert_figures(run)?;
        self.database.execute("DELETE FROM journal WHERE run_id = $1", &[run.id.clone().into()])?;
        Ok(())
    }

    fn insert_figures(&self, run: &Run) -> Result<(), Failure> {
        for (position, arm) in run.arms.iter().enumerate() {
            for (metric, figure) in &arm.figures {
                self.insert_figure(&run.id, position as i64, metric, figure)?;
            }
        }
        Ok(())
    }

    fn insert_figure(&self, run: &str, position: i64, metric: &str, figure: &Figure) -> Result<(), Failure> {
        let rest = match figure {
            Figure::Sample(sample) => [
                sample.pass.word().into(),
                sample.unit.name().into(),
                sample.quality.word().into(),
                sample.source.clone().into(),
                json(&sample.readings),
                json(&sample.blocks),
                Value::Null,
            ],
            Figure::Absent { absent } => [
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
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

    /// The runs, newest first.
    pub fn list(&self, most: usize) -> Result<Vec<Listed>, StoreError> {
        let work = || -> Result<Vec<Listed>, Failure> {
            let rows = self.database.query(
                "SELECT id, label, started, state, owner, argv FROM run ORDER BY started DESC, id DESC LIMIT $1",
                &[(most as i64).into()],
            )?;
            rows.iter()
                .map(|row| {
                    let id = row.text(0).to_owned();
                    let names = self.database.query(
                        // The versions of a history share the names of its subjects.
                        "SELECT name FROM arm WHERE run_id = $1 AND role = 'subject' GROUP BY name ORDER BY MIN(position)",
                        &[id.clone().into()],
                    )?;
                    Ok(Listed {
                        label: row.optional_text(1).map(str::to_owned),
                        started: row.integer(2),
                        state: state(row.text(3), row.integer(4)),
                        argv: parse(row.text(5), "argv")?,
                        arms: names.iter().map(|row| row.text(0).to_owned()).collect(),
                        id,
                    })
                })
                .collect()
        };
        work().map_err(|failure| self.error(failure))
    }

    /// The run of that name: an id, the beginning of one, a label (the newest run that bears it), `last`, or `last~N`.
    pub fn find(&self, name: &str) -> Result<Run, StoreError> {
        self.load(&self.find_id(name)?).map_err(|failure| self.error(failure))
    }

    /// The id of the run that [`Store::find`] would load, with the same errors.
    pub fn find_id(&self, name: &str) -> Result<String, StoreError> {
        let ids = |sql: &str, value: Value| -> Result<Vec<String>, StoreError> {
            let rows = self.database.query(sql, &[value]).map_err(|failure| self.error(failure))?;
            Ok(rows.iter().map(|row| row.text(0).to_owned()).collect())
        };
        let missing =
            || StoreError::NoSuchRun { name: name.to_owned(), path: self.path.display().to_string() };
        if let Some(back) = name.strip_prefix("last") {
            let back: i64 = match back.strip_prefix('~') {
                Some(number) => number.parse().map_err(|_| missing())?,
                None if back.is_empty() => 0,
                None => -1,
            };
            if back >= 0 {
                let sql = "SELECT id FROM run ORDER BY started DESC, id DESC LIMIT 1 OFFSET $1";
                return ids(sql, back.into())?.pop().ok_or_else(missing);
            }
        }
        let labelled =
            ids("SELECT id FROM run WHERE label = $1 ORDER BY started DESC, id DESC LIMIT 1", name.into())?;
        if let Some(id) = labelled.into_iter().next() {
            return Ok(id);
        }
        // Ids are made of letters, digits and hyphens, so that nothing else can begin one or mean something in a pattern.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(missing());
        }
        let mut begun = ids("SELECT id FROM run WHERE id LIKE $1 ORDER BY id", format!("{name}%").into())?;
        match begun.len() {
            0 => Err(missing()),
            1 => Ok(begun.remove(0)),
            _ => Err(StoreError::Ambiguous { name: name.to_owned(), matches: begun.join(", ") }),
        }
    }

    fn load(&self, id: &str) -> Result<Run, Failure> {
        let rows = self.database.query(
            "SELECT label, started, state, owner, seed, argv, terms, provenance, warnings FROM run WHERE id = $1",
            &[id.into()],
        )?;
        let row = rows.first().ok_or_else(|| damaged("a run vanished while it was read"))?;
        let mut arms = self.load_arms(id)?;
        self.load_samples(id, &mut arms)?;
        self.load_journal(id, &mut arms)?;
        Ok(Run {
            id: id.to_owned(),
            label: row.optional_text(0).map(str::to_owned),
            started: row.integer(1),
            state: state(row.text(2), row.integer(3)),
            seed: row.text(4).parse().map_err(|_| damaged("a seed is not a number"))?,
            argv: parse(row.text(5), "argv")?,
            terms: parse(row.text(6), "terms")?,
            provenance: parse(row.text(7), "provenance")?,
            arms,
            warnings: parse(row.text(8), "warnings")?,
        })
    }

    fn load_arms(&self, id: &str) -> Result<Vec<Arm>, Failure> {
        let rows = self.database.query(
            "SELECT name, role, version, subject, params FROM arm WHERE run_id = $1 ORDER BY position",
            &[id.into()],
        )?;
        rows.iter()
            .map(|row| {
                let role =
                    Role::from_word(row.text(1)).ok_or_else(|| damaged("an arm has an unknown role"))?;
                let mut arm = Arm::new(row.text(0), parse(row.text(3), "subject")?, role);
                arm.version = row.optional_text(2).map(str::to_owned);
                arm.params = parse(row.text(4), "params")?;
                Ok(arm)
            })
            .collect()
    }

    fn load_samples(&self, id: &str, arms: &mut [Arm]) -> Result<(), Failure> {
        let rows = self.database.query(
            "SELECT position, metric, pass, unit, quality, source, readings, blocks, absent FROM sample \
             WHERE run_id = $1",
            &[id.into()],
        )?;
        for row in &rows {
            let arm = arm_at(arms, row)?;
            let figure = match row.optional_text(8) {
                Some(absent) => Figure::Absent { absent: absent.to_owned() },
                None => Figure::Sample(Sample {
                    pass: Pass::from_word(row.text(2))
                        .ok_or_else(|| damaged("a sample has an unknown pass"))?,
                    unit: Unit::from(row.text(3).to_owned()),
                    quality: Quality::from_word(row.text(4))
                        .ok_or_else(|| damaged("a sample has an unknown quality"))?,
                    source: row.text(5).to_owned(),
                    readings: parse(row.text(6), "readings")?,
                    blocks: parse(row.text(7), "blocks")?,
                }),
            };
            arm.figures.insert(row.text(1).to_owned(), figure);
        }
        Ok(())
    }

    fn load_journal(&self, id: &str, arms: &mut [Arm]) -> Result<(), Failure> {
        let rows = self.database.query(
            "SELECT position, pass, block, readings FROM journal WHERE run_id = $1 ORDER BY sequence",
            &[id.into()],
        )?;
        for row in &rows {
            let arm = arm_at(arms, row)?;
            let pass =
                Pass::from_word(row.text(1)).ok_or_else(|| damaged("the journal has an unknown pass"))?;
            let readings: Vec<Journalled> = parse(row.text(3), "journal")?;
            add_readings(arm, readings.into_iter().map(Reading::from), pass, row.integer(2) as u32);
        }
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

/// A run that claims to be under way while its process is gone was interrupted.
fn state(word: &str, owner: i64) -> State {
    match State::from_word(word) {
        Some(State::Running) if !Path::new(&format!("/proc/{owner}")).exists() => State::Interrupted,
        Some(state) => state,
        None => State::Interrupted,
    }
}

fn arm_at<'a>(arms: &'a mut [Arm], row: &Row) -> Result<&'a mut Arm, Failure> {
    arms.get_mut(row.integer(0) as usize)
        .ok_or_else(|| damaged("readings belong to an arm that is not there"))
}

fn json(value: &impl Serialize) -> Value {
    // These types have text keys and no failing serializers, so there is no error to handle.
    Value::Text(serde_json::to_string(value).unwrap_or_default())
}

fn parse<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| damaged(&format!("{what}: {error}")))
}

fn damaged(message: &str) -> Failure {
    Failure { refusal: Refusal::Corrupt, message: message.to_owned() }
}

fn error_at(path: &Path, failure: Failure) -> StoreError {
    let (path, message) = (path.display().to_string(), failure.message);
    match failure.refusal {
        Refusal::Corrupt => StoreError::Corrupt { path, message },
        Refusal::ReadOnly => StoreError::ReadOnly { path, message },
        Refusal::Full => StoreError::Full { path, message },
        Refusal::Busy => StoreError::Busy { path },
        Refusal::Other => StoreError::Other { path, message },
    }
}

/// Makes the store's folder. A folder named `.scruple` ignores itself, so that nobody commits measurements by accident.
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
