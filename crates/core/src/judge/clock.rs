//! The clock of the core on which cases were timed, and its effect on their times.
//!
//! A processor runs faster or slower with heat, power and the load of neighbours, sometimes for a whole run. All
//! readings of such a run agree, so their spread does not show the difference to the next run.

use super::shared_core;
use super::undisturbed_blocks::{undisturbed, within};
use super::witnesses::CYCLE;
use crate::subject::Arm;
use scruple_stats::Interval;
use scruple_stats::quantile::{median, quantile, sorted};
use scruple_stats::tare::Net;

/// The key of the figure of a tare that holds the usual range of cycle lengths on this machine: two readings, in
/// nanoseconds.
pub const USUAL: &str = "batch.cycle.usual";

/// Runs whose cycle lengths differ by more than this share were taken at different clocks.
pub const APART: f64 = 0.02;

/// The usual range of the length of a cycle: the middle nine tenths of the earlier runs and this one, so that one run
/// at an unusual clock among many does not count. How much processes of one run differ is covered by the intervals
/// already.
pub fn usual(earlier: &[f64], now: f64) -> (f64, f64) {
    let runs = sorted(&[earlier, &[now]].concat());
    (quantile(&runs, 0.05), quantile(&runs, 0.95))
}

/// The length of a cycle while a case was timed, in nanoseconds, over the blocks that count.
pub fn cycle(tare: &Arm) -> Option<f64> {
    let cycles = tare.sample(CYCLE)?;
    let counted = undisturbed(tare).map(|blocks| within(cycles, &blocks).readings);
    let readings = counted.filter(|readings| !readings.is_empty()).unwrap_or_else(|| cycles.readings.clone());
    Some(median(&readings))
}

/// The factors that convert a time to the fastest and to the slowest usual state of the core: at most 1, and at least 1.
/// If the core was shared during the whole run, the fastest state includes that it is not.
pub fn reach(tare: &Arm) -> (f64, f64) {
    let (less, more) = clock_reach(tare);
    (less / shared_core::slowdown(tare), more)
}

fn clock_reach(tare: &Arm) -> (f64, f64) {
    let known = cycle(tare).zip(tare.sample(USUAL));
    known.map_or((1.0, 1.0), |(now, usual)| {
        let least = usual.readings.iter().copied().fold(now, f64::min);
        let most = usual.readings.iter().copied().fold(now, f64::max);
        (least / now, most / now)
    })
}

/// The interval of a time, widened to the values in the usual states of the core. That is wider than necessary for code
/// that waits for memory, which depends less on the clock, or for its own results, which depends less on sharing.
pub fn widened(interval: Interval, (less, more): (f64, f64)) -> Interval {
    let scaled = |end: f64, outwards: f64, inwards: f64| end * if end > 0.0 { outwards } else { inwards };
    Interval { low: scaled(interval.low, less, more), high: scaled(interval.high, more, less), ..interval }
}

/// The net of a time, with its interval widened to the values in the usual states of the core.
pub(super) fn widened_net(net: Net, tare: &Arm) -> Net {
    let reach = reach(tare);
    Net {
        interval: widened(net.interval, reach),
        below_resolution: net.below_resolution.map(|limit| limit * reach.1),
        ..net
    }
}

#[cfg(test)]
mod tests {
    use super::super::undisturbed_blocks::tests::arm;
    use super::*;
    use crate::subject::Role;

    fn tare(cycle: f64, usual: (f64, f64)) -> Arm {
        let cycles = (0..20).map(|block| (block, cycle)).collect();
        arm(Role::Tare, &[(CYCLE, cycles), (USUAL, vec![(0, usual.0), (1, usual.1)])])
    }

    #[test]
    fn an_interval_reaches_to_where_the_time_is_at_the_usual_clock() {
        let slow = reach(&tare(0.35, (0.30, 0.305)));
        let found = widened(Interval { low: 1.16, high: 1.18, level: 0.95 }, slow);
        assert!((found.low - 1.16 * 0.30 / 0.35).abs() < 1e-12, "{found:?}");
        assert!((found.high - 1.18).abs() < 1e-12, "{found:?}");
        let usual = reach(&tare(0.30, (0.29, 0.31)));
        let found = widened(Interval { low: -1.0, high: 1.0, level: 0.95 }, usual);
        assert!(found.low < -1.0 && found.high > 1.03, "{found:?}");
    }

    #[test]
    fn one_run_among_many_at_another_clock_is_not_usual() {
        let (low, high) = usual(&[[0.30; 19].as_slice(), &[0.35]].concat(), 0.3);
        assert!((low - 0.30).abs() < 1e-12 && high < 0.303, "{low} {high}");
        let (low, high) = usual(&[0.30], 0.35);
        assert!(low < 0.303 && high > 0.347, "{low} {high}");
        assert_eq!(usual(&[], 0.3), (0.3, 0.3));
    }

    #[test]
    fn without_a_witness_nothing_is_widened() {
        let mut bare = tare(0.3, (0.2, 0.4));
        bare.figures.remove(CYCLE);
        assert_eq!(reach(&bare), (1.0, 1.0));
    }
}
