//! The time of a case without that of the harness.

use super::{Report, tare_of};
use scruple_core::judge::bench_cases;
use scruple_core::subject::Arm;
use scruple_core::unit::{Unit, quantity};
use scruple_stats::tare::Net;

/// The net time of an iteration; `None` for an arm without a tare, or without enough readings.
pub(crate) fn of(report: &Report<'_>, arm: &Arm) -> Option<Net> {
    bench_cases::net(arm, tare_of(report.run, arm)?, "time.wall", report.run.terms.level)
}

/// Writes the interval of a net time, which is never below 0.
pub(crate) fn range(net: &Net) -> String {
    let [low, high] =
        [net.interval.low.max(0.0), net.interval.high].map(|time| quantity(time, &Unit::Nanoseconds));
    format!("[{low}, {high}]")
}
