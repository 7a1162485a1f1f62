//! Returns the newest runs, or the readings of one metric in these.

use super::database::DatabaseFailure;
use super::{Store, StoreError, parse};
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, RunState};

impl Store {
    /// Returns the readings of a metric in the newest runs on machines of this class. In each run, the first arm with
    /// such readings is used. Only the last hundred runs are searched.
    pub fn newest(
        &self,
        metric: &str,
        machine_class: &str,
        most: usize,
    ) -> Result<Vec<Vec<f64>>, StoreError> {
        let work = || -> Result<Vec<Vec<f64>>, DatabaseFailure> {
            let runs = self.database.query(
                "SELECT id FROM run WHERE machine_class = $1 ORDER BY started DESC, id DESC LIMIT 100",
                &[machine_class.into()],
            )?;
            let mut found = Vec::new();
            for run in &runs {
                let rows = self.database.query(
                    "SELECT readings FROM sample WHERE run_id = $1 AND metric = $2 AND readings IS NOT NULL \
                     ORDER BY position LIMIT 1",
                    &[run.text(0)?.into(), metric.into()],
                )?;
                if let Some(row) = rows.first() {
                    found.push(parse(row.text(0)?, "readings")?);
                }
                if found.len() == most {
                    break;
                }
            }
            Ok(found)
        };
        work().map_err(|failure| self.error(failure))
    }

    /// Returns the newest complete runs on machines of this class whose provenance is `wanted`, at most this many. Only
    /// the last hundred runs are searched.
    pub fn newest_runs(
        &self,
        machine_class: &str,
        wanted: impl Fn(&Provenance) -> bool,
        most: usize,
    ) -> Result<Vec<Run>, StoreError> {
        let work = || -> Result<Vec<Run>, DatabaseFailure> {
            let rows = self.database.query(
                "SELECT id, provenance FROM run WHERE machine_class = $1 AND state = $2 \
                 ORDER BY started DESC, id DESC LIMIT 100",
                &[machine_class.into(), RunState::Complete.word().into()],
            )?;
            let mut found = Vec::new();
            for row in &rows {
                if wanted(&parse(row.text(1)?, "provenance")?) {
                    found.push(self.load(row.text(0)?)?);
                }
                if found.len() == most {
                    break;
                }
            }
            Ok(found)
        };
        work().map_err(|failure| self.error(failure))
    }
}
