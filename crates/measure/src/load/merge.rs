//! Merges the threads' records into the result of the run.

use super::doubt::Doubt;
use super::failure::Failures;
use super::generator_delays::DelayedRecord;
use super::latencies::Latencies;
use super::plan::{Plan, PlannedRow};
use super::result::{
    ConnectionOutcomes, Ended, GeneratorCost, LoadResult, PartRow, RequestCounts, RequestKind, RunPart,
    SlowRequest, Unanswered,
};
use super::thread_record::{KindPart, KindRecord, PartRecord, Recorder};
use super::{backlog, find_doubts, stalls, warm_up};
use scruple_stats::sorting;

/// The record of one thread.
pub(crate) struct ThreadResult {
    pub(crate) recorder: Recorder,
    pub(crate) ended: Ended,
    /// When that was, in nanoseconds on the monotonic clock.
    pub(crate) ended_at: u64,
    pub(crate) cost: GeneratorCost,
    pub(crate) connections: ConnectionOutcomes,
    pub(crate) priority_refused: bool,
    /// Whether more requests timed out than the plan allows.
    pub(crate) gave_up: bool,
    pub(crate) backlog_most: u64,
    /// The number of sessions in progress at the end.
    pub(crate) unfinished: u64,
    /// Whether data that may be used only once has run out.
    pub(crate) used_up: bool,
}

/// Adds up the threads' records and determines the warm-up. `started` is the start in nanoseconds on the monotonic
/// clock and since 1970; `aborted` is why the load was aborted, if it was.
pub(crate) fn merge(
    plan: &Plan,
    threads: Vec<ThreadResult>,
    started: (u64, u64),
    aborted: Option<String>,
) -> LoadResult {
    let recorders: Vec<&Recorder> = threads.iter().map(|thread| &thread.recorder).collect();
    let ended = threads.iter().map(|thread| thread.ended).max().unwrap_or(Ended::Planned);
    let ended = if aborted.is_some() { Ended::Aborted } else { ended };
    let used_up = threads.iter().any(|thread| thread.used_up);
    let often_late = often_late(plan, &recorders);
    let whole = ended == Ended::Planned && !used_up;
    // A closed loop sends nothing while its server does not answer, so its last request is not its end.
    let stopped = plan.rate().is_none() && matches!(ended, Ended::Interrupted | Ended::Aborted);
    let until = threads.iter().map(|thread| thread.ended_at as i64 - started.0 as i64).max();
    let until = until.filter(|_| stopped);
    let mut parts = parts(plan, &recorders, started.0, (whole, until), often_late);
    if plan.rate().is_none() {
        include_late_answers(plan, &mut parts, last_done(&recorders) as i64 - started.0 as i64);
    }
    let detectors: Vec<_> = recorders.iter().map(|recorder| &recorder.stall_detector).collect();
    let stalls = stalls::stalls(&detectors, started.0);
    let cut = warm_up::of(plan, &parts, &stalls);
    let counted = RunPart::join_parts(&parts[cut..]);
    let mut result = LoadResult {
        ended,
        started,
        span: counted.span().max(1),
        behind: 0,
        behind_most: 0,
        times: counted.times,
        counts: RequestCounts {
            backlog: threads.iter().map(|thread| thread.backlog_most).sum(),
            ..counted.counts
        },
        idle_failures: Failures::default(),
        connect: Latencies::default(),
        reconnects: recorders.iter().map(|recorder| recorder.reconnects).sum(),
        closings: recorders.iter().map(|recorder| recorder.closings).sum(),
        repeated: recorders.iter().map(|recorder| recorder.repeated).sum(),
        connections: ConnectionOutcomes::default(),
        warm_up: cut,
        stalls,
        kinds: kinds(plan, &recorders.iter().map(|r| r.kinds.as_slice()).collect::<Vec<_>>()),
        slowest: slowest(&recorders, started.0),
        generator: cost(&threads),
        tick_lateness: Latencies::default(),
        unfinished: threads.iter().map(|thread| thread.unfinished).sum(),
        unanswered: recorders.iter().map(|r| r.unanswered).fold(Unanswered::default(), Unanswered::join),
        doubts: Vec::new(),
        parts,
    };
    threads.iter().for_each(|thread| result.connections.add(thread.connections));
    for recorder in &recorders {
        result.connect += &recorder.connect.latencies();
        result.idle_failures.add(&recorder.idle_failures);
    }
    if plan.rate().is_some() {
        let last = last_done(&recorders) as i64 - started.0 as i64;
        let behind = backlog::backlog_growth(result.counted(), last);
        let stalled = backlog::unusual_stalls(&result.stalls, result.counted());
        result.behind = if stalled < behind { behind } else { 0 };
        result.behind_most = backlog::most_behind(result.behind, &result.times, result.counted(), last);
    }
    let refused = threads.iter().any(|thread| thread.priority_refused);
    result.doubts = find_doubts::doubts(plan, &result);
    result.doubts.extend(refused.then(Doubt::priority_refused));
    result.doubts.extend(used_up.then(Doubt::used_up));
    result.doubts.extend(aborted.map(|why| Doubt::aborted(&why)));
    result
}

/// When the last request was answered or given up, in nanoseconds on the monotonic clock.
fn last_done(recorders: &[&Recorder]) -> u64 {
    recorders.iter().map(|recorder| recorder.last_done).max().unwrap_or(0)
}

/// Extends the last part of a closed loop to the last answer if fewer answers arrived in the parts than requests can be
/// under way: the rate cannot be read from so few. Of other loops, answers after the last part do not count for the
/// rate, because connections are idle by then.
fn include_late_answers(plan: &Plan, parts: &mut [RunPart], last_done: i64) {
    let arrived: u64 = parts.iter().map(|part| part.arrived).sum();
    let answered: u64 = parts.iter().map(|part| part.counts.answered).sum();
    if let Some(last) = parts.last_mut()
        && arrived < u64::from(plan.connections) * u64::from(plan.streams)
    {
        last.arrived += answered.saturating_sub(arrived);
        last.to = last.to.max(last_done);
    }
}

/// Whether the generator was late by more than the plan allows. Then even a request that was sent on time may have
/// waited for several that were not.
fn often_late(plan: &Plan, recorders: &[&Recorder]) -> bool {
    let mut lateness = Latencies::default();
    let parts = recorders.iter().flat_map(|recorder| &recorder.parts);
    parts.filter_map(|part| part.open.as_ref()).for_each(|o| lateness += &o.lateness.latencies());
    lateness.quantile(0.99).is_some_and(|late| u128::from(late) > plan.lateness.as_nanos())
}

/// The parts in order of time. Their limits are those of the plan; but if only the number of requests ends the run, a
/// part is the time in which its share of them was sent. `until` is when a closed loop was stopped, after `start`.
fn parts(
    plan: &Plan,
    recorders: &[&Recorder],
    start: u64,
    (whole, until): (bool, Option<i64>),
    often_late: bool,
) -> Vec<RunPart> {
    // Users may have sent everything before the end.
    let by_clock = plan.rate().is_some() && plan.scenario.is_none() || plan.max_requests.is_none();
    let indices = 0..=plan.parts as usize;
    let mut parts: Vec<RunPart> = indices.map(|index| part(index, recorders, start, often_late)).collect();
    let (span, of) = (plan.span() as i64, i64::from(plan.parts));
    if by_clock {
        for (index, part) in (0..).zip(parts.iter_mut().skip(1)) {
            (part.from, part.to) = (span * index / of, span * (index + 1) / of);
        }
        (parts[0].from, parts[0].to) = (-(plan.warm_up_before() as i64), 0);
    }
    // A run that ended early has only the parts that it reached.
    let until = until.filter(|_| by_clock);
    let reached = |part: &RunPart| part.counts.due > 0 || until.is_some_and(|until| part.from < until);
    let used = match by_clock && whole {
        true => parts.len(),
        false => parts.iter().rposition(reached).map_or(0, |last| last + 1),
    };
    parts.truncate(used);
    if parts.first().is_some_and(|part| part.counts.due == 0) {
        parts.remove(0);
    }
    if let Some((last, until)) = parts.last_mut().zip(until) {
        last.to = last.to.min(until).max(last.from + 1);
    } else if !by_clock || !whole {
        close_gaps(&mut parts, by_clock, recorders, start);
    }
    parts
}

fn part(index: usize, recorders: &[&Recorder], start: u64, often_late: bool) -> RunPart {
    let records: Vec<&PartRecord> = recorders.iter().map(|recorder| &recorder.parts[index]).collect();
    let relative = |time: u64| time as i64 - start as i64;
    let spans: Vec<_> = records.iter().filter_map(|record| record.span).collect();
    let mut part = RunPart {
        from: spans.iter().map(|(first, _)| relative(*first)).min().unwrap_or(0),
        to: spans.iter().map(|(_, last)| relative(*last)).max().unwrap_or(0),
        ..RunPart::default()
    };
    let (mut delayed, mut carried) = (DelayedRecord::default(), DelayedRecord::default());
    for record in records {
        part.counts.due += record.due;
        part.counts.answered += record.answered;
        part.arrived += record.arrived;
        part.counts.backlog += record.backlog;
        part.counts.failures.add(&record.failures);
        part.counts.bytes += record.bytes;
        part.times.response += &record.response.latencies();
        delayed.add(&record.delayed);
        carried.add(&record.carried);
        part.times.service += &record.service.latencies();
        if let Some(open) = &record.open {
            part.times.lag += &open.lag.latencies();
            part.times.lateness += &open.lateness.latencies();
        }
    }
    part.rows = rows(index, recorders, often_late);
    part.carried = carried.delayed();
    part.times.delayed = if often_late { part.carried.clone() } else { delayed.delayed() };
    part
}

/// What each row of the plan contributes to a part.
fn rows(index: usize, recorders: &[&Recorder], often_late: bool) -> Vec<PartRow> {
    let all = recorders.first().map_or(0, |recorder| recorder.kinds.len());
    let row = |row: usize| {
        let mut sum = KindPart::default();
        for part in recorders.iter().map(|recorder| recorder.kinds[row].parts.get(index)) {
            let part = part?;
            sum.answered += part.answered;
            sum.failures.add(&part.failures);
            sum.response.add(&part.response);
            sum.delayed.add(if often_late { &part.carried } else { &part.delayed });
        }
        Some(PartRow {
            answered: sum.answered,
            failures: sum.failures,
            response: sum.response.latencies(),
            delayed: sum.delayed.delayed(),
        })
    };
    (0..all).map_while(row).collect()
}

/// Extends each part to the start of the next; the last part is extended by one mean gap between its requests.
fn close_gaps(parts: &mut Vec<RunPart>, by_clock: bool, recorders: &[&Recorder], start: u64) {
    if !by_clock {
        parts.retain(|part| part.counts.due > 0);
        for index in 1..parts.len() {
            parts[index - 1].to = parts[index].from;
        }
    }
    let due = recorders
        .iter()
        .flat_map(|r| r.parts.iter().filter_map(|part| part.span))
        .map(|(_, last)| last)
        .max();
    if let (Some(last), Some(due)) = (parts.last_mut(), due) {
        let gaps = (last.counts.due.max(2) - 1) as f64;
        let length = (due as i64 - start as i64 - last.from).max(0) as f64;
        last.to = last.from + (length * last.counts.due as f64 / gaps).max(1.0) as i64;
    }
}

fn kinds(plan: &Plan, records: &[&[KindRecord]]) -> Vec<RequestKind> {
    let kind = |(index, row): (usize, PlannedRow)| {
        let mut kind = RequestKind {
            name: row.name,
            of: row.of,
            answered: 0,
            failures: Failures::default(),
            service: None,
        };
        for record in records.iter().filter_map(|thread| thread.get(index)) {
            kind.answered += record.answered;
            kind.failures.add(&record.failures);
            if let Some(service) = &record.service {
                *kind.service.get_or_insert_default() += &service.latencies();
            }
        }
        kind
    };
    plan.rows().into_iter().enumerate().map(kind).collect()
}

fn slowest(recorders: &[&Recorder], start: u64) -> Vec<SlowRequest> {
    let all = recorders.iter().flat_map(|recorder| recorder.slowest.iter());
    let mut all: Vec<SlowRequest> = all
        .map(|slow| SlowRequest {
            response: slow.0.response,
            intended: slow.0.intended - start.min(slow.0.intended),
            sent: slow.0.sent - start.min(slow.0.sent),
            done: slow.0.done - start.min(slow.0.done),
        })
        .collect();
    sorting::by(&mut all, |left, right| right.cmp(left));
    all
}

fn cost(threads: &[ThreadResult]) -> GeneratorCost {
    let mut sum = GeneratorCost { threads: threads.len() as u32, ..GeneratorCost::default() };
    for cost in threads.iter().map(|thread| &thread.cost) {
        sum.elapsed = sum.elapsed.max(cost.elapsed);
        sum.user += cost.user;
        sum.system += cost.system;
        sum.waited += cost.waited;
        sum.preempted += cost.preempted;
        sum.requests += cost.requests;
        sum.reached += cost.reached;
    }
    sum
}
