//! Says which intervals of a first answer are wide.

use super::cases::{Cases, Weighed};
use super::record::SuiteRecord;
use scruple_core::harmless_text::list_names;
use scruple_core::judge::bench_cases;
use scruple_core::run::Run;
use scruple_stats::quantile::median;
use scruple_stats::tare::{Net, RESOLUTION};

/// An interval is wide if half its width is above this share of the net.
const WIDE: f64 = 0.02;

/// The net time of a case, and half the width of its interval as far as further readings can reduce it: not by the
/// possible difference between two copies of one loop.
pub(super) fn reducible(run: &Run, weighed: &Weighed) -> Option<(Net, f64)> {
    let (arm, tare) = (&run.arms[weighed.arm], &run.arms[weighed.tare]);
    let copies = RESOLUTION * tare.sample("time.wall").map_or(0.0, |sample| median(&sample.readings));
    let net = bench_cases::net(arm, tare, "time.wall", run.terms.level)?;
    Some((net, net.interval.half_width() - copies))
}

/// Adds a remark about the cases of a first answer whose intervals are wide.
pub(super) fn add_remark(cases: &Cases, record: &mut SuiteRecord) {
    let run = &record.run;
    let is_wide = |weighed: &&Weighed| {
        reducible(run, weighed)
            .is_some_and(|(net, half)| net.below_resolution.is_none() && half > WIDE * net.estimate)
    };
    let wide = cases.weighed.iter().filter(|one| one.is_open()).filter(is_wide);
    let wide: Vec<&str> = wide.map(|weighed| record.name(weighed)).collect();
    let (subject, verb, them) = match wide.len() {
        0 => return,
        1 => ("interval", "is", "it"),
        _ => ("intervals", "are", "them"),
    };
    let names = list_names(&wide);
    let text = format!(
        "the {subject} of {names} {verb} wider than ±2 % in this first answer; without --quick, more and longer processes \
         measure {them}"
    );
    record.run.warn("wide-intervals", text);
}
