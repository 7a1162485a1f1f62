//! Errors that end Scruple, and the exit code each of them has.

use scruple_core::budget::Kept;
use std::fmt;

/// The meaning of the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Success.
    Fine = 0,
    /// A gate failed.
    GateFailed = 1,
    /// The command line, the configuration or the store is not usable.
    Usage = 2,
    /// A decision was requested and the readings do not decide.
    Unknown = 3,
    /// A measured program failed.
    ProgramFailed = 4,
    /// Scruple itself failed.
    Internal = 5,
    /// The user interrupted; this is the code that shells use for it.
    Interrupted = 130,
}

/// The exit code of limits that were all checked.
impl From<Kept> for Code {
    fn from(kept: Kept) -> Code {
        match kept {
            Kept::Yes => Code::Fine,
            Kept::No => Code::GateFailed,
            Kept::CantTell => Code::Unknown,
        }
    }
}

/// An error with its exit code: what was tried, what failed, what to do.
#[derive(Debug)]
pub struct Fault {
    /// The exit code.
    pub code: Code,
    /// The message.
    pub message: String,
}

impl Fault {
    /// An error of the user's request.
    pub fn usage(message: impl fmt::Display) -> Fault {
        Fault { code: Code::Usage, message: message.to_string() }
    }

    /// A failure of a measured program.
    pub fn program(message: impl fmt::Display) -> Fault {
        Fault { code: Code::ProgramFailed, message: message.to_string() }
    }

    /// A run that was measured but could not be stored completely.
    pub fn not_stored(error: &crate::store::StoreError) -> Fault {
        Fault::usage(format!("the run was measured but could not be stored: {error}"))
    }

    /// An internal error.
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
