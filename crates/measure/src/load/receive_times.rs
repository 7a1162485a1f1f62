//! When bytes arrived, as distinct from when the generator read them.
//!
//! A generator that other programs keep from its core reads answers late. The kernel notes the arrival of TCP segments
//! by the wall clock (CLOCK_REALTIME); here these times are converted to the monotonic clock. The two clocks run at the
//! same speed and differ by an offset, which changes only when the wall clock is set.

use super::clock;

/// A thread that reads two clocks between three ticks may be interrupted; an offset from a longer interval than this is
/// not used, in nanoseconds.
const PRECISE: u64 = 5_000;

/// How often the offset is determined until the interval is short enough.
const ATTEMPTS: u32 = 10;

/// A reading that is later than this makes sure that the clock has not been set, in nanoseconds.
const LATE: u64 = 1_000_000;

/// Converts times of the wall clock to the monotonic clock.
pub(crate) struct ArrivalClock {
    /// The time of day less the monotonic time.
    offset: Option<u64>,
}

impl ArrivalClock {
    pub(crate) fn new() -> ArrivalClock {
        let mut clock = ArrivalClock { offset: None };
        clock.adjust();
        clock
    }

    /// Determines the offset again. False where it is unknown or has changed, so that earlier times cannot be
    /// converted.
    pub(crate) fn adjust(&mut self) -> bool {
        let found = (0..ATTEMPTS).find_map(|_| {
            let before = clock::now();
            let day = crate::clock::read(libc::CLOCK_REALTIME)?;
            let after = clock::now();
            (after - before <= PRECISE).then(|| day.checked_sub(before.midpoint(after)))?
        });
        match (found, self.offset) {
            (None, _) => false,
            (Some(new), Some(old)) if new.abs_diff(old) <= PRECISE => true,
            (Some(new), _) => {
                self.offset = Some(new);
                false
            }
        }
    }

    /// When bytes arrived on the monotonic clock that were read at `now`; `None` where that is not known.
    pub(crate) fn monotonic(&mut self, time_of_day: u64, now: u64) -> Option<u64> {
        let arrived = time_of_day.checked_sub(self.offset?)?;
        let plausible = arrived <= now + PRECISE && arrived + LATE >= now;
        (plausible || self.adjust()).then(|| arrived.min(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_of_day() -> u64 {
        crate::clock::read(libc::CLOCK_REALTIME).expect("a clock")
    }

    #[test]
    fn a_time_of_day_is_found_on_the_monotonic_clock() {
        let mut arrivals = ArrivalClock::new();
        // A machine that is too busy for ten short intervals knows no offset, and says so.
        while arrivals.offset.is_none() {
            arrivals.adjust();
        }
        let before = clock::now();
        let day = time_of_day();
        let after = clock::now();
        let found = arrivals.monotonic(day, after).expect("known");
        assert!(before <= found + 2 * PRECISE && found <= after, "{before} {found} {after}");
        let long_ago = arrivals.monotonic(day - 3_000_000_000, after).expect("known");
        assert!(long_ago.abs_diff(found - 3_000_000_000) <= PRECISE, "{long_ago}");
    }

    #[test]
    fn a_time_from_before_the_clock_was_set_is_not_known() {
        let mut arrivals = ArrivalClock::new();
        while arrivals.offset.is_none() {
            arrivals.adjust();
        }
        // The clock has been put back by a minute since the offset was determined.
        arrivals.offset = arrivals.offset.map(|offset| offset + 60_000_000_000);
        assert_eq!(arrivals.monotonic(time_of_day(), clock::now()), None);
        // From then on the new offset holds.
        assert!(arrivals.monotonic(time_of_day(), clock::now()).is_some());
    }
}
