//! The diagnostic panel of a case: the figures that users of criterion know, and how disturbed the batches were.

use crate::render::block_characters;
use scruple_core::judge::{bench_cases, clock, undisturbed_blocks, witnesses};
use scruple_core::run::Run;
use scruple_core::sample::Sample;
use scruple_core::subject::{Arm, Timing};
use scruple_core::unit::{Unit, quantity, share};
use scruple_stats::quantile::median;
use scruple_stats::summary::Summary;
use scruple_stats::{ols, outlier};
use std::fmt::Write as _;

/// The number of bootstrap replicates for the intervals of the panel.
const REPLICATES: usize = 1000;

/// A batch counts as disturbed if its wall time is more than this many times its processor time.
const DISTURBED: f64 = 1.2;

/// Writes the panel of one case, indented below its row.
pub(crate) fn panel(run: &Run, arm: &Arm) -> String {
    let mut out = String::new();
    let (Some(time), Some(iterations)) = (arm.sample("time.wall"), arm.sample("batch.iterations")) else {
        return out;
    };
    match arm.subject.timing() {
        Some(Timing::Latency) => out.push_str(
            "      latency: from argument to result, because every iteration waits for the previous one\n",
        ),
        Some(Timing::Throughput) => out.push_str(
            "      throughput: from one result to the next; no iteration needs the previous result\n",
        ),
        None => {}
    }
    out.push_str(&spread(run, arm, time, iterations));
    out.push_str(&less_tare(run, arm));
    let cycle = crate::run_report::tare_of(run, arm).and_then(clock::cycle);
    if let Some(cycle) = cycle.filter(|cycle| *cycle > 0.0) {
        let _ = writeln!(out, "      the core ran at {:.2} GHz", 1.0 / cycle);
    }
    out
}

fn time(nanoseconds: f64) -> String {
    quantity(nanoseconds, &Unit::Nanoseconds)
}

/// The least-squares line through the batches, their mean and outliers, and a histogram.
fn spread(run: &Run, arm: &Arm, times: &Sample, iterations: &Sample) -> String {
    let mut out = String::new();
    let (per_iteration, counts) = times.paired(iterations);
    let totals: Vec<f64> = per_iteration.iter().zip(&counts).map(|(time, count)| time * count).collect();
    if let Some(panel) = ols::panel(&counts, &totals, run.terms.level, REPLICATES, run.seed) {
        let (slope, intercept, fit) = (&panel.slope, &panel.intercept, &panel.r_squared);
        let _ = writeln!(
            out,
            "      OLS slope {} [{}, {}]   intercept {} [{}, {}]   R² {:.4} [{:.4}, {:.4}]",
            time(slope.estimate),
            time(slope.interval.low),
            time(slope.interval.high),
            time(intercept.estimate),
            time(intercept.interval.low),
            time(intercept.interval.high),
            fit.estimate,
            fit.interval.low,
            fit.interval.high
        );
    }
    if let Some(summary) = Summary::of(&per_iteration) {
        let _ = writeln!(
            out,
            "      mean {}   sd {}   median {}   10th percentile {}   {} batches in {} processes",
            time(summary.mean),
            summary.sd.map_or("–".to_owned(), time),
            time(summary.median),
            time(summary.p10),
            summary.n,
            times.by_process().len()
        );
    }
    let outliers = outlier::classify(&per_iteration);
    let _ = write!(
        out,
        "      outliers: {} low severe, {} low mild, {} high mild, {} high severe",
        outliers.low_severe, outliers.low_mild, outliers.high_mild, outliers.high_severe
    );
    if let Some(variance) = outlier::variance(&per_iteration) {
        let _ = write!(
            out,
            "; they inflate the variance by {} ({})",
            share(variance.share),
            format!("{:?}", variance.effect).to_lowercase()
        );
    }
    if let Some(cpu) = arm.sample("time.cpu") {
        let (wall, cpu) = times.paired(cpu);
        let disturbed = wall.iter().zip(&cpu).filter(|(wall, cpu)| **wall > DISTURBED * **cpu).count();
        let _ = write!(out, "; {} of batches disturbed", share(disturbed as f64 / wall.len().max(1) as f64));
    }
    out.push('\n');
    out.push_str(&waiting(run, arm));
    let range = block_characters::common_range([per_iteration.as_slice()].into_iter());
    let _ = writeln!(
        out,
        "      {} {} {}",
        time(range.0),
        block_characters::histogram(&per_iteration, range, 40),
        time(range.1)
    );
    out
}

/// The instructions of the process itself, and the processor time of an iteration less that of the tare.
fn less_tare(run: &Run, arm: &Arm) -> String {
    let mut out = String::new();
    if let Some(fixed) = arm.sample("instructions.intercept") {
        let count = |value: f64| quantity(value, &Unit::Count);
        let tare = crate::run_report::tare_of(run, arm).and_then(|tare| tare.sample("instructions"));
        let tare = tare.map_or(String::new(), |tare| {
            format!("the tare’s {} instructions are subtracted;  ", count(median(&tare.readings)))
        });
        let _ = writeln!(
            out,
            "      {tare}{} instructions belong to the process itself, not to iterations",
            count(median(&fixed.readings))
        );
    }
    let net = crate::run_report::tare_of(run, arm)
        .and_then(|tare| bench_cases::net(arm, tare, "time.cpu", run.terms.level));
    if let Some(net) = net {
        let _ = writeln!(
            out,
            "      cpu time net of the tare {} [{}, {}]",
            time(net.estimate),
            time(net.interval.low),
            time(net.interval.high)
        );
    }
    out
}

/// Says in how many blocks the program had to wait for a core, where that was recorded.
fn waiting(run: &Run, arm: &Arm) -> String {
    let Some((tare, waited)) = crate::run_report::tare_of(run, arm)
        .and_then(|tare| tare.sample(witnesses::WAITED).map(|waited| (tare, waited)))
    else {
        return String::new();
    };
    let (count, all) = (
        waited.readings.iter().filter(|share| **share > undisturbed_blocks::MOST_WAITED).count(),
        waited.readings.len(),
    );
    let which = match arm.sample("threads.fairness").is_some() {
        true => "in which not all threads had a core all the time",
        false => "in which the program had to wait for a core",
    };
    match (count, undisturbed_blocks::undisturbed(tare)) {
        (0, _) => String::new(),
        (_, Some(_)) => format!("      left out: {count} of {all} blocks, {which}\n"),
        (_, None) => format!("      {count} of {all} blocks, {which}, count: too few others remain\n"),
    }
}
