//! How much an explanation runs.

use scruple_core::explain::Count;

/// How much to run.
pub struct Effort {
    /// What is explained first. Live blocks take a launch of their own.
    pub count: Count,
    /// The number of launches of each side if counts do not repeat.
    pub runs: u32,
    /// Whether an exit code other than 0 is an error.
    pub strict: bool,
    /// Whether each side is counted only once if a second launch, which counts only the total, gives the same total.
    pub once: bool,
    /// Whether time is measured.
    pub time: bool,
    /// Whether source lines and machine code are shown.
    pub lines: bool,
    /// Whether the two programs never run at the same time.
    pub apart: bool,
}
