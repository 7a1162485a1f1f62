//! Errors of profiles.

use std::io;
use std::path::PathBuf;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum CalltreeError {
    /// A folder or file cannot be used.
    #[error("cannot use ‘{path}’ for profiles: {source}")]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The tool could not write all of a profile.
    #[error(
        "the profiles could not be written to ‘{folder}’: free disk space, or set XDG_CACHE_HOME to another folder"
    )]
    Unwritten {
        /// The folder of the profiles.
        folder: PathBuf,
    },
    /// A profile contains something that the tool does not write.
    #[error("the profile ‘{path}’ is damaged: {why}")]
    Damaged {
        /// The path of the profile.
        path: PathBuf,
        /// The line number and what is wrong.
        why: String,
    },
    /// The tool wrote no profile.
    #[error("{0} wrote no profile: the program was not started, or was killed")]
    Nothing(&'static str),
    /// A program forked, and what its processes did cannot be separated.
    #[error(
        "several processes of ‘{program}’ ran, and {by} counts in a forked child what its parent had done before: only the \
         call tree can separate them (`scruple doctor` says what it needs)"
    )]
    Forked {
        /// The command line of the processes.
        program: String,
        /// The tool that counted.
        by: &'static str,
    },
    /// Valgrind itself failed.
    #[error("valgrind failed on this program: {0}")]
    Failed(String),
}
