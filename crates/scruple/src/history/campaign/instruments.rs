//! What weighs the versions.

use crate::history::benches::Benches;
use scruple_measure::command::Weigher;
use std::ffi::OsString;
use std::time::Duration;

/// What weighs the versions, always in the same environment.
pub(super) struct Instruments {
    pub(super) weigher: Box<dyn Weigher>,
    pub(super) benches: Benches,
    /// The environment of counting launches.
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) time_limit: Option<Duration>,
    /// Whether instructions are counted.
    pub(super) instructions: bool,
    /// Whether the user asked for instructions.
    pub(super) requested: bool,
}
