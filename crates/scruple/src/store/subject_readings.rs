//! Returns the readings of one subject in every run.

use super::database::{DatabaseFailure, StoredRow};
use super::read_runs::sample_of;
use super::{Store, StoreError, parse};
use scruple_core::provenance::Provenance;
use scruple_core::sample::Sample;
use scruple_stats::sorting::SortedMap;
use std::collections::HashMap;

/// The readings of a subject in one run.
#[derive(Clone, Debug)]
pub struct StoredPoint {
    /// The id of the run.
    pub run: String,
    /// The label of the run.
    pub label: Option<String>,
    /// The start of the run, in milliseconds since 1970.
    pub started: i64,
    /// The environment of the run.
    pub provenance: Provenance,
    /// The version of the arm.
    pub version: Option<String>,
    /// The samples, by metric.
    pub samples: SortedMap<String, Sample>,
}

/// The columns of a sample that [`sample_of`] reads.
const SAMPLE: &str = "sample.position, metric, pass, unit, quality, source, readings, blocks";

/// The samples of each arm, by metric. An arm is identified by the id of its run and its index there.
#[derive(Default)]
struct Samples(HashMap<(String, i64), SortedMap<String, Sample>>);

impl Samples {
    fn add(&mut self, rows: &[StoredRow]) -> Result<(), DatabaseFailure> {
        for row in rows {
            let of_arm = self.0.entry((row.text(8)?.to_owned(), row.integer(0)?)).or_default();
            of_arm.insert(row.text(1)?.to_owned(), sample_of(row)?);
        }
        Ok(())
    }
}

impl Store {
    /// Returns the runs that have a subject with this name, oldest first. If a run has several versions of the subject,
    /// the last one is used.
    pub fn points(&self, subject: &str) -> Result<Vec<StoredPoint>, StoreError> {
        let work = || -> Result<Vec<StoredPoint>, DatabaseFailure> {
            let versioned = format!("{subject} @");
            // The two databases differ in the case sensitivity of this comparison, so names are compared again below.
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
            let mut found: Vec<(StoredPoint, i64)> = Vec::new();
            for row in &rows {
                let name = row.text(6)?;
                if name != subject && !name.starts_with(&versioned) {
                    continue;
                }
                let point = StoredPoint {
                    run: row.text(0)?.to_owned(),
                    label: row.optional_text(1)?.map(str::to_owned),
                    started: row.integer(2)?,
                    provenance: parse(row.text(3)?, "provenance")?,
                    version: row.optional_text(4)?.map(str::to_owned),
                    samples: SortedMap::new(),
                };
                if found.last().is_some_and(|(last, _)| last.run == point.run) {
                    found.pop();
                }
                found.push((point, row.integer(5)?));
            }
            // One query reads the samples of all runs, because each query to a distant server has a latency.
            let mut samples = Samples::default();
            samples.add(&self.database.query(
                &format!(
                    "SELECT {SAMPLE}, sample.run_id FROM sample \
                     JOIN arm ON arm.run_id = sample.run_id AND arm.position = sample.position \
                     WHERE arm.role = 'subject' AND arm.name = $1 AND sample.absent IS NULL"
                ),
                &[subject.into()],
            )?)?;
            for (point, position) in &mut found {
                let key = (point.run.clone(), *position);
                if point.version.is_some() && !samples.0.contains_key(&key) {
                    // Only the last version of a history is needed, and there may be thousands.
                    samples.add(&self.database.query(
                        &format!(
                            "SELECT {SAMPLE}, sample.run_id FROM sample \
                             WHERE run_id = $1 AND position = $2 AND absent IS NULL"
                        ),
                        &[point.run.clone().into(), (*position).into()],
                    )?)?;
                }
                point.samples = samples.0.remove(&key).unwrap_or_default();
            }
            Ok(found.into_iter().map(|(point, _)| point).filter(|point| !point.samples.is_empty()).collect())
        };
        self.database.reading(work).map_err(|failure| self.error(failure))
    }

    /// Returns the names of all subjects, without their versions.
    pub fn subjects(&self) -> Result<Vec<String>, StoreError> {
        let work = || -> Result<Vec<String>, DatabaseFailure> {
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
