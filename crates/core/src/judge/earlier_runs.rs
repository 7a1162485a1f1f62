//! How much the figure of the next run may differ, by the earlier runs of the same program.
//!
//! Processes of one run share the state of the machine, such as neighbours on the core and full caches. Their spread
//! does not show how much that differs from run to run; the nets of earlier runs do.

use crate::subject::Arm;
use scruple_stats::Interval;
use scruple_stats::tare::Net;

/// The key of the figure of a tare that holds the nets of earlier runs of the same program, in nanoseconds.
pub const EARLIER: &str = "batch.net.earlier";

/// The smallest and the largest of the figures of the earlier runs and this one. If runs are exchangeable, the next
/// figure lies between the smallest and the largest of k with probability (k − 1)/(k + 1). So if there are few runs,
/// none of them can be left out as unusual. Source: Wilks, "Determination of Sample Sizes for Setting Tolerance Limits"
/// (1941).
pub fn range(earlier: &[f64], now: f64) -> (f64, f64) {
    earlier.iter().fold((now, now), |(low, high), net| (low.min(*net), high.max(*net)))
}

/// The net of a time, with its interval widened to the range of the nets of earlier runs.
pub(super) fn widened_net(net: Net, tare: &Arm) -> Net {
    let Some(earlier) = tare.sample(EARLIER) else { return net };
    let (low, high) = range(&earlier.readings, net.estimate);
    let (low, high) = (low.max(0.0), high.max(0.0));
    let interval =
        Interval { low: net.interval.low.min(low), high: net.interval.high.max(high), ..net.interval };
    Net { interval, below_resolution: net.below_resolution.map(|limit| limit.max(high)), ..net }
}

#[cfg(test)]
mod tests {
    use super::super::undisturbed_blocks::tests::arm;
    use super::*;
    use crate::subject::Role;

    fn tare(earlier: &[f64]) -> Arm {
        arm(Role::Tare, &[(EARLIER, (0..).zip(earlier.iter().copied()).collect())])
    }

    fn net(estimate: f64, low: f64, high: f64) -> Net {
        let interval = Interval { low, high, level: 0.95 };
        Net { estimate, interval, below_resolution: None, unknown: false, method: "test" }
    }

    #[test]
    fn an_interval_reaches_to_the_nets_of_earlier_runs() {
        let found = widened_net(net(10.5, 10.4, 10.6), &tare(&[10.0, 10.05, 10.0]));
        assert!(found.interval.low < 10.01 && (found.interval.high - 10.6).abs() < 1e-12, "{found:?}");
        // The intervals of any two runs overlap, also if runs have one of two levels and differ little besides.
        let found = widened_net(net(344.0, 341.0, 347.0), &tare(&[239.0]));
        assert!(found.interval.low <= 239.0 && (found.interval.high - 347.0).abs() < 1e-12, "{found:?}");
        let wide = net(10.0, 5.0, 20.0);
        assert_eq!(widened_net(wide, &tare(&[9.0, 11.0])), wide);
        assert_eq!(widened_net(wide, &tare(&[])), wide);
    }

    #[test]
    fn a_bound_holds_what_earlier_runs_found() {
        let bound = Net { below_resolution: Some(0.1), ..net(0.0, -0.1, 0.1) };
        let found = widened_net(bound, &tare(&[0.3, 0.3, -0.2]));
        assert!(found.below_resolution.is_some_and(|limit| limit > 0.25), "{found:?}");
    }
}
