//! The SQLite adapter: the only file that knows which database it is.

use rusqlite::types::{FromSql, ToSql, ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A value on its way into the database.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Value {
        text.map_or(Value::Null, Value::Text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Integer(number)
    }
}

/// A row: columns in the order of the query. A value of another type than the one asked for is an error.
pub(super) struct StoredRow(Vec<SqlValue>);

impl StoredRow {
    fn get<'a, T>(
        &'a self,
        column: usize,
        what: &str,
        read: impl FnOnce(ValueRef<'a>) -> rusqlite::types::FromSqlResult<T>,
    ) -> Result<T, Failure> {
        let value = self.0.get(column).map(ValueRef::from);
        value.and_then(|value| read(value).ok()).ok_or_else(|| unexpected(column, what))
    }

    pub(super) fn text(&self, column: usize) -> Result<&str, Failure> {
        self.get(column, "a text", |value| value.as_str())
    }

    pub(super) fn optional_text(&self, column: usize) -> Result<Option<&str>, Failure> {
        self.get(column, "a text or nothing", |value| value.as_str_or_null())
    }

    pub(super) fn is_null(&self, column: usize) -> bool {
        matches!(self.0.get(column), None | Some(SqlValue::Null))
    }

    pub(super) fn integer(&self, column: usize) -> Result<i64, Failure> {
        self.get(column, "a whole number", i64::column_result)
    }

    /// A whole number that is not negative, as positions and counts are.
    pub(super) fn count<T: TryFrom<i64>>(&self, column: usize) -> Result<T, Failure> {
        T::try_from(self.integer(column)?).map_err(|_| unexpected(column, "a number in its range"))
    }
}

/// Something else wrote into the database.
fn unexpected(column: usize, what: &str) -> Failure {
    let message = format!("column {} of a row does not hold {what}", column + 1);
    Failure { refusal: Refusal::Corrupt, message }
}

/// Why the database refused, as far as it matters to what the user can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Foreign,
    Corrupt,
    ReadOnly,
    Full,
    Busy,
    Other,
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) refusal: Refusal,
    pub(super) message: String,
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        let refusal = match &error {
            rusqlite::Error::SqliteFailure(ffi::Error { code, .. }, _) => match code {
                ErrorCode::DatabaseCorrupt => Refusal::Corrupt,
                ErrorCode::NotADatabase => Refusal::Foreign,
                ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
                    Refusal::ReadOnly
                }
                ErrorCode::DiskFull | ErrorCode::SystemIoFailure => Refusal::Full,
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Refusal::Busy,
                _ => Refusal::Other,
            },
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) => {
                Refusal::Corrupt
            }
            _ => Refusal::Other,
        };
        Failure { refusal, message: error.to_string() }
    }
}

/// An open database.
pub(super) struct Database {
    connection: Connection,
}

impl Database {
    /// Opens a database file. Two writers take turns: each waits for the other for up to ten seconds.
    pub(super) fn open(path: &Path, writable: bool) -> Result<Database, Failure> {
        if !writable {
            return Database::open_for_reading(path);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let database = Database::connect(path, flags)?;
        if database.is_of_something_else()? {
            let message = "it holds the tables of something else".to_owned();
            return Err(Failure { refusal: Refusal::Foreign, message });
        }
        database.batch(
            // With a write-ahead log a reading is safe from a kill of this process as soon as it is inserted.
            "PRAGMA foreign_keys = ON; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
        )?;
        Ok(database)
    }

    /// On a read-only disk the files that go with a write-ahead log cannot be made. Where no log was left behind, nobody
    /// can be writing, and the database can be read without them.
    fn open_for_reading(path: &Path) -> Result<Database, Failure> {
        let database = Database::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        match database.tables() {
            Err(failure) if failure.refusal == Refusal::ReadOnly && !with_suffix(path, "-wal").exists() => {
                let address = format!("file:{}?immutable=1", escaped(path));
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Database::connect(Path::new(&address), flags)
            }
            _ => Ok(database),
        }
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Database, Failure> {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        Ok(Database { connection })
    }

    fn tables(&self) -> Result<Vec<StoredRow>, Failure> {
        self.query("SELECT name FROM sqlite_master WHERE type = 'table'", &[])
    }

    /// Whether there are tables, but not ours, which are all made in one transaction.
    fn is_of_something_else(&self) -> Result<bool, Failure> {
        let tables = self.tables()?;
        let has = |name: &str| tables.iter().any(|row| row.text(0).is_ok_and(|table| table == name));
        let ours = has("schema_version") && has("run");
        Ok(!tables.is_empty() && !ours)
    }

    pub(super) fn execute(&self, sql: &str, values: &[Value]) -> Result<usize, Failure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.execute(rusqlite::params_from_iter(values))?)
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.connection.execute_batch(sql)?)
    }

    pub(super) fn query(&self, sql: &str, values: &[Value]) -> Result<Vec<StoredRow>, Failure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| {
            (0..columns).map(|column| row.get(column)).collect::<Result<_, _>>().map(StoredRow)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Runs `work` inside one transaction that takes the write lock at once, so that two writers never deadlock.
    pub(super) fn transaction<T>(&self, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        self.batch("BEGIN IMMEDIATE")?;
        let result = work().and_then(|value| self.batch("COMMIT").map(|()| value));
        if result.is_err() {
            // A failed rollback means that the transaction is gone already.
            let _ = self.batch("ROLLBACK");
        }
        result
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A path as it may stand in a `file:` address.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_fails_halfway_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::open(&folder.path().join("store.db"), true).expect("a new file");
        database.batch("CREATE TABLE numbers (number INTEGER)").expect("a table");
        let failed = database.transaction(|| {
            database.execute("INSERT INTO numbers VALUES ($1)", &[Value::Integer(1)])?;
            database.batch("INSERT INTO nowhere VALUES (1)")
        });
        assert!(failed.is_err());
        assert!(database.query("SELECT number FROM numbers", &[]).expect("a table").is_empty());
    }
}
