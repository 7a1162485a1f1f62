//! What is weighed, and how often.

use super::given_launches::GivenLaunches;
use crate::history::schedule::HistoryEffort;
use crate::versions::subjects::SubjectTemplate;

/// What is weighed, and how often.
pub(super) struct Scope {
    pub(super) subjects: Vec<SubjectTemplate>,
    /// The indices of the subjects that are weighed; `None` means all.
    pub(super) part: Option<Vec<usize>>,
    pub(super) effort: HistoryEffort,
    /// How the launches of a command are divided, if the user gave their number.
    pub(super) given: Option<GivenLaunches>,
    pub(super) same_output: bool,
    pub(super) time_only: bool,
}

impl Scope {
    /// Whether there are launches besides those for time.
    pub(super) fn has_other_passes(&self) -> bool {
        !self.time_only && self.given.is_none_or(|given| given.others() > 0)
    }

    /// The number of instruments, of this many, that the counting pass of a command has launches for.
    pub(super) fn attached(&self, instruments: u32) -> u32 {
        self.given.map_or(instruments, |given| given.instruments)
    }
}
