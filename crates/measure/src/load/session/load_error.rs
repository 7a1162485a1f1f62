//! Why a server could not be loaded at all.

use crate::load::failure::Failure;
use std::io;

/// Why a server could not be loaded at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// No connection could be made.
    #[error("cannot connect to {address}: {meaning}{detail}", meaning = .class.meaning())]
    Unreachable {
        /// The address of the server.
        address: String,
        /// How connecting failed.
        class: Failure,
        /// Details, beginning with punctuation; may be empty.
        detail: String,
    },
    /// There is no socket at the path.
    #[error("there is no file ‘{path}’: start the server, or give the path of its socket")]
    NoSocket {
        /// The path.
        path: String,
    },
    /// The process may not open enough file descriptors.
    #[error(
        "{connections} connections need {wanted} open files, and this process may have {limit}: raise the limit (ulimit -n)"
    )]
    Descriptors {
        /// The number of planned connections.
        connections: u32,
        /// The number of descriptors that they need.
        wanted: u64,
        /// The largest number of descriptors of this process.
        limit: u64,
    },
    /// Answers timed out more often than the plan allows.
    #[error("{requests} of its requests had no answer within {patience}, so it was abandoned")]
    NoAnswers {
        /// The number of requests that timed out.
        requests: u64,
        /// The time-out, with its unit.
        patience: String,
    },
    /// The system refuses something that every run needs.
    #[error("the generator cannot start: {0}")]
    System(#[from] io::Error),
    /// The user interrupted before anything was measured.
    #[error("interrupted before the first request")]
    Interrupted,
}
