//! Errors of the allocation counter.

use std::io;
use std::path::PathBuf;

/// Why there is no allocation count.
#[derive(Debug, thiserror::Error)]
pub enum HeapError {
    /// The preload library exists only for Linux on x86-64 and aarch64.
    #[error("allocations can be counted on Linux (x86-64, aarch64) only")]
    Platform,
    /// A file could not be written to the folder for library and data.
    #[error("cannot write the allocation counter to ‘{path}’: {source}; choose another folder")]
    Folder {
        /// The path that could not be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Neither the folder nor an in-memory file allows mapping code.
    #[error("cannot load code from ‘{path}’ (mounted noexec?) and not from memory either: {source}")]
    NoExecutableMemory {
        /// The folder that was tried first.
        path: PathBuf,
        /// The system's error of the second attempt, in memory.
        source: io::Error,
    },
    /// The data file could not be read.
    #[error("cannot read the counts from ‘{path}’: {source}")]
    Read {
        /// The data file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The data file contains something that the library never writes.
    #[error("the counts are damaged: {0}")]
    Damaged(&'static str),
    /// No process has a record: the library was not loaded.
    #[error(
        "no process loaded the allocation counter: the program is static or privileged, or it was started with another environment"
    )]
    NotLoaded,
}
