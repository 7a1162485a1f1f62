//! Errors that end Scruple, and why a measurement ends early.

pub use crate::exit_code::{Code, FailingLimits};
use scruple_core::harmless_text;
use std::fmt;
use std::path::Path;

/// How a message describes that a process has as many open files as it may (EMFILE), and what to do then. The error can
/// come from anything that opens a file.
const TOO_MANY_FILES: (&str, &str) = ("(os error 24)", "(os error 24; allow more of them: ulimit -n 1024)");

/// An error with its exit code. The message says what was tried, what failed, and what to do.
#[derive(Clone, Debug)]
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

    /// Creates the error for one of Scruple's own files that could not be written, for which no version is to blame.
    pub fn unwritable(path: &Path, error: std::io::Error) -> Fault {
        let advice = match error.kind() {
            std::io::ErrorKind::StorageFull => {
                "free some space, or set XDG_CACHE_HOME to a folder that has more; the same command then continues"
            }
            _ => {
                "make its folder writable, or set XDG_CACHE_HOME to one that is; the same command then continues"
            }
        };
        Fault::usage(format!("cannot write ‘{}’: {error}; {advice}", path.display()))
    }

    /// Creates the error for a file that the user named and that cannot be written.
    pub fn unwritable_export(path: &Path, error: std::io::Error) -> Fault {
        Fault::usage(format!(
            "cannot write ‘{}’: {error}; name another file, whose folder exists and is writable",
            path.display()
        ))
    }

    /// Creates the error for an interruption by the user.
    pub fn interrupted() -> Fault {
        let message =
            "interrupted; the readings so far are stored, and the same command continues".to_owned();
        Fault { code: Code::Interrupted, message }
    }

    /// Creates the error for an interruption of a run whose readings the report has shown.
    pub fn interrupted_run() -> Fault {
        let message = "interrupted; the readings so far are shown above".to_owned();
        Fault { code: Code::Interrupted, message }
    }

    /// Creates the error for a failure of Scruple itself.
    pub fn internal(message: impl fmt::Display) -> Fault {
        Fault { code: Code::Internal, message: message.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (described, with_advice) = TOO_MANY_FILES;
        f.write_str(&harmless_text::message(&self.message.replace(described, with_advice)))
    }
}

/// Why a measurement ended before all passes were complete.
pub enum Stop {
    /// The user interrupted.
    Interrupted,
    /// A measured program or a hook failed, or the communication with it did.
    Failed(Fault),
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Fault {
        match stop {
            Stop::Interrupted => Fault { code: Code::Interrupted, message: "interrupted".to_owned() },
            Stop::Failed(fault) => fault,
        }
    }
}
