//! Which failures of commands do not end a measurement.

use scruple_measure::launcher::Ending;

/// The failures of commands that are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredFailures {
    /// No failure is ignored.
    Nothing,
    /// No failure is ignored, and the command line has no option that changes this.
    Never,
    /// Every exit code other than 0 and every signal is ignored.
    Everything,
    /// Exits with these codes are ignored.
    Codes(Vec<i32>),
}

impl IgnoredFailures {
    pub(super) fn covers(&self, ending: &Ending) -> bool {
        match (self, ending) {
            (_, Ending::TimedOut) | (IgnoredFailures::Nothing | IgnoredFailures::Never, _) => false,
            (IgnoredFailures::Everything, _) => true,
            (IgnoredFailures::Codes(codes), Ending::Exited(code)) => codes.contains(code),
            (IgnoredFailures::Codes(_), _) => false,
        }
    }
}
