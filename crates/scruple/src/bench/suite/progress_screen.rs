//! What the user sees while a suite is measured.

use crate::progress::Progress;
use scruple_core::run::Run;

/// What the user sees during the measurement.
pub(super) struct ProgressScreen {
    pub(super) progress: Progress,
    pub(super) write: Option<WriteResults>,
}

/// A function that writes the run so far in this many columns.
pub type WriteResults = Box<dyn Fn(&Run, usize) -> String>;

impl ProgressScreen {
    /// Shows the results so far, if standard error is a terminal with a row for each of the cases.
    pub(super) fn show(&self, cases: usize, so_far: impl FnOnce() -> Run) {
        if let (Some(write), Some(room)) = (&self.write, self.progress.room())
            && cases <= room.1
        {
            self.progress.show_partial_results(&write(&so_far(), room.0));
        }
    }
}
