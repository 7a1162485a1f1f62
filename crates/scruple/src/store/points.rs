//! The readings of one subject in every run.

use super::database::Failure;
use super::reading::sample_of;
use super::{Store, StoreError, parse};
use scruple_core::provenance::Provenance;
use scruple_core::sample::Sample;
use std::collections::BTreeMap;

/// A subject in one run.
#[derive(Clone, Debug)]
pub struct Point {
    /// The run's id.
    pub run: String,
    /// Its label.
    pub label: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub started: i64,
    /// Where it was taken.
    pub provenance: Provenance,
    /// The version of the arm.
    pub version: Option<String>,
    /// What was read, by metric.
    pub samples: BTreeMap<String, Sample>,
}

impl Store {
    /// The runs that have a subject with this name, oldest first; of several versions of it in one run, the last.
    pub fn points(&self, subject: &str) -> Result<Vec<Point>, StoreError> {
        let work = || -> Result<Vec<Point>, Failure> {
            let versioned = format!("{subject} @");
            // The two databases differ in case sensitivity here, so names are compared again.
            let pattern: String = versioned
                .chars()
                .flat_map(|c| "!%_".contains(c).then_some('!').into_iter().chain([c]))
                .collect();
            let rows = self.database.query(
                "SELECT run.id, run.label, run.started, run.provenance, arm.version, arm.position, arm.name FROM arm \
                 JOIN run ON run.id = arm.run_id \
                 WHERE arm.role = 'subject' AND (arm.name = $1 OR arm.name LIKE $2 ESCAPE '!') \
                 ORDER BY run.started, run.id, arm.position",
                &[subject.into(), format!("{pattern}%").into()],
            )?;
            let mut found: Vec<(Point, i64)> = Vec::new();
            for row in &rows {
                let name = row.text(6)?;
                if name != subject && !name.starts_with(&versioned) {
                    continue;
                }
                let point = Point {
                    run: row.text(0)?.to_owned(),
                    label: row.optional_text(1)?.map(str::to_owned),
                    started: row.integer(2)?,
                    provenance: parse(row.text(3)?, "provenance")?,
                    version: row.optional_text(4)?.map(str::to_owned),
                    samples: BTreeMap::new(),
                };
                if found.last().is_some_and(|(last, _)| last.run == point.run) {
                    found.pop();
                }
                found.push((point, row.integer(5)?));
            }
            for (point, position) in &mut found {
                let rows = self.database.query(
                    "SELECT position, metric, pass, unit, quality, source, readings, blocks, absent FROM sample \
                     WHERE run_id = $1 AND position = $2 AND absent IS NULL",
                    &[point.run.clone().into(), (*position).into()],
                )?;
                for row in &rows {
                    point.samples.insert(row.text(1)?.to_owned(), sample_of(row)?);
                }
            }
            Ok(found.into_iter().map(|(point, _)| point).filter(|point| !point.samples.is_empty()).collect())
        };
        work().map_err(|failure| self.error(failure))
    }

    /// The names of all subjects, without their versions.
    pub fn subjects(&self) -> Result<Vec<String>, StoreError> {
        let work = || -> Result<Vec<String>, Failure> {
            let rows = self.database.query(
                "SELECT name, version FROM arm WHERE role = 'subject' GROUP BY name, version ORDER BY name",
                &[],
            )?;
            let mut names = Vec::new();
            for row in &rows {
                let (name, version) = (row.text(0)?, row.optional_text(1)?);
                let cut = version.and_then(|_| name.rsplit_once(" @"));
                names.push(cut.map_or(name, |(name, _)| name).to_owned());
            }
            names.dedup();
            Ok(names)
        };
        work().map_err(|failure| self.error(failure))
    }
}
