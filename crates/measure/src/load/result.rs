//! What came of a run.

use super::backlog;
use super::generator::Generator;
use super::latencies::Latencies;
use super::plan::{Plan, WarmUp};
use super::record::{Failures, KindRecord, Recorder, SLICES, SliceRecord, Slow};
use super::shared::Ended;
use super::verdict::{self, Doubt};
use scruple_core::warm_up;
use serde::{Deserialize, Serialize};

/// What came of a run, without the warm-up unless it is said otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadResult {
    /// How it ended.
    pub ended: Ended,
    /// When the first measured request could be due: nanoseconds on the monotonic clock, and since 1970.
    pub started: (u64, u64),
    /// The span in which requests were due, in nanoseconds.
    pub span: u64,
    /// By how much the answers were behind the requests at its end, in nanoseconds; 0 where the server kept up.
    pub behind: u64,
    /// Requests that were due: answered, failed or interrupted.
    pub due: u64,
    /// Good answers.
    pub answered: u64,
    /// Failed requests by class.
    pub failures: Failures,
    /// Failures of connections while no request waited for them.
    pub idle_failures: Failures,
    /// Bytes of content received.
    pub bytes: u64,
    /// From the time a request was due to its answer. In a closed loop it is due when the connection has become free.
    pub response: Latencies,
    /// From the sending to the answer.
    pub service: Latencies,
    /// From the time a request was due to its sending; empty in a closed loop.
    pub lag: Latencies,
    /// The part of the lag that is the generator's own fault: from due to noticed; empty in a closed loop.
    pub lateness: Latencies,
    /// From the beginning of a connection until it could be used, TLS included; all connections of the run.
    pub connect: Latencies,
    /// The most requests that waited for a free connection at one time.
    pub backlog: u64,
    /// Connections that were made anew.
    pub reconnects: u64,
    /// The course of the run, the warm-up included.
    pub timeline: Vec<Slice>,
    /// How many of the first slices were taken for warm-up.
    pub warm_up: usize,
    /// The figures of each kind of request, the warm-up included.
    pub kinds: Vec<Kind>,
    /// The slowest requests, the slowest first.
    pub slowest: Vec<Slow>,
    /// What the generator itself consumed.
    pub generator: GeneratorCost,
    /// What is to be said against the figures.
    pub doubts: Vec<Doubt>,
}

/// A part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    /// Its beginning and end in nanoseconds since the start of the measured span; negative in the warm-up before it.
    pub from: i64,
    /// Its end.
    pub to: i64,
    /// Good answers to requests that were due in it.
    pub answered: u64,
    /// Failed requests that were due in it.
    pub failed: u64,
    /// The largest backlog in it.
    pub backlog: u64,
    /// The median response in nanoseconds.
    pub p50: Option<u64>,
    /// The 99th percentile of the response.
    pub p99: Option<u64>,
    /// The longest response.
    pub max: Option<u64>,
}

/// The figures of one kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Good answers.
    pub answered: u64,
    /// Failures by class.
    pub failures: Failures,
    /// From the sending to the answer; only where there are two to 64 kinds.
    pub service: Option<Latencies>,
}

/// What the generator's threads consumed while requests were sent and answered, all numbers summed over the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorCost {
    /// Threads.
    pub threads: u32,
    /// From the first due request to the last answer, in nanoseconds, of one thread.
    pub elapsed: u64,
    /// Processor time in its own code, in nanoseconds.
    pub user: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system: u64,
    /// Time ready but waiting for a core, in nanoseconds.
    pub waited: u64,
    /// Times it was made to give up its core.
    pub preempted: u64,
    /// Requests it handled, the warm-up and failures included.
    pub requests: u64,
}

impl GeneratorCost {
    /// The share of its threads' time that they spent on a core, 0 to 1.
    pub fn busy(&self) -> f64 {
        let available = self.elapsed as f64 * f64::from(self.threads);
        if available > 0.0 { (self.user + self.system) as f64 / available } else { 0.0 }
    }

    /// The share of its threads' time that they waited for a core, 0 to 1.
    pub fn starved(&self) -> f64 {
        let available = self.elapsed as f64 * f64::from(self.threads);
        if available > 0.0 { self.waited as f64 / available } else { 0.0 }
    }
}

impl LoadResult {
    /// Whether the figures may be used: nothing that is said against them makes them void.
    pub fn valid(&self) -> bool {
        !self.doubts.iter().any(|doubt| doubt.voids)
    }

    /// Good answers per second, over the span and whatever time the answers were behind at its end.
    pub fn rate(&self) -> f64 {
        if self.span == 0 { 0.0 } else { self.answered as f64 * 1e9 / (self.span + self.behind) as f64 }
    }

    /// The share of the finished requests that failed, 0 to 1.
    pub fn failed_share(&self) -> f64 {
        let failed = self.failures.total();
        let all = self.answered + failed;
        if all == 0 { 0.0 } else { failed as f64 / all as f64 }
    }
}

/// What one thread brings home.
pub(crate) struct ThreadResult<'a> {
    pub(crate) generator: Generator<'a>,
    pub(crate) ended: Ended,
    pub(crate) cost: GeneratorCost,
    pub(crate) priority_refused: bool,
}

struct Merged {
    /// Its place in the records.
    index: usize,
    slice: Slice,
    service_p50: Option<u64>,
    failures: Failures,
    bytes: u64,
    due: u64,
}

/// Adds up what the threads bring home, and takes off the warm-up.
pub(crate) fn merge(plan: &Plan, threads: &[ThreadResult<'_>], start: u64, since_1970: u64) -> LoadResult {
    let recorders: Vec<_> = threads.iter().map(|thread| &thread.generator.recorder).collect();
    let slices: Vec<Merged> =
        (0..=SLICES as usize).map(|index| merge_slice(index, &recorders, start)).collect();
    let used = slices.iter().rposition(|slice| slice.due > 0).map_or(0, |last| last + 1);
    let mut slices: Vec<Merged> = slices.into_iter().take(used).collect();
    close_gaps(&mut slices);
    let cut = warm_up_of(plan, &slices);
    let mut result = LoadResult {
        ended: threads.iter().map(|thread| thread.ended).max().unwrap_or(Ended::Planned),
        started: (start, since_1970),
        span: 0,
        behind: 0,
        due: 0,
        answered: 0,
        failures: Failures::default(),
        idle_failures: Failures::default(),
        bytes: 0,
        response: Latencies::new(),
        service: Latencies::new(),
        lag: Latencies::new(),
        lateness: Latencies::new(),
        connect: Latencies::new(),
        backlog: threads.iter().map(|thread| thread.generator.backlog_most).sum(),
        reconnects: recorders.iter().map(|recorder| recorder.reconnects).sum(),
        timeline: Vec::new(),
        warm_up: cut,
        kinds: kinds(plan, &recorders.iter().map(|r| r.kinds.as_slice()).collect::<Vec<_>>()),
        slowest: slowest(threads, start),
        generator: cost(threads),
        doubts: Vec::new(),
    };
    for slice in &slices[cut..] {
        result.due += slice.due;
        result.answered += slice.slice.answered;
        result.failures.add(&slice.failures);
        result.bytes += slice.bytes;
        for record in recorders.iter().map(|recorder| &recorder.slices[slice.index]) {
            result.response.add_slice(&record.response);
            result.service.add_slice(&record.service);
            if let Some(open) = &record.open {
                result.lag.add_slice(&open.lag);
                result.lateness.add_slice(&open.lateness);
            }
        }
    }
    if let (Some(first), Some(last)) = (slices.get(cut), slices.last()) {
        result.span = (last.slice.to - first.slice.from).max(1) as u64;
    }
    for recorder in &recorders {
        result.connect.add_slice(&recorder.connect);
        result.idle_failures.add(&recorder.idle_failures);
    }
    result.timeline = slices.into_iter().map(|slice| slice.slice).collect();
    if plan.rate().is_some() {
        let last = recorders.iter().map(|recorder| recorder.last_done).max().unwrap_or(0);
        result.behind = backlog::behind(&result.timeline[cut..], last as i64 - start as i64);
    }
    let refused = threads.iter().any(|thread| thread.priority_refused);
    result.doubts = verdict::doubts(plan, &result, refused);
    result
}

fn merge_slice(index: usize, recorders: &[&Recorder], start: u64) -> Merged {
    let records: Vec<&SliceRecord> = recorders.iter().map(|recorder| &recorder.slices[index]).collect();
    let mut merged = Merged {
        index,
        slice: Slice { from: 0, to: 0, answered: 0, failed: 0, backlog: 0, p50: None, p99: None, max: None },
        service_p50: None,
        failures: Failures::default(),
        bytes: 0,
        due: 0,
    };
    let (mut response, mut service) = (Latencies::new(), Latencies::new());
    let relative = |time: u64| time as i64 - start as i64;
    let spans: Vec<_> = records.iter().filter_map(|record| record.span).collect();
    merged.slice.from = spans.iter().map(|(first, _)| relative(*first)).min().unwrap_or(0);
    merged.slice.to = spans.iter().map(|(_, last)| relative(*last)).max().unwrap_or(0);
    for record in records {
        merged.due += record.due;
        merged.slice.answered += record.answered;
        merged.slice.backlog += record.backlog;
        merged.failures.add(&record.failures);
        merged.bytes += record.bytes;
        response.add_slice(&record.response);
        service.add_slice(&record.service);
    }
    merged.slice.failed = merged.failures.total();
    merged.slice.p50 = response.quantile(0.5);
    merged.slice.p99 = response.quantile(0.99);
    merged.slice.max = response.max();
    merged.service_p50 = service.quantile(0.5);
    merged
}

/// A slice lasts until the next begins, and the last as long as its requests at their own pace.
fn close_gaps(slices: &mut Vec<Merged>) {
    slices.retain(|slice| slice.due > 0);
    for index in 1..slices.len() {
        slices[index - 1].slice.to = slices[index].slice.from;
    }
    if let Some(last) = slices.last_mut() {
        let gaps = (last.due - 1).max(1) as f64;
        let length = (last.slice.to - last.slice.from) as f64;
        last.slice.to = last.slice.from + (length * last.due as f64 / gaps) as i64;
    }
}

fn warm_up_of(plan: &Plan, slices: &[Merged]) -> usize {
    let before = slices.iter().take_while(|slice| slice.slice.to <= 0).count();
    match plan.warm_up {
        WarmUp::Off => 0,
        WarmUp::For(_) => before,
        WarmUp::Auto => {
            let medians: Option<Vec<f64>> =
                slices.iter().map(|slice| slice.service_p50.map(|p50| (p50 as f64).max(1.0).ln())).collect();
            medians.map_or(0, |medians| warm_up::cut(&medians))
        }
    }
}

fn kinds(plan: &Plan, records: &[&[KindRecord]]) -> Vec<Kind> {
    let kind = |index: usize| {
        let mut kind = Kind {
            name: plan.requests[index].name.clone(),
            answered: 0,
            failures: Failures::default(),
            service: None,
        };
        for record in records.iter().filter_map(|thread| thread.get(index)) {
            kind.answered += record.answered;
            kind.failures.add(&record.failures);
            if let Some(service) = &record.service {
                kind.service.get_or_insert_default().add_slice(service);
            }
        }
        kind
    };
    (0..plan.requests.len()).map(kind).collect()
}

fn slowest(threads: &[ThreadResult<'_>], start: u64) -> Vec<Slow> {
    let all = threads.iter().flat_map(|thread| thread.generator.recorder.slowest.iter());
    let mut all: Vec<Slow> = all
        .map(|slow| Slow {
            response: slow.0.response,
            intended: slow.0.intended - start.min(slow.0.intended),
            sent: slow.0.sent - start.min(slow.0.sent),
            done: slow.0.done - start.min(slow.0.done),
        })
        .collect();
    all.sort_unstable_by(|left, right| right.cmp(left));
    all
}

fn cost(threads: &[ThreadResult<'_>]) -> GeneratorCost {
    let mut sum = GeneratorCost { threads: threads.len() as u32, ..GeneratorCost::default() };
    for cost in threads.iter().map(|thread| &thread.cost) {
        sum.elapsed = sum.elapsed.max(cost.elapsed);
        sum.user += cost.user;
        sum.system += cost.system;
        sum.waited += cost.waited;
        sum.preempted += cost.preempted;
        sum.requests += cost.requests;
    }
    sum
}
