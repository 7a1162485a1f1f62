//! Servers on another node than the one that loads them.
//!
//! The process that loads starts a second one on the other node, by words such as those of `srun` or `ssh`. The second
//! one starts the servers there and reads their accounts. The two processes exchange lines of JSON over its standard
//! input and output; its first line is the version of Scruple there. If one process ends, the other sees the end of the
//! stream and ends as well, with everything that it has started.

mod client;
mod server;

pub use client::{RemoteAccounts, RemoteHelper, RemoteServer};
pub use server::{IncomingRequests, greet, serve};

use scruple_core::provenance::Provenance;
use scruple_measure::load::cost::sheet_input::SheetInput;
use serde::{Deserialize, Serialize};

/// The messages of the process that loads. Servers are numbered in the order of the arms.
#[derive(Debug, Serialize, Deserialize)]
enum RemoteRequest {
    /// Start this server, which clients reach at this host.
    Start(usize, String),
    /// Start a window.
    Begin(usize),
    /// End a window and start the next.
    Mark(usize),
    /// End a window.
    End(usize),
    /// This many requests have been handled.
    Handled(u64),
    /// Report the number of windows.
    Windows(usize),
    /// Report the costs of a request in each window from this one on.
    Costs(usize, usize),
    /// Report the counters.
    SheetInput(usize),
    /// Report how the server ended, if it did.
    Status(usize),
}

/// The answers of the process on the node of the servers.
#[derive(Debug, Serialize, Deserialize)]
enum ServerReply {
    /// It is ready, on this node.
    Ready(String, Box<Provenance>),
    /// It is done.
    Done,
    /// How many requests have been handled? Another answer follows.
    HowMany,
    /// The server runs. The flag says whether its processes are known.
    Started(bool),
    Windows(usize),
    Costs(Vec<Vec<(String, f64)>>),
    SheetInput(Option<Box<SheetInput>>),
    Status(Option<String>),
    /// It could not be done.
    Failed(String),
}
