//! Looks, next to each block, whether a neighbour uses the program's core.

use scruple_measure::bench::BenchProgram;

/// A witness that took longer than this multiple of the fastest one is looked at again.
const SLOW: f64 = 1.1;

/// The state of the core on which a program ran, at the start of a block.
#[derive(Clone, Copy, Default)]
pub(crate) struct CoreState {
    /// The length of a cycle, in nanoseconds.
    pub(crate) cycle: Option<f64>,
    /// The number of cycles that the witness took.
    pub(crate) additions: Option<f64>,
}

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

    /// Measures the core before the first of some blocks.
    pub(super) fn begin(&mut self, program: &mut BenchProgram) -> CoreState {
        let cycle = program.cycle();
        self.before = self.undisturbed_by_itself(program.witness(), || program.is_running());
        CoreState { cycle, additions: self.before.zip(cycle).map(|(time, cycle)| time / cycle) }
    }

    /// Runs the witness after a block, and returns the slower time of the one before the block and the one after it.
    pub(super) fn after_block(&mut self, program: &BenchProgram) -> Option<f64> {
        self.slower_of_both(program.witness(), || program.is_running())
    }

    fn slower_of_both(&mut self, taken: Option<f64>, is_running: impl FnOnce() -> bool) -> Option<f64> {
        let after = self.undisturbed_by_itself(taken, is_running);
        let before = std::mem::replace(&mut self.before, after);
        before.into_iter().chain(after).reduce(f64::max)
    }

    /// The time that the witness has taken; `None` if the program itself ran meanwhile: its collector or its compiler are
    /// part of its costs, and no disturbance.
    fn undisturbed_by_itself(
        &mut self,
        taken: Option<f64>,
        is_running: impl FnOnce() -> bool,
    ) -> Option<f64> {
        let taken = taken?;
        self.least = self.least.min(taken);
        (taken <= SLOW * self.least || !is_running()).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: fn() -> bool = || false;
    const RUNNING: fn() -> bool = || true;

    #[test]
    fn a_neighbour_on_either_side_of_a_block_shows() {
        let mut neighbours = Neighbours::new();
        assert_eq!(neighbours.slower_of_both(Some(700.0), IDLE), Some(700.0));
        assert_eq!(neighbours.slower_of_both(Some(1400.0), IDLE), Some(1400.0), "after it");
        assert_eq!(neighbours.slower_of_both(Some(710.0), IDLE), Some(1400.0), "before it");
        assert_eq!(neighbours.slower_of_both(Some(720.0), IDLE), Some(720.0));
        // Where the machine cannot tell, the other side counts.
        assert_eq!(neighbours.slower_of_both(None, IDLE), Some(720.0));
        assert_eq!(neighbours.slower_of_both(None, IDLE), None);
    }

    #[test]
    fn what_the_program_itself_still_does_is_no_neighbour() {
        let mut neighbours = Neighbours::new();
        assert_eq!(neighbours.slower_of_both(Some(700.0), RUNNING), Some(700.0), "nothing was slow");
        assert_eq!(neighbours.slower_of_both(Some(1400.0), RUNNING), Some(700.0), "only before the block");
        assert_eq!(neighbours.slower_of_both(Some(1400.0), RUNNING), None);
        assert_eq!(neighbours.slower_of_both(Some(1400.0), IDLE), Some(1400.0));
    }
}
