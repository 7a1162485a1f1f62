//! Finds the highest rate at which a server keeps its limits, with the search of `scruple_core::knee`.

use super::{
    Arrivals, Ended, LATE, Latencies, LoadError, LoadProgress, LoadResult, Pace, Plan, RunPart, Session,
    Target, TurnEvent, WarmUp,
};
use scruple_core::knee::{
    Knee, KneeInterval, KneeSearch, LimitCount, Measure, Measurement, Next, RateFigures, RateLimit,
    RateOutcome, Slo, Tally,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The result of a search, with its measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The highest sustainable rate, as an interval.
    pub found: KneeInterval,
    /// The results of the measurements, added up by rate.
    pub tallies: Vec<Tally>,
    /// The measurements, in the order in which they were taken.
    pub points: Vec<RatePoint>,
    /// Whether the user interrupted the search.
    pub interrupted: bool,
    /// How late the generator may be with a request without counting as late.
    pub lateness: Duration,
}

/// One measurement of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePoint {
    /// The requested rate, in requests per second.
    pub rate: f64,
    /// The outcome.
    pub outcome: RateOutcome,
    /// The text of each limit that was broken.
    pub broken: Vec<String>,
    /// The response times from which the outcome follows: those of the parts in which the generator was punctual.
    pub response: Latencies,
    /// The share of requests with which the generator was late, or of the time in which a thread of ordinary priority
    /// was, if that is more; 0 if the server is on another machine.
    pub late: f64,
    /// The complete result of the load.
    pub load: LoadResult,
}

/// The smallest number of requests of a measurement, unless `LONGEST_MEASUREMENT` prevents it.
const FEWEST: f64 = 2000.0;

/// The largest factor by which a measurement is longer than the plan's duration at low rates: with the default
/// duration, half a minute, which contains 2000 requests from 67/s on. With half as many requests, the share beyond
/// p99 would be too uncertain for an interval.
pub const LONGEST_MEASUREMENT: f64 = 30.0;

/// The number of stretches into which a measurement is divided for counting. They are long compared with groups of
/// slow requests.
const STRETCHES: usize = 8;

/// A measurement is void if a smaller share of its parts is left without those in which the generator was too late.
const ENOUGH: f64 = 0.25;

/// The time that the kernel takes to wake a thread, which limits the generator's precision.
const PUNCTUAL: Duration = Duration::from_micros(200);

/// Searches the highest rate at which the server keeps `slo`. The plan determines everything but the rate. Its
/// duration is that of one measurement, which is longer where it would contain fewer than 2000 requests. After the
/// first, a measurement is taken only if it ends within `budget`, even if the server stops answering; otherwise the
/// search ends with the result so far.
///
/// # Errors
/// Fails if the server cannot be loaded, or no longer accepts connections.
pub fn capacity(
    target: &Target,
    plan: &Plan,
    slo: &Slo,
    search: KneeSearch,
    budget: Option<Duration>,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(f64, &LoadProgress),
) -> Result<Capacity, LoadError> {
    let arrivals = match plan.pace {
        Pace::Open { arrivals, .. } => arrivals,
        Pace::Closed => Arrivals::Constant,
    };
    // The limit is fixed before the search, so that good and bad measurements become void equally often.
    let lateness = match slo.most_lateness() {
        most if most.is_finite() => Duration::from_nanos(most as u64).max(PUNCTUAL),
        _ => LATE,
    };
    let began = Instant::now();
    let mut knee = Knee::new(search, slo);
    let mut session = Session::new(target, plan)?;
    let mut points: Vec<RatePoint> = Vec::new();
    let found = loop {
        let rate = match knee.next() {
            Next::Found(found) => break found,
            Next::Measure(rate) => rate,
        };
        let step = Plan {
            pace: Pace::Open { rate, arrivals },
            duration: measurement(plan, rate),
            max_requests: None,
            warm_up: if points.is_empty() { plan.warm_up } else { WarmUp::Off },
            seed: plan.seed.wrapping_add(points.len() as u64),
            lateness,
            ..plan.clone()
        };
        let end = began.elapsed() + step.longest();
        if !points.is_empty() && budget.is_some_and(|budget| end > budget) {
            break knee.result_if_ended();
        }
        let mut on_event = |moment: TurnEvent<'_>| {
            if let TurnEvent::Progress(seen) = moment {
                progress(rate, seen);
            }
        };
        let load = match session.turn(&step, interrupted, &mut on_event) {
            Err(LoadError::Interrupted) if !points.is_empty() => break knee.result_if_ended(),
            loaded => loaded?,
        };
        // A part of a measurement does not count, but it is kept if there is nothing else to show.
        let is_part = load.ended == Ended::Interrupted;
        if is_part && (!points.is_empty() || load.counts.answered == 0) {
            break knee.result_if_ended();
        }
        // What delays the generator says nothing about a server on another machine.
        let late = if target.is_local() { share_of_late(&load, lateness) } else { 0.0 };
        let (mut measurement, broken, response) = judge(slo, rate, lateness, late, &load);
        if is_part {
            measurement.outcome = RateOutcome::Void;
        }
        let outcome = measurement.outcome;
        knee.report(measurement);
        points.push(RatePoint { rate, outcome, broken, response, late, load });
        if interrupted.load(Ordering::Relaxed) {
            break knee.result_if_ended();
        }
    };
    let interrupted = interrupted.load(Ordering::Relaxed);
    Ok(Capacity { found, tallies: knee.tallies().to_vec(), points, interrupted, lateness })
}

/// The length of a measurement at this rate: the plan's duration, or longer where it would contain fewer than 2000
/// requests.
pub fn measurement(plan: &Plan, rate: f64) -> Duration {
    let seconds = plan.duration.as_secs_f64();
    Duration::from_secs_f64((FEWEST / rate).clamp(seconds, seconds * LONGEST_MEASUREMENT))
}

/// The share of all requests with which the generator was late, or of the ticks of a thread of ordinary priority beside
/// it, if that is more: a generator with a real-time priority may be punctual although the server waits for a core. It
/// includes the requests of parts that are left out because of that.
fn share_of_late(load: &LoadResult, lateness: Duration) -> f64 {
    let share =
        |noticed: &Latencies| noticed.from(lateness.as_nanos() as u64) as f64 / noticed.count().max(1) as f64;
    share(&RunPart::join_parts(load.counted()).times.lateness).max(share(&load.tick_lateness))
}

/// The measurement, the text of each limit that was broken, and the response times that were judged. `late` is the share
/// of requests with which the generator was late, and `lateness` how late it may be.
fn judge(
    slo: &Slo,
    rate: f64,
    lateness: Duration,
    late: f64,
    load: &LoadResult,
) -> (Measurement, Vec<String>, Latencies) {
    let timely = |part: &&RunPart| part.times.lateness.max().unwrap_or(0) <= lateness.as_nanos() as u64;
    let parts: Vec<&RunPart> = load.counted().iter().filter(timely).collect();
    let whole = RunPart::join_parts(parts.iter().copied());
    let responses = &whole.times.response;
    let quantile = |q: f64| responses.quantile(q).map(|value| value as f64);
    let failed = whole.counts.failures.total() as f64;
    let seen = RateFigures {
        quantile: &quantile,
        mean: (responses.count() > 0).then(|| responses.sum() / responses.count() as f64),
        errors: failed / (whole.counts.answered as f64 + failed).max(1.0),
        behind: load.behind as f64 / load.span.max(1) as f64,
    };
    let broken: Vec<String> = slo.broken(&seen).into_iter().map(|limit| limit.text.clone()).collect();
    // Only faults of the generator make a measurement void. The failure of a server is a result.
    let void = load.is_void() || (parts.len() as f64) < load.counted().len() as f64 * ENOUGH;
    let counts = slo.limits.iter().map(|limit| {
        let stretches = parts.chunks(parts.len().div_ceil(STRETCHES).max(1));
        stretches.map(|parts| count(limit, parts)).collect()
    });
    let measurement = Measurement {
        rate,
        outcome: slo.outcome(&seen, void),
        kept_up: seen.kept_up(),
        counts: counts.collect(),
        late,
    };
    (measurement, broken, whole.times.response)
}

fn count(limit: &RateLimit, parts: &[&RunPart]) -> LimitCount {
    let of = |part: &RunPart| match limit.of {
        Measure::Errors => {
            let failed = part.counts.failures.total();
            LimitCount::of((part.counts.answered + failed) as f64, failed as f64)
        }
        Measure::Mean => of_responses(part, &|responses| responses.sum() / limit.below),
        Measure::Quantile(_) | Measure::Max => {
            of_responses(part, &|responses| responses.from(limit.below as u64) as f64)
        }
    };
    parts.iter().map(|part| of(part)).fold(LimitCount::default(), |sum, count| LimitCount {
        requests: sum.requests + count.requests,
        beyond: sum.beyond + count.beyond,
        least: sum.least + count.least,
    })
}

fn of_responses(part: &RunPart, beyond: &dyn Fn(&Latencies) -> f64) -> LimitCount {
    let requests = part.times.response.count() as f64;
    LimitCount {
        requests,
        beyond: beyond(&part.times.response),
        least: beyond(&part.carried.least_of(&part.times.response)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ConnectionOutcomes;
    use super::*;
    use crate::load::{Failures, GeneratorCost, Unanswered};

    /// Of four parts the generator was late in one, whose responses would break the limit.
    #[test]
    fn the_response_times_of_a_measurement_are_those_that_were_judged() {
        const MS: u64 = 1_000_000;
        let part = |number: i64, response: u64, late: u64| {
            let mut part = RunPart { from: number, to: number + 1, ..RunPart::default() };
            (part.counts.due, part.counts.answered) = (100, 100);
            part.times.response = Latencies::of([(response * MS, 100)]);
            part.times.lateness = Latencies::of([(late * MS, 100)]);
            part
        };
        let parts = vec![part(0, 2, 0), part(1, 2, 0), part(2, 200, 190), part(3, 2, 0)];
        let whole = RunPart::join_parts(&parts);
        let load = LoadResult {
            ended: Ended::Planned,
            started: (0, 0),
            span: 4,
            behind: 0,
            behind_most: 0,
            counts: whole.counts,
            times: whole.times,
            idle_failures: Failures::default(),
            connect: Latencies::default(),
            reconnects: 0,
            closings: 0,
            repeated: 0,
            connections: ConnectionOutcomes::default(),
            parts,
            warm_up: 0,
            stalls: Vec::new(),
            kinds: Vec::new(),
            slowest: Vec::new(),
            unfinished: 0,
            unanswered: Unanswered::default(),
            generator: GeneratorCost::default(),
            tick_lateness: Latencies::of([(0, 50), (20 * MS, 50)]),
            doubts: Vec::new(),
        };
        let slo = Slo::parse("p99<50ms").expect("valid");
        let lateness = Duration::from_millis(5);
        let late = share_of_late(&load, lateness);
        assert!((late - 0.5).abs() < 1e-9, "half of the ticks: {late}");
        let load = LoadResult { tick_lateness: Latencies::default(), ..load };
        let late = share_of_late(&load, lateness);
        let (measurement, broken, response) = judge(&slo, 100.0, lateness, late, &load);
        assert_eq!((measurement.outcome, broken.len()), (RateOutcome::Good, 0));
        assert!((measurement.late - 0.25).abs() < 1e-9, "{measurement:?}");
        assert!(response.quantile(0.99) < Some(3 * MS), "{:?}", response.quantile(0.99));
        assert_eq!(response.count(), 300);
    }
}
