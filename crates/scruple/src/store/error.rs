//! Errors of the store.

use super::database::{DatabaseFailure, Refusal};
use crate::address::StoreAddress;
use crate::fault::Fault;

/// Why the store could not be used. Each message says what is kept and what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is not a database, or the database of another program.
    #[error("‘{path}’ is not a store ({message}): name another file with --store FILE")]
    NotAStore {
        /// The address of the store.
        path: String,
        /// The kind of file that it is instead.
        message: String,
    },
    /// The database is damaged.
    #[error(
        "the store ‘{path}’ is damaged ({message}): move it away to start a new one, or use --store FILE"
    )]
    Corrupt {
        /// The address of the store.
        path: String,
        /// The message of the database.
        message: String,
    },
    /// The store cannot be opened or written, for lack of permission.
    #[error(
        "the store ‘{path}’ cannot be opened ({message}): make it and its folder writable, or use --store FILE"
    )]
    ReadOnly {
        /// The address of the store.
        path: String,
        /// The message of the database.
        message: String,
    },
    /// The disk is full.
    #[error("the store ‘{path}’ cannot grow ({message}): free disk space, or use --store FILE")]
    Full {
        /// The address of the store.
        path: String,
        /// The message of the database.
        message: String,
    },
    /// Another process holds the lock of the store.
    #[error(
        "the store ‘{path}’ has been locked by another process for a minute: wait for it to end, or use --store FILE"
    )]
    Busy {
        /// The address of the store.
        path: String,
    },
    /// A newer version of Scruple wrote the store.
    #[error(
        "the store ‘{path}’ has version {found}, and this scruple knows versions up to {known}: use the newer scruple that wrote it, or --store FILE"
    )]
    Newer {
        /// The address of the store.
        path: String,
        /// The version of the store's schema.
        found: i64,
        /// The newest schema version that this program knows.
        known: usize,
    },
    /// There is no store at this address yet.
    #[error("there is no store at ‘{0}’: `scruple run` makes one, or name another with --store FILE")]
    Missing(String),
    /// No run has this name.
    #[error("no stored run is called ‘{name}’ in ‘{path}’: {advice}")]
    NoSuchRun {
        /// Advice for finding the run.
        advice: String,
        /// The name that was requested.
        name: String,
        /// The address of the store.
        path: String,
    },
    /// Several runs match this name.
    #[error("‘{name}’ fits several stored runs ({matches}): write more of the id")]
    Ambiguous {
        /// The name that was requested.
        name: String,
        /// The ids of the matching runs.
        matches: String,
    },
    /// The server does not answer.
    #[error(
        "the server of the store ‘{path}’ cannot be reached ({message}): check that it runs and that the address is right, or name another store with --store"
    )]
    Unreachable {
        /// The address of the store.
        path: String,
        /// Why the server could not be reached.
        message: String,
    },
    /// The server denies this user the operation.
    #[error(
        "the server of the store ‘{path}’ refuses this user ({message}): check its name and password, create what does not exist, give the user CONNECT on the database, CREATE on its schema and the rights to read and write its tables, or name another store with --store"
    )]
    Denied {
        /// The address of the store.
        path: String,
        /// The message of the server.
        message: String,
    },
    /// Two stores have different readings for the same run.
    #[error(
        "the run {id} has other readings in ‘{path}’ than here, and neither continues the other: it stays as it is in both"
    )]
    Diverged {
        /// The address of the store that was to receive the run.
        path: String,
        /// The id of the run.
        id: String,
    },
    /// The database refused for another reason.
    #[error("the store ‘{path}’ refused: {message}")]
    Other {
        /// The address of the store.
        path: String,
        /// The message of the database.
        message: String,
    },
}

impl StoreError {
    /// Returns the error of a verb that can do without a store.
    pub fn avoidable(&self) -> Fault {
        Fault::usage(self.with_no_store())
    }

    /// Returns the error for a run that was measured but could not be stored completely.
    pub fn after_measuring(&self) -> Fault {
        Fault::usage(format!("the run was measured but could not be stored: {}", self.with_no_store()))
    }

    /// Returns the message for a verb that can do without a store, which is then a way out.
    fn with_no_store(&self) -> String {
        let way_out = match self {
            StoreError::NotAStore { .. } | StoreError::Unreachable { .. } => ", or use --no-store",
            StoreError::Corrupt { .. } | StoreError::ReadOnly { .. } | StoreError::Full { .. } => {
                " or --no-store"
            }
            _ => "",
        };
        format!("{self}{way_out}")
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::usage(error)
    }
}

impl DatabaseFailure {
    /// Converts the failure into the error of the store at this address.
    pub(super) fn at(self, address: &StoreAddress) -> StoreError {
        let (path, message) = (address.to_string(), self.message);
        let file = matches!(address, StoreAddress::File(_));
        match self.refusal {
            Refusal::Foreign => StoreError::NotAStore { path, message },
            Refusal::Corrupt => StoreError::Corrupt { path, message },
            Refusal::Denied if file => StoreError::ReadOnly { path, message },
            Refusal::Denied => StoreError::Denied { path, message },
            Refusal::Full => StoreError::Full { path, message },
            Refusal::Busy => StoreError::Busy { path },
            Refusal::Unreachable => StoreError::Unreachable { path, message },
            Refusal::Other => StoreError::Other { path, message },
        }
    }
}
