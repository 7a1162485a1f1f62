//! A run that the gate judges.

use crate::fault::Fault;
use scruple_core::limit::Limit;
use scruple_core::run::Run;

/// A run that the gate judges.
pub struct WeighedRun {
    /// The run with its readings.
    pub run: Run,
    /// The limits for the run.
    pub limits: Vec<Limit>,
    /// The failure of the run, if it failed.
    pub fault: Option<Fault>,
}
