//! Errors of the store.

use super::database::{Failure, Refusal};
use crate::address::Address;

/// Why the store could not be used, what is kept regardless, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is not a database, or one of something else.
    #[error("‘{path}’ is not a store ({message}): name another file with --store FILE, or use --no-store")]
    NotAStore {
        /// The file.
        path: String,
        /// What it is instead.
        message: String,
    },
    /// The database is damaged.
    #[error(
        "the store ‘{path}’ is damaged ({message}): move it away to start a new one, or use --store FILE or --no-store"
    )]
    Corrupt {
        /// The file.
        path: String,
        /// What the database said.
        message: String,
    },
    /// It may not be opened, or not be written.
    #[error(
        "the store ‘{path}’ cannot be opened ({message}): make it and its folder writable, or use --store FILE or --no-store"
    )]
    ReadOnly {
        /// The file.
        path: String,
        /// What the database said.
        message: String,
    },
    /// The disk is full.
    #[error(
        "the store ‘{path}’ cannot take more ({message}): is the disk full? Free some space, or use --store FILE or --no-store"
    )]
    Full {
        /// The file.
        path: String,
        /// What the database said.
        message: String,
    },
    /// Another process holds it.
    #[error(
        "the store ‘{path}’ has been locked by another process for ten seconds: wait for it to end, or use --store FILE"
    )]
    Busy {
        /// The file.
        path: String,
    },
    /// A newer Scruple wrote it.
    #[error(
        "the store ‘{path}’ has version {found}, and this scruple knows versions up to {known}: use the newer scruple that wrote it, or --store FILE"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its version.
        found: i64,
        /// The newest version known.
        known: usize,
    },
    /// There is no store yet.
    #[error("there is no store at ‘{0}’: `scruple run` makes one, or name another with --store FILE")]
    Missing(String),
    /// The name fits no run.
    #[error("no stored run is called ‘{name}’ in ‘{path}’: {advice}")]
    NoSuchRun {
        /// What may help.
        advice: &'static str,
        /// What was asked for.
        name: String,
        /// The file.
        path: String,
    },
    /// The name fits several runs.
    #[error("‘{name}’ fits several stored runs ({matches}): write more of the id")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The ids.
        matches: String,
    },
    /// The server does not answer.
    #[error(
        "the server of the store ‘{path}’ cannot be reached ({message}): is it running, and is the address right? Name another store with --store, or use --no-store"
    )]
    Away {
        /// The store.
        path: String,
        /// What was tried.
        message: String,
    },
    /// The server does not let this user do it.
    #[error(
        "the server of the store ‘{path}’ refuses this user ({message}): give the user CONNECT on the database, CREATE on its schema and the rights to read and write its tables, or name another store with --store"
    )]
    Denied {
        /// The store.
        path: String,
        /// What the server said.
        message: String,
    },
    /// Two stores have different readings under one id.
    #[error(
        "the run {id} has other readings in ‘{path}’ than here, and neither continues the other: it stays as it is in both"
    )]
    Apart {
        /// The store that was to take it.
        path: String,
        /// The run.
        id: String,
    },
    /// Anything else.
    #[error("the store ‘{path}’ refused: {message}")]
    Other {
        /// The file.
        path: String,
        /// What the database said.
        message: String,
    },
}

impl Failure {
    /// The failure of the store there.
    pub(super) fn at(self, address: &Address) -> StoreError {
        let (path, message) = (address.to_string(), self.message);
        let file = matches!(address, Address::File(_));
        match self.refusal {
            Refusal::Foreign => StoreError::NotAStore { path, message },
            Refusal::Corrupt => StoreError::Corrupt { path, message },
            Refusal::Denied if file => StoreError::ReadOnly { path, message },
            Refusal::Denied => StoreError::Denied { path, message },
            Refusal::Full => StoreError::Full { path, message },
            Refusal::Busy => StoreError::Busy { path },
            Refusal::Away => StoreError::Away { path, message },
            Refusal::Other => StoreError::Other { path, message },
        }
    }
}
