//! What the exit codes of Scruple mean.

use scruple_core::judge::limits::Kept;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Success.
    Fine = 0,
    /// A gate failed.
    GateFailed = 1,
    /// The command line, the configuration or the store is not usable.
    Usage = 2,
    /// A decision was requested, but the readings are not sufficient for it.
    Unknown = 3,
    /// A measured program failed.
    ProgramFailed = 4,
    /// Scruple itself failed.
    Internal = 5,
    /// The user interrupted the run. Shells use the same code for an interrupted program.
    Interrupted = 130,
}

/// Which outcomes of the limits make the exit code other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailingLimits {
    /// Exceeded ones, and those that the readings cannot decide.
    NotKept,
    /// Exceeded ones.
    Exceeded,
    /// None.
    None,
}

impl Code {
    /// Converts the outcome of all limits into an exit code.
    pub fn of_limits(kept: Kept, failing: FailingLimits) -> Code {
        match (failing, kept) {
            (FailingLimits::None, _) | (FailingLimits::Exceeded, Kept::CantTell) => Code::Fine,
            (_, kept) => kept.into(),
        }
    }
}

/// Converts the outcome of all limits, or of a gate, into an exit code.
impl From<Kept> for Code {
    fn from(kept: Kept) -> Code {
        match kept {
            Kept::Yes => Code::Fine,
            Kept::No => Code::GateFailed,
            Kept::CantTell => Code::Unknown,
        }
    }
}
