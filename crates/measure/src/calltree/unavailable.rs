//! Why an instrument of Valgrind cannot be used.

use std::path::PathBuf;

/// Why an instrument of Valgrind cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The platform is not supported: the tool knows the calling conventions of two architectures only.
    #[error("the call tree is for Linux on x86-64 and aarch64")]
    Platform,
    /// There is no `valgrind` on the search path.
    #[error("valgrind is not installed: install the package ‘valgrind’")]
    NoValgrind,
    /// Valgrind is installed, but cannot be started.
    #[error("cannot start ‘{path}’: {why}")]
    NotStarted {
        /// The program that was to be started.
        path: PathBuf,
        /// The system's error.
        why: String,
    },
    /// Valgrind is installed, but does not print its version.
    #[error(
        "‘{path} --version’ does not print a version ({why}): if it does not work by itself either, reinstall valgrind"
    )]
    NoVersion {
        /// The program whose version was asked for.
        path: PathBuf,
        /// How it ended, and what it printed instead.
        why: String,
    },
    /// No C compiler was found.
    #[error("no C compiler was found (cc, gcc, clang): install one, or name it in CC")]
    NoCompiler,
    /// Valgrind's headers or libraries are missing.
    #[error(
        "valgrind’s {what} were not found next to ‘{valgrind}’: install them (with Debian they are in the package \
         ‘valgrind’, with Fedora in ‘valgrind-devel’)"
    )]
    NoHeaders {
        /// What is missing: headers or static libraries.
        what: &'static str,
        /// The path of the Valgrind program.
        valgrind: PathBuf,
    },
    /// Valgrind's headers and program are of different versions.
    #[error(
        "valgrind’s headers are of version {headers} and the program of {program}: install one version of both"
    )]
    OtherHeaders {
        /// The version of the headers.
        headers: String,
        /// The version of the program.
        program: String,
    },
    /// The compiler reported an error.
    #[error("the call tree could not be compiled for valgrind {version}: {why}")]
    NotCompiled {
        /// Valgrind's version.
        version: String,
        /// The first line of the compiler's output that contains an error.
        why: String,
    },
    /// The cache cannot be written.
    #[error("cannot keep the call tree in ‘{path}’: {why}; set XDG_CACHE_HOME to a writable folder")]
    Cache {
        /// The folder or file that cannot be written.
        path: PathBuf,
        /// The system's error.
        why: String,
    },
    /// The tool was compiled, but counts nothing.
    #[error("the call tree was compiled for valgrind {version}, but does not work here: {why}")]
    NotWorking {
        /// Valgrind's version.
        version: String,
        /// What a test run showed.
        why: String,
    },
    /// A tool failed on the program to be counted.
    #[error("valgrind failed on this program under it ({0})")]
    Failed(String),
    /// A tool that comes with Valgrind is missing.
    #[error("valgrind’s {0} is not installed")]
    NoTool(&'static str),
}
