//! Looks, next to each block, whether a neighbour uses the program's core.

use scruple_measure::bench::BenchProgram;

/// A witness that took longer than this multiple of the fastest one is looked at again.
const SLOW: f64 = 1.1;

/// The witness beside the blocks of a run.
pub(super) struct Neighbours {
    /// The shortest time of the witness so far, in nanoseconds.
    least: f64,
    /// The time before the next block.
    before: Option<f64>,
}

impl Neighbours {
    pub(super) fn new() -> Neighbours {
        Neighbours { least: f64::INFINITY, before: None }
    }

    /// Runs the witness before the first of some blocks.
    pub(super) fn begin(&mut self, program: &BenchProgram) {
        self.before = self.witness(program);
    }

    /// Runs the witness after a block, and returns the slower time of the one before the block and the one after it.
    pub(super) fn after_block(&mut self, program: &BenchProgram) -> Option<f64> {
        let after = self.witness(program);
        let before = std::mem::replace(&mut self.before, after);
        before.into_iter().chain(after).reduce(f64::max)
    }

    /// The time of the witness; `None` if the program itself runs meanwhile: its collector or its compiler are part of
    /// its costs, and no disturbance.
    fn witness(&mut self, program: &BenchProgram) -> Option<f64> {
        let taken = program.witness()?;
        self.least = self.least.min(taken);
        (taken <= SLOW * self.least || !program.is_running()).then_some(taken)
    }
}
