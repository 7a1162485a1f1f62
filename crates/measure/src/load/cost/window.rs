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

/// The lengths of windows for a total number of requests. Three lengths alternate, so that a drift of the server is
/// not taken for the cost of requests.
pub fn lengths(requests: u64, rounds: u32) -> Vec<u64> {
    let unit = (requests / (6 * u64::from(rounds.max(1)))).max(1);
    (0..rounds.max(1))
        .flat_map(
            |round| if round % 2 == 0 { [unit, 3 * unit, 2 * unit] } else { [2 * unit, unit, 3 * unit] },
        )
        .collect()
}
