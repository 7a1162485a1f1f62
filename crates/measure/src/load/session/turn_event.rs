//! What is reported while a turn runs.

use crate::load::shared::{LoadProgress, LoadShared};

/// An event that is reported while a turn runs.
#[derive(Clone, Copy)]
pub enum TurnEvent<'a> {
    /// The progress, about four times a second.
    Progress(&'a LoadProgress),
    /// A mark of the plan has been reached. Mark 0 is before the first request, and the mark after the plan's last
    /// one is after the last answer.
    Mark(usize, Handled<'a>),
}

/// Counts the requests that have been answered or have failed, while the load continues, without those that the server
/// cannot have read.
#[derive(Clone, Copy)]
pub struct Handled<'a> {
    pub(super) shared: &'a LoadShared,
    /// The number at the end of a turn that is over; `None` while it runs.
    pub(super) whole: Option<u64>,
}

impl Handled<'_> {
    /// The current number of handled requests.
    pub fn now(self) -> u64 {
        self.whole.unwrap_or_else(|| self.shared.reached())
    }
}
