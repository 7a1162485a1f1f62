//! Reads runs from the store: finds them by name, lists them, and loads their samples or their journal.

use super::database::{DatabaseFailure, SqlValue, StoredRow};
use super::journal_entry::JournalEntry;
use super::owner::state;
use super::{ListedRun, Store, StoreError, add_readings, damaged, parse};
use scruple_core::metric::{Pass, Quality};
use scruple_core::run::Run;
use scruple_core::sample::{Figure, Reading, Sample};
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::Unit;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The schema version from which on arms have courses.
const COURSES: i64 = 4;

/// The schema version from which on arms have memory maps over time.
const MEMORY_MAPS: i64 = 8;

/// The schema version from which on there are histories.
pub(super) const HISTORIES: i64 = 2;

/// The condition of a run that has figures: readings, or the reasons why they are absent. A run that failed before its
/// first reading has none.
const HAS_FIGURES: &str = "EXISTS (SELECT 1 FROM sample WHERE sample.run_id = run.id) \
                           OR EXISTS (SELECT 1 FROM journal WHERE journal.run_id = run.id)";

/// The condition of a run that is a history, whose states of versions are results even without figures.
const IS_HISTORY: &str = "EXISTS (SELECT 1 FROM history WHERE history.run_id = run.id)";

impl Store {
    /// Returns the runs, newest first.
    pub fn list(&self, most: usize) -> Result<Vec<ListedRun>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let work = || -> Result<Vec<ListedRun>, DatabaseFailure> {
            let owner = self.owner_columns()?;
            let rows = self.database.query(
                &format!(
                    "SELECT id, label, argv, machine_class, {owner} FROM run ORDER BY started DESC, id DESC LIMIT $1"
                ),
                &[most.into()],
            )?;
            let arms = self.database.query(
                // All versions of a history have the same subject names.
                "SELECT run_id, name FROM arm WHERE role = 'subject' AND run_id IN \
                 (SELECT id FROM run ORDER BY started DESC, id DESC LIMIT $1) \
                 GROUP BY run_id, name ORDER BY run_id, MIN(position)",
                &[most.into()],
            )?;
            let mut names: HashMap<&str, Vec<String>> = HashMap::new();
            for row in &arms {
                names.entry(row.text(0)?).or_default().push(row.text(1)?.to_owned());
            }
            rows.iter()
                .map(|row| {
                    let id = row.text(0)?.to_owned();
                    Ok(ListedRun {
                        label: row.optional_text(1)?.map(str::to_owned),
                        started: row.integer(5)?,
                        state: state(row, 4)?,
                        argv: parse(row.text(2)?, "argv")?,
                        machine: row.text(3)?.to_owned(),
                        arms: names.remove(id.as_str()).unwrap_or_default(),
                        id,
                    })
                })
                .collect()
        };
        self.database.reading(work).map_err(|failure| self.error(failure))
    }

    /// Loads the run with this name: an id, a prefix of one, a label, `last`, or `last~N`. `last` is the newest run with
    /// results: figures, or the states of versions. Of several runs with a label, the newest with results is loaded,
    /// if any has results.
    pub fn find(&self, name: &str) -> Result<Run, StoreError> {
        match self.on_server(|server| server.find(name))? {
            Some(run) => Ok(run),
            // A run that is found is there until it is loaded.
            None => {
                let find = || self.own_id(name).and_then(|id| self.load(&id).map_err(|why| self.error(why)));
                self.database.reading(|| Ok(find())).map_err(|failure| self.error(failure))?
            }
        }
    }

    /// Loads the run with this id; `None` if it was removed. A label of another run may be the same text.
    pub fn with_id(&self, id: &str) -> Result<Option<Run>, StoreError> {
        self.load_if_there(id).map_err(|failure| self.error(failure))
    }

    /// Returns the id of the run that [`Store::find`] would load, or the same error.
    pub fn find_id(&self, name: &str) -> Result<String, StoreError> {
        match self.on_server(|server| server.find_id(name))? {
            Some(id) => Ok(id),
            None => self.own_id(name),
        }
    }

    fn own_id(&self, name: &str) -> Result<String, StoreError> {
        let ids = |sql: &str, value: SqlValue| -> Result<Vec<String>, StoreError> {
            let rows = self.database.query(sql, &[value]);
            rows.and_then(|rows| texts(&rows)).map_err(|failure| self.error(failure))
        };
        let has_results = match self.version().map_err(|failure| self.error(failure))? {
            version if version < HISTORIES => format!("({HAS_FIGURES})"),
            _ => format!("({HAS_FIGURES} OR {IS_HISTORY})"),
        };
        let missing = || StoreError::NoSuchRun {
            name: name.to_owned(),
            path: self.address.to_string(),
            advice: match Path::new(name).metadata() {
                Ok(file) if file.is_file() => match file.permissions().mode() & 0o111 {
                    0 => "it is a file, which `scruple store import` reads if it holds results",
                    _ => "it is a program, and `scruple run` weighs programs",
                }
                .to_owned(),
                _ => format!("{} shows them all", self.list_command()),
            },
        };
        if let Some(back) = name.strip_prefix("last") {
            let back: i64 = match back.strip_prefix('~') {
                Some(number) => number.parse().map_err(|_| missing())?,
                None if back.is_empty() => 0,
                None => -1,
            };
            if back >= 0 {
                let sql = format!(
                    "SELECT id FROM run WHERE {has_results} ORDER BY started DESC, id DESC LIMIT 1 OFFSET $1"
                );
                return ids(&sql, back.into())?.pop().ok_or_else(missing);
            }
        }
        let labelled = ids(
            &format!(
                "SELECT id FROM run WHERE label = $1 \
                 ORDER BY CASE WHEN {has_results} THEN 0 ELSE 1 END, started DESC, id DESC LIMIT 1"
            ),
            name.into(),
        )?;
        if let Some(id) = labelled.into_iter().next() {
            return Ok(id);
        }
        // Ids consist of letters, digits and hyphens. Therefore no other text can be a prefix of one, or have a special
        // meaning in a pattern.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(missing());
        }
        let name = name.to_lowercase();
        // A whole id is found by the index; for a prefix all ids are read.
        if let Some(id) = ids("SELECT id FROM run WHERE id = $1", name.as_str().into())?.pop() {
            return Ok(id);
        }
        let mut begun =
            ids("SELECT id FROM run WHERE substr(id, 1, length($1)) = $1 ORDER BY id", name.as_str().into())?;
        match begun.len() {
            0 => Err(missing()),
            1 => Ok(begun.remove(0)),
            _ => Err(StoreError::Ambiguous { name, matches: begun.join(", ") }),
        }
    }

    /// Whether the store has a run with this id.
    pub fn has(&self, id: &str) -> Result<bool, StoreError> {
        let rows = self.database.query("SELECT id FROM run WHERE id = $1", &[id.into()]);
        rows.map(|rows| !rows.is_empty()).map_err(|failure| self.error(failure))
    }

    pub(super) fn load(&self, id: &str) -> Result<Run, DatabaseFailure> {
        self.load_if_there(id)?.ok_or_else(|| damaged("a run vanished while it was read"))
    }

    pub(super) fn load_if_there(&self, id: &str) -> Result<Option<Run>, DatabaseFailure> {
        self.database.reading(|| self.read_if_there(id))
    }

    fn read_if_there(&self, id: &str) -> Result<Option<Run>, DatabaseFailure> {
        let owner = self.owner_columns()?;
        let rows = self.database.query(
            &format!("SELECT label, seed, argv, terms, provenance, warnings, {owner} FROM run WHERE id = $1"),
            &[id.into()],
        )?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut arms = self.load_arms(id)?;
        self.load_samples(id, &mut arms)?;
        self.load_journal(id, &mut arms)?;
        Ok(Some(Run {
            id: id.to_owned(),
            label: row.optional_text(0)?.map(str::to_owned),
            started: row.integer(7)?,
            state: state(row, 6)?,
            seed: row.text(1)?.parse().map_err(|_| damaged("a seed is not a number"))?,
            argv: parse(row.text(2)?, "argv")?,
            terms: parse(row.text(3)?, "terms")?,
            provenance: parse(row.text(4)?, "provenance")?,
            arms,
            warnings: parse(row.text(5)?, "warnings")?,
        }))
    }

    fn load_arms(&self, id: &str) -> Result<Vec<Arm>, DatabaseFailure> {
        // A store of an earlier Scruple is read without migration.
        let version = self.version()?;
        let since = |first: i64, column: &'static str| if version < first { "NULL" } else { column };
        let sql = format!(
            "SELECT name, role, version, subject, params, {}, {} FROM arm WHERE run_id = $1 ORDER BY position",
            since(COURSES, "course"),
            since(MEMORY_MAPS, "memory")
        );
        let rows = self.database.query(&sql, &[id.into()])?;
        rows.iter()
            .map(|row| {
                let role =
                    Role::from_word(row.text(1)?).ok_or_else(|| damaged("an arm has an unknown role"))?;
                let mut arm = Arm::new(row.text(0)?, parse(row.text(3)?, "subject")?, role);
                arm.version = row.optional_text(2)?.map(str::to_owned);
                arm.params = parse(row.text(4)?, "params")?;
                arm.course = row.optional_text(5)?.map(|text| parse(text, "course")).transpose()?;
                arm.memory = row.optional_text(6)?.map(|text| parse(text, "memory")).transpose()?;
                Ok(arm)
            })
            .collect()
    }

    fn load_samples(&self, id: &str, arms: &mut [Arm]) -> Result<(), DatabaseFailure> {
        let rows = self.database.query(
            "SELECT position, metric, pass, unit, quality, source, readings, blocks, absent FROM sample \
             WHERE run_id = $1",
            &[id.into()],
        )?;
        for row in &rows {
            let arm = arm_at(arms, row)?;
            let figure = match row.optional_text(8)? {
                Some(absent) => Figure::Absent { absent: absent.to_owned() },
                None => Figure::Sample(sample_of(row)?),
            };
            arm.figures.insert(row.text(1)?.to_owned(), figure);
        }
        Ok(())
    }

    fn load_journal(&self, id: &str, arms: &mut [Arm]) -> Result<(), DatabaseFailure> {
        let rows = self.database.query(
            "SELECT position, pass, block, readings FROM journal WHERE run_id = $1 ORDER BY sequence",
            &[id.into()],
        )?;
        for row in &rows {
            let arm = arm_at(arms, row)?;
            let pass =
                Pass::from_word(row.text(1)?).ok_or_else(|| damaged("the journal has an unknown pass"))?;
            let readings: Vec<JournalEntry> = parse(row.text(3)?, "journal")?;
            add_readings(arm, readings.into_iter().map(Reading::from), pass, row.count(2)?);
        }
        Ok(())
    }
}

/// Converts a row into a sample. Its columns are position, metric, pass, unit, quality, source, readings, blocks.
pub(super) fn sample_of(row: &StoredRow) -> Result<Sample, DatabaseFailure> {
    let sample = Sample {
        pass: Pass::from_word(row.text(2)?).ok_or_else(|| damaged("a sample has an unknown pass"))?,
        unit: Unit::from(row.text(3)?.to_owned()),
        quality: Quality::from_word(row.text(4)?)
            .ok_or_else(|| damaged("a sample has an unknown quality"))?,
        source: row.text(5)?.to_owned(),
        readings: parse(row.text(6)?, "readings")?,
        blocks: parse(row.text(7)?, "blocks")?,
    };
    match sample.readings.len() == sample.blocks.len() {
        true => Ok(sample),
        false => Err(damaged("a sample does not have one block for each reading")),
    }
}

/// Returns the first column of these rows.
fn texts(rows: &[StoredRow]) -> Result<Vec<String>, DatabaseFailure> {
    rows.iter().map(|row| row.text(0).map(str::to_owned)).collect()
}

fn arm_at<'a>(arms: &'a mut [Arm], row: &StoredRow) -> Result<&'a mut Arm, DatabaseFailure> {
    let position: usize = row.count(0)?;
    arms.get_mut(position).ok_or_else(|| damaged("readings belong to an arm that is not there"))
}
