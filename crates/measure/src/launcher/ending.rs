//! How a program ended, and its words.

use serde::{Deserialize, Serialize};
use signal_hook::low_level::signal_name;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The program exited with this code.
    Exited(i32),
    /// This signal ended the program.
    Signaled(i32),
    /// The program was killed because it exceeded its time limit.
    TimedOut,
    /// The program was killed because the user interrupted.
    Interrupted,
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Ending {
        match status.signal() {
            Some(signal) => Ending::Signaled(signal),
            None => Ending::Exited(status.code().unwrap_or_default()),
        }
    }
}

/// The words follow the name of the program.
impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(code) => write!(out, "exited with code {code}"),
            Ending::Signaled(signal) => match signal_name(*signal) {
                Some(name) => write!(out, "was ended by signal {signal} ({name})"),
                None => write!(out, "was ended by signal {signal}"),
            },
            Ending::TimedOut => out.write_str("exceeded its time limit and was ended"),
            Ending::Interrupted => out.write_str("was interrupted"),
        }
    }
}
