//! How the launches of a command of one version are divided among the passes, if the user gave their number (`-r`).

use scruple_core::launch_shares::LaunchShares;
use std::time::Duration;

/// The number of launches of the memory pass, and of each instrument in the counting pass, if a launch takes between
/// `BRIEF` and `LONG`. Programs that take longer get one launch. Briefer ones get as many as a verdict needs; in
/// the counting pass only if their counts differ.
pub(super) const REPEATS: u32 = 2;
pub(super) const LONG: Duration = Duration::from_secs(20);
pub(super) const BRIEF: Duration = Duration::from_secs(5);

/// The launches of each pass. Together they are at most as many as the user gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GivenLaunches {
    /// The number of launches for time.
    pub(super) timed: u32,
    /// The number of launches in the memory pass.
    pub(super) memory: u32,
    /// The number of instruments that are attached.
    pub(super) instruments: u32,
    /// The most launches with each of these instruments.
    pub(super) counted: u32,
}

impl GivenLaunches {
    /// Divides the launches. A change of a count is certain only if the count repeated, so that an instrument has two
    /// launches or none.
    pub(super) fn of(launches: u32, instruments: u32, time_only: bool) -> GivenLaunches {
        if time_only {
            return GivenLaunches { timed: launches, memory: 0, instruments: 0, counted: 0 };
        }
        let each = LaunchShares::of(launches, 1 + instruments, true).each();
        let memory = each.min(launches - 1);
        let counted = each.max(REPEATS);
        let instruments = instruments.min((launches - 1 - memory) / counted);
        GivenLaunches { timed: launches - memory - instruments * counted, memory, instruments, counted }
    }

    /// The most launches besides those for time.
    pub(super) fn others(&self) -> u32 {
        self.memory + self.instruments * self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_launches_are_not_exceeded_and_no_count_is_read_once() {
        for launches in 1..100 {
            let given = GivenLaunches::of(launches, 2, false);
            assert_eq!(given.timed + given.others(), launches);
            assert!(given.timed >= 1 && given.counted >= 2, "{given:?}");
        }
        let shares = |launches| {
            let given = GivenLaunches::of(launches, 2, false);
            [given.timed, given.memory, given.instruments, given.counted]
        };
        assert_eq!(shares(4), [1, 1, 1, 2]);
        assert_eq!([shares(10), shares(17)], [[5, 1, 2, 2], [8, 3, 2, 3]]);
        assert_eq!(GivenLaunches::of(5, 2, true).timed, 5);
    }
}
