//! SQLite: a store in one file.

use super::{DatabaseEngine, DatabaseFailure, LOCK_WAIT, Refusal, SqlValue, StoredRow};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            SqlValue::Null | SqlValue::Other => ValueRef::Null,
            SqlValue::Integer(number) => ValueRef::Integer(*number),
            SqlValue::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl From<rusqlite::Error> for DatabaseFailure {
    fn from(error: rusqlite::Error) -> DatabaseFailure {
        let refusal = match &error {
            rusqlite::Error::SqliteFailure(ffi::Error { code, .. }, _) => match code {
                ErrorCode::DatabaseCorrupt => Refusal::Corrupt,
                ErrorCode::NotADatabase => Refusal::Foreign,
                ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => Refusal::Denied,
                ErrorCode::DiskFull | ErrorCode::SystemIoFailure => Refusal::Full,
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Refusal::Busy,
                _ => Refusal::Other,
            },
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) => {
                Refusal::Corrupt
            }
            _ => Refusal::Other,
        };
        DatabaseFailure { refusal, message: error.to_string() }
    }
}

/// An open database file.
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
}

impl Sqlite {
    /// Opens a database file. If two processes write, each waits up to a minute for the other.
    pub(super) fn open(path: &Path, writable: bool) -> Result<Sqlite, DatabaseFailure> {
        if !writable {
            return Sqlite::open_for_reading(path);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Sqlite::connect(path, flags)
    }

    /// Opens a database file for reading. On a read-only disk the files of a write-ahead log cannot be created. If
    /// there is no log, no process can be writing, and the database can be read without these files.
    fn open_for_reading(path: &Path) -> Result<Sqlite, DatabaseFailure> {
        let file = Sqlite::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        match file.tables() {
            Err(failure) if failure.refusal == Refusal::Denied && !with_suffix(path, "-wal").exists() => {
                let address = format!("file:{}?immutable=1", escaped(path));
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Sqlite::connect(Path::new(&address), flags)
            }
            _ => Ok(file),
        }
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Sqlite, DatabaseFailure> {
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(LOCK_WAIT)?;
        Ok(Sqlite { connection, path: path.to_owned() })
    }
}

impl DatabaseEngine for Sqlite {
    fn execute(&self, sql: &str, values: &[SqlValue]) -> Result<usize, DatabaseFailure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.execute(rusqlite::params_from_iter(values))?)
    }

    fn query(&self, sql: &str, values: &[SqlValue]) -> Result<Vec<StoredRow>, DatabaseFailure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map(rusqlite::params_from_iter(values), |row| {
            let value = |column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => SqlValue::Null,
                    ValueRef::Integer(number) => SqlValue::Integer(number),
                    ValueRef::Text(text) => std::str::from_utf8(text).map_or(SqlValue::Other, SqlValue::from),
                    ValueRef::Real(_) | ValueRef::Blob(_) => SqlValue::Other,
                })
            };
            (0..columns).map(value).collect::<rusqlite::Result<_>>().map(StoredRow)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseFailure> {
        Ok(self.connection.execute_batch(sql)?)
    }

    fn prepare_to_write(&self) -> Result<(), DatabaseFailure> {
        self.batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL")?;
        // With a write-ahead log, a reading survives a kill of this process as soon as it is inserted. SQLite does not
        // wait for other processes when the first of them changes a new file to such a log: it fails at once.
        let begin = Instant::now();
        loop {
            match self.batch("PRAGMA journal_mode = WAL") {
                Err(failure) if failure.refusal == Refusal::Busy && begin.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    fn begin(&self) -> Result<(), DatabaseFailure> {
        self.batch("BEGIN IMMEDIATE")
    }

    fn begin_reading(&self) -> Result<(), DatabaseFailure> {
        self.batch("BEGIN")
    }

    fn commit(&self) -> Result<(), DatabaseFailure> {
        self.batch("COMMIT")
    }

    fn rollback(&self) {
        // A failed rollback means that the transaction is gone already.
        let _ = self.batch("ROLLBACK");
    }

    fn tables(&self) -> Result<Vec<String>, DatabaseFailure> {
        let rows = self.query("SELECT name FROM sqlite_master WHERE type = 'table'", &[])?;
        rows.iter().map(|row| row.text(0).map(str::to_owned)).collect()
    }

    fn damage(&self) -> Result<Vec<String>, DatabaseFailure> {
        let mut wrong = Vec::new();
        for row in self.query("PRAGMA integrity_check(20)", &[])? {
            let text = row.text(0)?;
            if text != "ok" {
                wrong.push(format!("the file: {text}"));
            }
        }
        for row in self.query("PRAGMA foreign_key_check", &[])? {
            wrong.push(format!("a row of the table ‘{}’ belongs to no run", row.text(0)?));
        }
        Ok(wrong)
    }

    fn compact(&self) -> Result<(), DatabaseFailure> {
        self.batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    fn size(&self) -> Result<u64, DatabaseFailure> {
        let size = |path: &Path| path.metadata().map_or(0, |data| data.len());
        Ok(size(&self.path) + size(&with_suffix(&self.path, "-wal")))
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Escapes a path for a `file:` address.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn writers_that_open_a_new_file_at_once_wait_for_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        for round in 0..40 {
            let path = folder.path().join(round.to_string());
            let together = Barrier::new(4);
            let write = || -> Result<(), DatabaseFailure> {
                together.wait();
                let file = Sqlite::open(&path, true)?;
                file.prepare_to_write()?;
                file.begin()?;
                file.batch("CREATE TABLE IF NOT EXISTS t (x); INSERT INTO t VALUES (1)")?;
                file.commit()
            };
            std::thread::scope(|scope| {
                for writer in [0; 4].map(|_| scope.spawn(write)) {
                    writer.join().expect("a thread").expect("a row");
                }
            });
        }
    }
}
