//! Returns the newest runs, or the readings of some metrics in these.

use super::database::DatabaseFailure;
use super::{Store, StoreError, parse};
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, RunState};

impl Store {
    /// Returns the readings of some metrics in the newest runs on machines of this class that have readings of the first
    /// one. In each run, and for each metric, the first arm with readings is used; where no arm has any, they are empty.
    /// Only the last hundred runs are searched.
    pub fn newest<const N: usize>(
        &self,
        metrics: [&str; N],
        machine_class: &str,
        most: usize,
    ) -> Result<Vec<[Vec<f64>; N]>, StoreError> {
        let work = || -> Result<Vec<[Vec<f64>; N]>, DatabaseFailure> {
            let runs = self.database.query(
                "SELECT id FROM run WHERE machine_class = $1 ORDER BY started DESC, id DESC LIMIT 100",
                &[machine_class.into()],
            )?;
            let mut found = Vec::new();
            for run in &runs {
                let mut of_run = [const { Vec::new() }; N];
                for (metric, readings) in metrics.iter().zip(&mut of_run) {
                    let rows = self.database.query(
                        "SELECT readings FROM sample WHERE run_id = $1 AND metric = $2 AND readings IS NOT NULL \
                         ORDER BY position LIMIT 1",
                        &[run.text(0)?.into(), (*metric).into()],
                    )?;
                    let Some(row) = rows.first() else { break };
                    *readings = parse(row.text(0)?, "readings")?;
                }
                if !of_run[0].is_empty() {
                    found.push(of_run);
                }
                if found.len() == most {
                    break;
                }
            }
            Ok(found)
        };
        self.database.reading(work).map_err(|failure| self.error(failure))
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
        self.database.reading(work).map_err(|failure| self.error(failure))
    }
}
