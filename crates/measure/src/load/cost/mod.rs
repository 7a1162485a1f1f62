//! The cost of a request to the server, measured from outside.
//!
//! Counters of the server are read around windows of load, which have different lengths at the same rate. The
//! regression of the counters' growth on the requests gives the cost per request. [`sheet`] accepts all counters that
//! never decrease.

mod attached_tool;
pub mod by_function;
pub mod collections;
pub mod cost_row;
pub mod instructions;
pub mod memory_growth;
mod patience;
pub mod process_tree;
mod rare_events;
pub mod sampled;
pub mod server_process;
pub mod server_windows;
pub mod sheet;
pub mod sheet_input;
pub mod syscalls;
pub mod threads;
mod unseen_threads;
pub mod user_and_system_time;
pub mod window;

use std::process::{Command, Stdio};

/// Tries a tool on a program that does nothing. The error is `missing` if the tool cannot be started, and `forbidden`
/// if it fails.
fn works(mut tool: Command, missing: &str, forbidden: &str) -> Result<(), String> {
    match tool.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Err(_) => Err(missing.to_owned()),
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(forbidden.to_owned()),
    }
}
