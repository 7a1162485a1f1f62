//! The highest rate at which a server keeps its promises: the search of `scruple_core::knee`, carried out.

use super::{Arrivals, LoadError, LoadResult, Pace, Plan, Progress, Target, run};
use scruple_core::knee::{Found, Knee, Next, Outcome, Search, Seen, Slo, Tally};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a search has found, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The interval of the highest sustainable rate.
    pub found: Found,
    /// The tallies, by rate.
    pub tallies: Vec<Tally>,
    /// Every measurement, in the order in which they were taken.
    pub points: Vec<Point>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The rate asked for, in requests per second.
    pub rate: f64,
    /// What was concluded.
    pub outcome: Outcome,
    /// The limits that were broken, as they were written.
    pub broken: Vec<String>,
    /// Everything that was seen.
    pub load: LoadResult,
}

/// A measurement takes at least so many requests.
const FEWEST: f64 = 2000.0;

/// And at most this many times the duration of the plan, however low the rate.
const LONGEST: f64 = 10.0;

/// Searches the highest rate at which the server keeps to `slo`. The plan gives everything but the rate; its duration is
/// that of one measurement, which is prolonged where it would hold fewer than 2000 requests.
///
/// # Errors
/// When the server cannot be loaded, or no longer.
pub fn capacity(
    target: &Target,
    plan: &Plan,
    slo: &Slo,
    search: Search,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(f64, &Progress),
) -> Result<Capacity, LoadError> {
    let arrivals = match plan.pace {
        Pace::Open { arrivals, .. } => arrivals,
        Pace::Closed => Arrivals::Constant,
    };
    let mut knee = Knee::new(search);
    let mut points = Vec::new();
    let found = loop {
        let rate = match knee.next() {
            Next::Found(found) => break found,
            Next::Measure(rate) => rate,
        };
        let seconds = plan.duration.as_secs_f64();
        let seconds = (FEWEST / rate).clamp(seconds, seconds * LONGEST);
        let step = Plan {
            pace: Pace::Open { rate, arrivals },
            duration: Duration::from_secs_f64(seconds),
            max_requests: None,
            ..plan.clone()
        };
        let load = run(target, &step, interrupted, &mut |seen| progress(rate, seen))?;
        if interrupted.load(Ordering::Relaxed) {
            break knee.so_far();
        }
        let (outcome, broken) = judge(slo, &load);
        knee.report(rate, outcome);
        points.push(Point { rate, outcome, broken, load });
    };
    let interrupted = interrupted.load(Ordering::Relaxed);
    Ok(Capacity { found, tallies: knee.tallies().to_vec(), points, interrupted })
}

fn judge(slo: &Slo, load: &LoadResult) -> (Outcome, Vec<String>) {
    let quantile = |q: f64| load.response.quantile(q).map(|value| value as f64);
    let behind = load.behind as f64 / load.span.max(1) as f64;
    let seen = Seen { quantile: &quantile, mean: load.response.mean(), errors: load.failed_share(), behind };
    let broken: Vec<String> = slo.broken(&seen).into_iter().map(|limit| limit.text.clone()).collect();
    // Only the generator's faults make a measurement void; a server that gives in has answered the question.
    let ours = load.doubts.iter().any(|doubt| doubt.voids && doubt.code.starts_with("generator-"));
    (slo.outcome(&seen, ours), broken)
}
