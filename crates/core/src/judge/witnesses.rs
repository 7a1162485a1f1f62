//! Figures of the tare that are read beside the batches of cases and show the state of the machine.

use crate::subject::Arm;
use scruple_stats::quantile::{median, quantile, sorted};

/// The key of the figure of a tare that shows the speed of the core during a block: the time, in nanoseconds, of a
/// fixed piece of work that the program did next to the batches. Programs need not have it.
pub const WITNESS: &str = "batch.witness";

/// The key of the figure of a tare that holds the time, in nanoseconds, of a fixed piece of work that Scruple did
/// before and after each block, on the core on which the program ran. A block without it was undisturbed.
pub const BESIDE: &str = "batch.beside";

/// The key of the figure of a tare that holds the share of each block in which the program was ready to run but waited
/// for a core.
pub const WAITED: &str = "batch.waited";

/// The key of the figure of a tare that holds the length of a cycle of the core in each block, in nanoseconds.
pub const CYCLE: &str = "batch.cycle";

/// The key of the figure of a tare that holds the number of cycles that a fixed number of independent additions took at
/// the start of each block.
pub const ADDITIONS: &str = "batch.additions";

/// The key of the figure of a tare that holds the number of cycles that these additions take if nothing else uses the
/// core: the least of this run, of earlier ones on this class of machine, and of what the processor takes. One reading.
pub const ADDITIONS_ALONE: &str = "batch.additions.alone";

/// The reading in the fastest blocks. One in fifty may be too small, because a clock cut it short.
pub fn in_fastest_blocks(witness: &[f64]) -> f64 {
    quantile(&sorted(witness), 0.02)
}

/// The time in nanoseconds that the additions take alone.
pub(super) fn time_alone(tare: &Arm) -> Option<f64> {
    let cycles = in_fastest_blocks(&tare.sample(ADDITIONS_ALONE)?.readings);
    Some(cycles * median(&tare.sample(CYCLE)?.readings))
}
