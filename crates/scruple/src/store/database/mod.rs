//! An interface to databases: the same SQL for each engine, three kinds of values, classified errors.

mod encrypted;
mod postgres;
mod sqlite;

use crate::address::StoreAddress;
use std::cell::Cell;
use std::time::Duration;

/// A value that is passed to the database or returned by it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SqlValue {
    Null,
    Integer(i64),
    Text(String),
    /// A value of a type that no column of the store has. Only another program can have written it.
    Other,
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> SqlValue {
        // PostgreSQL does not store this character in texts.
        SqlValue::Text(text.replace('\0', "\u{fffd}"))
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> SqlValue {
        if text.contains('\0') { SqlValue::from(text.as_str()) } else { SqlValue::Text(text) }
    }
}

impl From<Option<String>> for SqlValue {
    fn from(text: Option<String>) -> SqlValue {
        text.map_or(SqlValue::Null, SqlValue::from)
    }
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> SqlValue {
        SqlValue::Integer(number)
    }
}

/// A row, with columns in the order of the query. Reading a column as another type than its own is an error.
#[derive(Debug)]
pub(super) struct StoredRow(Vec<SqlValue>);

impl StoredRow {
    pub(super) fn text(&self, column: usize) -> Result<&str, DatabaseFailure> {
        match self.0.get(column) {
            Some(SqlValue::Text(text)) => Ok(text),
            _ => Err(unexpected(column, "a text")),
        }
    }

    pub(super) fn optional_text(&self, column: usize) -> Result<Option<&str>, DatabaseFailure> {
        match self.0.get(column) {
            Some(SqlValue::Text(text)) => Ok(Some(text)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(unexpected(column, "a text or nothing")),
        }
    }

    pub(super) fn is_null(&self, column: usize) -> bool {
        matches!(self.0.get(column), None | Some(SqlValue::Null))
    }

    pub(super) fn integer(&self, column: usize) -> Result<i64, DatabaseFailure> {
        match self.0.get(column) {
            Some(SqlValue::Integer(number)) => Ok(*number),
            _ => Err(unexpected(column, "a whole number")),
        }
    }

    /// Returns a column as a whole number in the range of `T`, such as a position or a count.
    pub(super) fn count<T: TryFrom<i64>>(&self, column: usize) -> Result<T, DatabaseFailure> {
        T::try_from(self.integer(column)?).map_err(|_| unexpected(column, "a number in its range"))
    }
}

/// Creates the error for a column whose content Scruple cannot have written.
fn unexpected(column: usize, what: &str) -> DatabaseFailure {
    let message = format!("column {} of a row does not hold {what}", column + 1);
    DatabaseFailure { refusal: Refusal::Corrupt, message }
}

/// Why the database refused an operation, as far as the user can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The database belongs to another program.
    Foreign,
    /// The database is damaged.
    Corrupt,
    /// The user lacks the permission.
    Denied,
    /// The disk is full.
    Full,
    /// Another writer holds the lock.
    Busy,
    /// The server does not answer.
    Unreachable,
    Other,
}

#[derive(Debug)]
pub(super) struct DatabaseFailure {
    pub(super) refusal: Refusal,
    pub(super) message: String,
}

/// How long a writer waits for another before [`Refusal::Busy`]: a minute, as its message says.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// The operations that differ between SQLite and PostgreSQL. All SQL text is the same for both.
trait DatabaseEngine {
    fn execute(&self, sql: &str, values: &[SqlValue]) -> Result<usize, DatabaseFailure>;
    fn query(&self, sql: &str, values: &[SqlValue]) -> Result<Vec<StoredRow>, DatabaseFailure>;
    /// Runs statements without parameters.
    fn batch(&self, sql: &str) -> Result<(), DatabaseFailure>;
    /// Applies the settings that the connection needs for writing. The database is known to be a store.
    fn prepare_to_write(&self) -> Result<(), DatabaseFailure>;
    /// Begins a transaction that takes the write lock at once, so that two writers never deadlock. A writer waits up to
    /// a minute for the other.
    fn begin(&self) -> Result<(), DatabaseFailure>;
    /// Begins a transaction that only reads. All its queries see the store as it was at the first of them.
    fn begin_reading(&self) -> Result<(), DatabaseFailure>;
    fn commit(&self) -> Result<(), DatabaseFailure>;
    fn rollback(&self);
    /// Returns the names of the tables.
    fn tables(&self) -> Result<Vec<String>, DatabaseFailure>;
    /// Describes damage of the database itself, as opposed to the contents of its rows.
    fn damage(&self) -> Result<Vec<String>, DatabaseFailure>;
    /// Returns unused space to the disk.
    fn compact(&self) -> Result<(), DatabaseFailure>;
    /// Returns the space that the store takes, in bytes.
    fn size(&self) -> Result<u64, DatabaseFailure>;
}

/// An open database.
pub(super) struct Database {
    engine: Box<dyn DatabaseEngine>,
    /// Whether a transaction is open, of which other transactions become parts.
    held: Cell<bool>,
}

impl Database {
    /// Opens a database. A missing file is created if it is opened for writing.
    pub(super) fn open(address: &StoreAddress, writable: bool) -> Result<Database, DatabaseFailure> {
        let engine: Box<dyn DatabaseEngine> = match address {
            StoreAddress::File(path) => Box::new(sqlite::Sqlite::open(path, writable)?),
            StoreAddress::Server(url) => Box::new(postgres::Postgres::connect(url)?),
        };
        let database = Database { engine, held: Cell::new(false) };
        if writable {
            database.check_ours()?;
            database.engine.prepare_to_write()?;
        }
        Ok(database)
    }

    /// Returns an error if the database has tables, but not those of a store. All tables of a store are created in one
    /// transaction.
    fn check_ours(&self) -> Result<(), DatabaseFailure> {
        let tables = self.engine.tables()?;
        let has = |name: &str| tables.iter().any(|table| table == name);
        match tables.is_empty() || (has("schema_version") && has("run")) {
            true => Ok(()),
            false => {
                let message = "it contains the tables of another program".to_owned();
                Err(DatabaseFailure { refusal: Refusal::Foreign, message })
            }
        }
    }

    /// Whether the database has no tables yet.
    pub(super) fn is_empty(&self) -> Result<bool, DatabaseFailure> {
        Ok(self.engine.tables()?.is_empty())
    }

    pub(super) fn execute(&self, sql: &str, values: &[SqlValue]) -> Result<usize, DatabaseFailure> {
        self.engine.execute(sql, values)
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), DatabaseFailure> {
        self.engine.batch(sql)
    }

    pub(super) fn query(&self, sql: &str, values: &[SqlValue]) -> Result<Vec<StoredRow>, DatabaseFailure> {
        self.engine.query(sql, values)
    }

    pub(super) fn damage(&self) -> Result<Vec<String>, DatabaseFailure> {
        self.engine.damage()
    }

    pub(super) fn compact(&self) -> Result<(), DatabaseFailure> {
        self.engine.compact()
    }

    pub(super) fn size(&self) -> Result<u64, DatabaseFailure> {
        self.engine.size()
    }

    /// Begins an outer transaction. Later transactions are parts of it until [`Database::release`].
    pub(super) fn hold(&self) -> Result<(), DatabaseFailure> {
        self.engine.begin()?;
        self.held.set(true);
        Ok(())
    }

    /// Ends the open transaction: commits it if `keep` is true, and otherwise rolls it back.
    pub(super) fn release(&self, keep: bool) -> Result<(), DatabaseFailure> {
        self.held.set(false);
        let result = if keep { self.engine.commit() } else { Ok(()) };
        if !keep || result.is_err() {
            self.engine.rollback();
        }
        result
    }

    /// Runs `work` inside a transaction, so that either all its changes take effect or none.
    pub(super) fn transaction<T>(
        &self,
        work: impl FnOnce() -> Result<T, DatabaseFailure>,
    ) -> Result<T, DatabaseFailure> {
        self.within(|| self.engine.begin(), work)
    }

    /// Runs `work`, whose queries all see the store as it was at the first of them, whatever other processes write
    /// meanwhile.
    pub(super) fn reading<T>(
        &self,
        work: impl FnOnce() -> Result<T, DatabaseFailure>,
    ) -> Result<T, DatabaseFailure> {
        self.within(|| self.engine.begin_reading(), work)
    }

    fn within<T>(
        &self,
        begin: impl FnOnce() -> Result<(), DatabaseFailure>,
        work: impl FnOnce() -> Result<T, DatabaseFailure>,
    ) -> Result<T, DatabaseFailure> {
        if self.held.get() {
            return work();
        }
        begin()?;
        self.held.set(true);
        let result = work();
        let ended = self.release(result.is_ok());
        result.and_then(|value| ended.map(|()| value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_fails_halfway_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let database =
            Database::open(&StoreAddress::File(folder.path().join("store.db")), true).expect("a new file");
        database.batch("CREATE TABLE numbers (number INTEGER)").expect("a table");
        let failed = database.transaction(|| {
            database.execute("INSERT INTO numbers VALUES ($1)", &[SqlValue::Integer(1)])?;
            database.batch("INSERT INTO nowhere VALUES (1)")
        });
        assert!(failed.is_err());
        assert!(database.query("SELECT number FROM numbers", &[]).expect("a table").is_empty());
    }

    #[test]
    fn a_text_has_no_character_that_a_database_refuses() {
        assert_eq!(SqlValue::from("a\0b"), SqlValue::Text("a\u{fffd}b".to_owned()));
        assert_eq!(SqlValue::from("a\0b".to_owned()), SqlValue::Text("a\u{fffd}b".to_owned()));
    }
}
