//! Errors that end Scruple, and the exit code each of them has.

use scruple_core::budget::Kept;
use std::fmt;

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

/// Converts the outcome of all limits into an exit code.
impl From<Kept> for Code {
    fn from(kept: Kept) -> Code {
        match kept {
            Kept::Yes => Code::Fine,
            Kept::No => Code::GateFailed,
            Kept::CantTell => Code::Unknown,
        }
    }
}

/// An error with its exit code. The message says what was tried, what failed, and what to do.
#[derive(Debug)]
pub struct Fault {
    /// The exit code.
    pub code: Code,
    /// The message.
    pub message: String,
}

impl Fault {
    /// Creates the error for an invalid request of the user.
    pub fn usage(message: impl fmt::Display) -> Fault {
        Fault { code: Code::Usage, message: message.to_string() }
    }

    /// Creates the error for a measured program that failed.
    pub fn program(message: impl fmt::Display) -> Fault {
        Fault { code: Code::ProgramFailed, message: message.to_string() }
    }

    /// Creates the error for a run that was measured but could not be stored completely.
    pub fn not_stored(error: &crate::store::StoreError) -> Fault {
        Fault::usage(format!("the run was measured but could not be stored: {error}"))
    }

    /// Creates the error for a failure of Scruple itself.
    pub fn internal(message: impl fmt::Display) -> Fault {
        Fault { code: Code::Internal, message: message.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<crate::store::StoreError> for Fault {
    fn from(error: crate::store::StoreError) -> Fault {
        Fault::usage(error)
    }
}
