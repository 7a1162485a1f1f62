//! Errors of the call tree.

use std::io;
use std::path::PathBuf;

/// Why an instrument of Valgrind cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The tool knows the calling conventions of two architectures.
    #[error("the call tree is for Linux on x86-64 and aarch64")]
    Platform,
    /// No `valgrind` on the search path.
    #[error("valgrind is not installed: install the package ‘valgrind’")]
    NoValgrind,
    /// It is installed, but does not print its version.
    #[error("{path} does not tell its version ({why}): install valgrind anew")]
    NoVersion {
        /// The program that was asked.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// No compiler.
    #[error("no C compiler was found (cc, gcc, clang): install one, or name it in CC")]
    NoCompiler,
    /// Valgrind's headers or libraries are missing.
    #[error(
        "valgrind’s {what} were not found next to {valgrind}: install them (with Debian they are in the package \
         ‘valgrind’, with Fedora in ‘valgrind-devel’)"
    )]
    NoHeaders {
        /// Headers or static libraries.
        what: &'static str,
        /// The program.
        valgrind: PathBuf,
    },
    /// Headers and program do not belong together.
    #[error(
        "valgrind’s headers are of version {headers} and the program of {program}: install one version of both"
    )]
    OtherHeaders {
        /// Version in the headers.
        headers: String,
        /// Version of the program.
        program: String,
    },
    /// The compiler failed.
    #[error("the call tree could not be compiled for valgrind {version}: {why}")]
    NotCompiled {
        /// Valgrind's version.
        version: String,
        /// The first line that says so.
        why: String,
    },
    /// The cache cannot be written.
    #[error("cannot keep the call tree in {path}: {why}; set XDG_CACHE_HOME to a writable folder")]
    Cache {
        /// Folder or file.
        path: PathBuf,
        /// The system's error.
        why: String,
    },
    /// It was compiled, but does not count.
    #[error("the call tree was compiled for valgrind {version}, but does not work here: {why}")]
    NotWorking {
        /// Valgrind's version.
        version: String,
        /// What a test run showed.
        why: String,
    },
    /// A tool that comes with Valgrind is missing.
    #[error("valgrind’s {0} is not installed")]
    NoTool(&'static str),
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum CalltreeError {
    /// A folder or file cannot be used.
    #[error("cannot use {path} for profiles: {source}")]
    Folder {
        /// Which.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A profile contains something that the tool does not write.
    #[error("the profile {path} is damaged: {why}")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Where and what.
        why: String,
    },
    /// Nothing was written.
    #[error("{0} wrote no profile: the program was not started, or ended by force")]
    Nothing(&'static str),
    /// Valgrind itself failed.
    #[error("valgrind failed on this program: {0}")]
    Failed(String),
}
