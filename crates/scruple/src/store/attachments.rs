//! Stores the data of a run other than its readings: call trees, explanations, sections of pages.

use super::database::{DatabaseFailure, SqlValue, StoredRow};
use super::{Store, StoreError, damaged, parse};
use crate::render::page::Section;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The schema version from which on stores have profiles.
const SINCE: i64 = 6;

/// The kind of rows with packed call trees.
const CALLS: &str = "calls";

/// The kind of rows with explanations in JSON.
const EXPLANATION: &str = "explanation";

/// The kind of rows with sections of a run's page in JSON.
const SECTIONS: &str = "sections";

/// A row of the table: name, kind, part, content.
type AttachmentRow = (String, String, i64, String);

impl Store {
    /// Stores the call trees of a subject, or of a version of it, with its run. They replace earlier ones.
    pub fn put_calls(&self, run: &str, name: &str, parts: &[Vec<u8>]) -> Result<(), StoreError> {
        let texts: Vec<String> = parts.iter().map(|bytes| BASE64.encode(bytes)).collect();
        self.put(run, name, CALLS, &texts)
    }

    /// Returns the stored call trees, one for each run of the program.
    pub fn calls(&self, run: &str, name: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let work = || -> Result<Vec<Vec<u8>>, DatabaseFailure> {
            let rows =
                self.rows_where("kind = $2 AND name = $3", &[run.into(), CALLS.into(), name.into()])?;
            rows.into_iter()
                .map(|(_, _, _, text)| BASE64.decode(text).map_err(|error| damaged(&error.to_string())))
                .collect()
        };
        work().map_err(|failure| self.error(failure))
    }

    /// Returns the names under which call trees are stored with a run.
    pub fn names_of_calls(&self, run: &str) -> Result<Vec<String>, StoreError> {
        let work = || -> Result<Vec<String>, DatabaseFailure> {
            if !self.has_profiles()? {
                return Ok(Vec::new());
            }
            let sql = "SELECT DISTINCT name FROM profile WHERE run_id = $1 AND kind = $2 ORDER BY name";
            let rows = self.database.query(sql, &[run.into(), CALLS.into()])?;
            rows.iter().map(|row| row.text(0).map(str::to_owned)).collect()
        };
        work().map_err(|failure| self.error(failure))
    }

    /// Stores the explanation of a change.
    pub fn put_explanation(&self, run: &str, name: &str, text: &str) -> Result<(), StoreError> {
        self.put(run, name, EXPLANATION, &[text.to_owned()])
    }

    /// Returns the stored explanations of changes, with their names.
    pub fn explanations(&self, run: &str) -> Result<Vec<(String, String)>, StoreError> {
        let rows = self.rows_where("kind = $2", &[run.into(), EXPLANATION.into()]);
        let rows = rows.map_err(|failure| self.error(failure))?;
        Ok(rows.into_iter().map(|(name, _, _, text)| (name, text)).collect())
    }

    /// Stores the sections of a run's page that do not follow from its readings alone, such as the functions of a
    /// server.
    pub fn put_sections(&self, run: &str, sections: &[Section]) -> Result<(), StoreError> {
        let text = serde_json::to_string(sections).unwrap_or_default();
        self.put(run, "", SECTIONS, &[text])
    }

    /// Returns the stored sections. The list is empty if none are stored.
    pub fn sections(&self, run: &str) -> Result<Vec<Section>, StoreError> {
        let work = || -> Result<Vec<Section>, DatabaseFailure> {
            let found = self.rows_where("kind = $2", &[run.into(), SECTIONS.into()])?.into_iter().next();
            found.map_or(Ok(Vec::new()), |(_, _, _, text)| parse(&text, "sections of a page"))
        };
        work().map_err(|failure| self.error(failure))
    }

    fn put(&self, run: &str, name: &str, kind: &str, texts: &[String]) -> Result<(), StoreError> {
        let work = || {
            self.database.execute(
                "DELETE FROM profile WHERE run_id = $1 AND name = $2 AND kind = $3",
                &[run.into(), name.into(), kind.into()],
            )?;
            let rows = texts.iter().enumerate();
            rows.map(|(part, text)| (name.to_owned(), kind.to_owned(), part as i64, text.clone()))
                .try_for_each(|row| self.insert_profile(run, &row))
        };
        self.database.transaction(work).map_err(|failure| self.error(failure))
    }

    fn insert_profile(
        &self,
        run: &str,
        (name, kind, part, text): &AttachmentRow,
    ) -> Result<(), DatabaseFailure> {
        let values: [SqlValue; 5] =
            [run.into(), name.clone().into(), kind.clone().into(), (*part).into(), text.clone().into()];
        let sql = "INSERT INTO profile (run_id, name, kind, part, content) VALUES ($1, $2, $3, $4, $5)";
        self.database.execute(sql, &values).map(|_| ())
    }

    /// Whether the store has the table of profiles. A store of an earlier Scruple that is only read lacks it.
    fn has_profiles(&self) -> Result<bool, DatabaseFailure> {
        Ok(self.version()? >= SINCE)
    }

    /// Returns all rows of a run.
    fn rows(&self, run: &str) -> Result<Vec<AttachmentRow>, DatabaseFailure> {
        self.rows_where("TRUE", &[run.into()])
    }

    /// Returns the rows of the run that the first value names, if they fulfil the condition. The condition avoids
    /// reading call trees, which are large, if they are not needed.
    fn rows_where(
        &self,
        condition: &str,
        values: &[SqlValue],
    ) -> Result<Vec<AttachmentRow>, DatabaseFailure> {
        if !self.has_profiles()? {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT name, kind, part, content FROM profile WHERE run_id = $1 AND {condition} ORDER BY name, kind, part"
        );
        let row = |row: &StoredRow| {
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.integer(2)?, row.text(3)?.to_owned()))
        };
        self.database.query(&sql, values)?.iter().map(row).collect()
    }

    /// Copies the rows of a run to another store that has the run, except those that it already has.
    pub(super) fn copy_profiles(&self, to: &Store, run: &str) -> Result<(), StoreError> {
        let ours = self.rows(run).map_err(|failure| self.error(failure))?;
        let work = || {
            let theirs = to.rows(run)?;
            let known =
                |row: &&AttachmentRow| theirs.iter().any(|their| (&their.0, &their.1) == (&row.0, &row.1));
            ours.iter().filter(|row| !known(row)).try_for_each(|row| to.insert_profile(run, row))
        };
        match ours.is_empty() {
            true => Ok(()),
            false => to.database.transaction(work).map_err(|failure| to.error(failure)),
        }
    }
}
