//! Windows of load, and how long they are.

use super::process_tree::TreeMemory;
use serde::{Deserialize, Serialize};

/// The confidence level of every interval.
pub(super) const LEVEL: f64 = 0.95;

/// One window of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The number of requests that the server answered or failed; 0 if the window is not counted by itself, because
    /// the next one continues from its start.
    pub requests: u64,
    /// The length of the window in nanoseconds.
    pub elapsed: u64,
    /// The growth of each counter, by the key of its metric.
    pub grown: Vec<(String, f64)>,
    /// The server's memory after the window.
    pub memory: TreeMemory,
}

/// The planned lengths of windows, in turn and in parts of the load. Three lengths alternate, so that the fixed cost of a
/// window can be separated from that of its requests, and a drift of the server is not taken for a cost of requests.
pub const LENGTHS: [u64; 6] = [1, 3, 2, 2, 1, 3];

/// The lengths of windows for a total number of requests.
pub fn lengths(requests: u64, rounds: u32) -> Vec<u64> {
    let rounds = rounds.max(1);
    let unit = (requests / (6 * u64::from(rounds))).max(1);
    LENGTHS.iter().cycle().take(3 * rounds as usize).map(|parts| parts * unit).collect()
}
