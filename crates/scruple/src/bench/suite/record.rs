//! The run of a suite, written down reading by reading.

use super::cases::{CaseEnd, Weighed};
use crate::fault::Stop;
use crate::store::RunWriter;
use scruple_core::metric::Pass;
use scruple_core::run::Run;
use scruple_core::sample::{Figure, Reading};

/// The run, with the readings so far, and the writer to which they go.
pub struct SuiteRecord {
    /// The run, with the readings so far.
    pub run: Run,
    /// The writer to which readings are written.
    pub writer: RunWriter,
}

impl SuiteRecord {
    pub(super) fn begin_writing(&mut self) -> Result<(), Stop> {
        self.writer.begin_waiting(&self.run).map_err(Stop::Failed)
    }

    pub(super) fn keep(&mut self, arm: usize, pass: Pass, block: u32, readings: Vec<Reading>) {
        self.writer.keep(&mut self.run, arm, pass, block, readings);
    }

    /// Ends a case, and removes its times, so that partial figures are not shown as complete.
    pub(super) fn end(&mut self, weighed: &mut Weighed, ended: CaseEnd, why: &str) {
        weighed.ended = Some(ended);
        let arm = &mut self.run.arms[weighed.arm];
        arm.figures.insert("time.wall".to_owned(), Figure::Absent { absent: why.to_owned() });
        arm.figures.remove("time.cpu");
    }

    /// Returns the name of a case in tables.
    pub(super) fn name(&self, weighed: &Weighed) -> &str {
        &self.run.arms[weighed.arm].name
    }
}
