//! How the launches of a command that the user allows are divided among the passes.

use crate::evidence::MOST_OF_FEW;

/// The number of timed launches from which on the other passes take more than one launch each: an interval needs as
/// many.
const TIMED: u32 = 6;

/// The shares of the passes in a number of launches that all of them together may take.
///
/// Time comes first: it has a launch in any case, and at least six before another pass has more than one, unless counts
/// come first.
///
/// ```
/// use scruple_core::launch_shares::LaunchShares;
///
/// // Memory, an allocation counter and another instrument besides time.
/// let shares = |allowed| {
///     let shares = LaunchShares::of(allowed, 3, true);
///     (shares.timed(), shares.passes(), shares.each())
/// };
/// assert_eq!([shares(1), shares(2), shares(4)], [(1, 0, 0), (1, 1, 1), (1, 3, 1)]);
/// assert_eq!([shares(10), shares(15), shares(60)], [(7, 3, 1), (6, 3, 3), (42, 3, 6)]);
/// assert_eq!(LaunchShares::of(10, 3, true).counts_first().each(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShares {
    allowed: u32,
    /// The launches for time before another pass has more than one.
    timed: u32,
    passes: u32,
}

impl LaunchShares {
    /// Divides `allowed` launches of each command among the timing pass, if it is taken (`timed`), and this number of
    /// other passes. Each instrument of the counting pass counts as one.
    pub fn of(allowed: u32, passes: u32, timed: bool) -> LaunchShares {
        let passes = passes.min(allowed.saturating_sub(u32::from(timed)));
        LaunchShares { allowed, timed: if timed { TIMED } else { 0 }, passes }
    }

    /// Leaves one launch for time, which decides nothing, before the other passes have as many as they may.
    pub fn counts_first(self) -> LaunchShares {
        LaunchShares { timed: self.timed.min(1), ..self }
    }

    /// The number of passes besides the timing pass that can be taken at all, in their order.
    pub fn passes(&self) -> u32 {
        self.passes
    }

    /// The most launches that each of these passes may take.
    pub fn each(&self) -> u32 {
        match self.passes {
            0 => 0,
            passes => (self.allowed.saturating_sub(self.timed) / passes).clamp(1, MOST_OF_FEW as u32),
        }
    }

    /// The launches that are left for time if each of the other passes takes as many as it may.
    pub fn timed(&self) -> u32 {
        match self.timed {
            0 => 0,
            _ => self.allowed - self.passes * self.each(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_launches_is_exceeded_and_time_has_a_launch_of_any() {
        for allowed in 1..100 {
            for passes in 0..6 {
                let shares = LaunchShares::of(allowed, passes, true);
                assert_eq!(shares.timed() + shares.passes() * shares.each(), allowed);
                assert!(shares.timed() >= 1 && (shares.each() <= 1 || shares.timed() >= TIMED), "{shares:?}");
                let first = shares.counts_first();
                assert!(first.timed() >= 1 && first.each() >= shares.each(), "{first:?}");
                let counted = LaunchShares::of(allowed, passes, false);
                assert!(counted.timed() == 0 && counted.passes() * counted.each() <= allowed, "{counted:?}");
            }
        }
    }
}
