//! Brings the tables of a store up to date.

use super::database::{DatabaseFailure, Refusal};
use super::{Store, StoreError};

/// The migrations in order. The version of a store is the number of migrations that were applied.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("sql/0001_runs.sql"),
    include_str!("sql/0002_histories.sql"),
    include_str!("sql/0003_indexes.sql"),
    include_str!("sql/0004_courses.sql"),
    include_str!("sql/0005_requests.sql"),
    include_str!("sql/0006_profiles.sql"),
    include_str!("sql/0007_owners.sql"),
    include_str!("sql/0008_memory_maps.sql"),
];

impl Store {
    /// Applies the migrations that the store lacks.
    pub(super) fn migrate(&self) -> Result<(), DatabaseFailure> {
        let newest = MIGRATIONS.len() as i64;
        // A user who may write rows but not create tables can use a store that is up to date.
        if !self.database.is_empty()? && self.version()? >= newest {
            return Ok(());
        }
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

    /// The number of migrations that were applied.
    pub(super) fn version(&self) -> Result<i64, DatabaseFailure> {
        let rows = self.database.query("SELECT version FROM schema_version", &[])?;
        rows.first().map_or(Ok(0), |row| row.integer(0))
    }

    /// Fails if a newer version of Scruple wrote the store.
    pub(super) fn check_version(&self) -> Result<(), StoreError> {
        let found = self.version().map_err(|failure| match failure.refusal {
            Refusal::Other => {
                StoreError::Corrupt { path: self.address.to_string(), message: failure.message }
            }
            _ => self.error(failure),
        })?;
        if found > MIGRATIONS.len() as i64 {
            let path = self.address.to_string();
            return Err(StoreError::Newer { path, found, known: MIGRATIONS.len() });
        }
        Ok(())
    }
}
