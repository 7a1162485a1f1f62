//! What is needed to count the sides of an explanation.

use crate::explain::effort::Effort;
use scruple_measure::calltree::ChosenTool;
use std::path::Path;

/// What is needed to count the sides.
pub struct Means<'a> {
    /// The counter of call trees; `None` if nothing has to be counted.
    pub counter: Option<&'a ChosenTool>,
    /// The folder for temporary files.
    pub work: &'a Path,
    /// How much to run.
    pub effort: Effort,
    /// The number of requests that a server answers in each run.
    pub requests: u64,
}
