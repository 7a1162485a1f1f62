//! The result of a load.

use super::doubt::Doubt;
use super::failure::{Failure, Failures};
use super::generator_delays::Delayed;
use super::latencies::Latencies;
use super::plan::RowOf;
use super::stalls::Stall;
use serde::{Deserialize, Serialize};

/// The result of a load, without the warm-up unless stated otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadResult {
    /// How the load ended.
    pub ended: Ended,
    /// When the first measured request could be due, in nanoseconds on the monotonic clock, and since 1970.
    pub started: (u64, u64),
    /// The length of the time in which requests were due, in nanoseconds.
    pub span: u64,
    /// How far the answers were behind the requests at the end of the span, in nanoseconds, without the delays of the
    /// generator; 0 if the server kept up.
    pub behind: u64,
    /// The most that `behind` can have been, because of the delays of the generator.
    pub behind_most: u64,
    /// The numbers of requests and their outcomes.
    pub counts: RequestCounts,
    /// How long requests took.
    pub times: RequestTimes,
    /// Failures of connections while no request waited for them.
    pub idle_failures: Failures,
    /// Times from the start of a connection until it could be used, including TLS, for all connections of the run.
    pub connect: Latencies,
    /// The number of times that a connection was made again.
    pub reconnects: u64,
    /// The number of times that the server closed a connection after an answer.
    pub closings: u64,
    /// The number of times that a request was sent again, because the server did not process it.
    pub repeated: u64,
    /// The numbers of connections with and without answers, including the warm-up.
    pub connections: ConnectionOutcomes,
    /// The parts of the run, including the warm-up.
    pub parts: Vec<RunPart>,
    /// The number of parts at the beginning that count as warm-up.
    pub warm_up: usize,
    /// The times without answers although requests were due, including the warm-up.
    pub stalls: Vec<Stall>,
    /// The figures of each row of the plan, including the warm-up.
    pub kinds: Vec<RequestKind>,
    /// The slowest requests, the slowest first.
    pub slowest: Vec<SlowRequest>,
    /// What the generator consumed.
    pub generator: GeneratorCost,
    /// How late a thread of ordinary priority noticed each millisecond of the load, if the generator had a real-time
    /// priority or cores of its own; otherwise empty.
    pub tick_lateness: Latencies,
    /// The number of sessions in progress at the end.
    pub unfinished: u64,
    /// The requests that had no answer when the load was interrupted.
    pub unanswered: Unanswered,
    /// The doubts about the figures.
    pub doubts: Vec<Doubt>,
}

/// How a load ended. The order is that of severity: of several threads' endings the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The load ended as planned.
    Planned,
    /// The user interrupted. Requests in flight do not count.
    Interrupted,
    /// A limit that aborts the load was exceeded. Requests in flight do not count.
    Aborted,
    /// No connection could be opened for two seconds.
    ServerGone,
}

/// When a slow request was due, sent and done, in nanoseconds since the first request was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlowRequest {
    /// The response time: from due to done.
    pub response: u64,
    /// When the request was due.
    pub intended: u64,
    /// When the request was sent.
    pub sent: u64,
    /// When the request was done.
    pub done: u64,
}

/// Requests without an answer when a load is interrupted. They count neither as answered nor as failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unanswered {
    /// Their number.
    pub requests: u64,
    /// How long the first of them had been due, in nanoseconds.
    pub longest: u64,
}

impl Unanswered {
    /// Adds a request that had been due for this many nanoseconds.
    pub(crate) fn add(&mut self, waited: u64) {
        self.requests += 1;
        self.longest = self.longest.max(waited);
    }

    pub(crate) fn join(self, other: Unanswered) -> Unanswered {
        Unanswered { requests: self.requests + other.requests, longest: self.longest.max(other.longest) }
    }
}

/// How the requests went by connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOutcomes {
    /// The number of connections on which the server answered.
    pub answering: u32,
    /// The number of connections on which it answered nothing, and requests timed out.
    pub mute: u32,
    /// The number of requests that timed out on the latter.
    pub mute_timeouts: u64,
}

impl ConnectionOutcomes {
    /// Adds the connections of another thread.
    pub(crate) fn add(&mut self, more: ConnectionOutcomes) {
        self.answering += more.answering;
        self.mute += more.mute;
        self.mute_timeouts += more.mute_timeouts;
    }
}

/// The numbers of requests and their outcomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestCounts {
    /// The number of requests that were due: answered, failed or interrupted.
    pub due: u64,
    /// The number of good answers.
    pub answered: u64,
    /// Failed requests by class.
    pub failures: Failures,
    /// The number of bytes of content received.
    pub bytes: u64,
    /// The largest number of requests that waited for a free connection at one time.
    pub backlog: u64,
}

impl RequestCounts {
    /// Adds the requests of another time.
    pub fn add(&mut self, other: &RequestCounts) {
        self.due += other.due;
        self.answered += other.answered;
        self.failures.add(&other.failures);
        self.bytes += other.bytes;
        self.backlog = self.backlog.max(other.backlog);
    }
}

/// How long requests took, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestTimes {
    /// From when a request was due to its answer. In a closed loop it is due when the connection becomes free.
    pub response: Latencies,
    /// From the sending of a request to its answer.
    pub service: Latencies,
    /// From when a request was due to its sending; empty in a closed loop.
    pub lag: Latencies,
    /// The part of `lag` that the generator caused: from when a request was due to when the generator noticed it.
    pub lateness: Latencies,
    /// The responses that contain a delay of the generator.
    pub delayed: Delayed,
}

impl RequestTimes {
    /// The requests of several times as one.
    fn merge_times<'a>(all: impl Iterator<Item = &'a RequestTimes> + Clone) -> RequestTimes {
        let sum = |of: fn(&RequestTimes) -> &Latencies| Latencies::merge_all(all.clone().map(of));
        let mut delayed = Delayed::default();
        all.clone().for_each(|times| delayed.add(&times.delayed));
        RequestTimes {
            response: sum(|times| &times.response),
            service: sum(|times| &times.service),
            lag: sum(|times| &times.lag),
            lateness: sum(|times| &times.lateness),
            delayed,
        }
    }

    /// Adds the requests of another time.
    pub fn add(&mut self, other: &RequestTimes) {
        self.response += &other.response;
        self.service += &other.service;
        self.lag += &other.lag;
        self.lateness += &other.lateness;
        self.delayed.add(&other.delayed);
    }
}

/// A part of the run: the requests that were due in it, with their outcome, whenever they were answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPart {
    /// The start in nanoseconds since the start of the measured span; negative in the warm-up before it.
    pub from: i64,
    /// The end in nanoseconds since the start of the measured span.
    pub to: i64,
    /// The numbers of requests that were due in the part, and their outcomes.
    pub counts: RequestCounts,
    /// The number of good answers that arrived in the time of this part, whenever their requests were due.
    pub arrived: u64,
    /// How long the requests that were due in the part took. If the generator was late by more than the plan allows,
    /// the delayed ones are those in `carried`.
    pub times: RequestTimes,
    /// The responses that may be longer because of a delay, their own or that of requests in flight at the same time.
    pub carried: Delayed,
    /// The figures of each row of the plan; empty if there is only one row, or more than 64.
    pub rows: Vec<PartRow>,
}

/// The figures of one row of the plan in a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartRow {
    /// The number of good answers; for a session, of completed sessions.
    pub answered: u64,
    /// Failed requests by class; for a session, the failures that ended it.
    pub failures: Failures,
    /// Times from due to answered; for a session, from when its first request was due to its last answer.
    pub response: Latencies,
    /// The responses that contain a delay of the generator.
    pub delayed: Delayed,
}

impl PartRow {
    fn add(&mut self, other: &PartRow) {
        self.answered += other.answered;
        self.failures.add(&other.failures);
        self.response += &other.response;
        self.delayed.add(&other.delayed);
    }
}

impl RunPart {
    /// The part restricted to one row of the plan.
    pub fn row(&self, index: usize) -> RunPart {
        let row = self.rows.get(index).cloned().unwrap_or_default();
        RunPart {
            from: self.from,
            to: self.to,
            counts: RequestCounts {
                due: row.answered + row.failures.total(),
                answered: row.answered,
                failures: row.failures,
                ..RequestCounts::default()
            },
            arrived: row.answered,
            times: RequestTimes { response: row.response, delayed: row.delayed, ..RequestTimes::default() },
            ..RunPart::default()
        }
    }

    /// The responses without the delays of the generator: the least that they can have been.
    pub fn least(&self) -> Latencies {
        self.times.delayed.least_of(&self.times.response)
    }

    /// Joins several parts to one, from the start of the first to the end of the last.
    pub fn join_parts<'a>(parts: impl IntoIterator<Item = &'a RunPart>) -> RunPart {
        let parts: Vec<&RunPart> = parts.into_iter().collect();
        let Some((first, more)) = parts.split_first() else { return RunPart::default() };
        let mut sum = RunPart {
            times: RequestTimes::merge_times(parts.iter().map(|part| &part.times)),
            ..(*first).clone()
        };
        for part in more {
            sum.to = part.to;
            sum.counts.add(&part.counts);
            sum.arrived += part.arrived;
            sum.carried.add(&part.carried);
            sum.rows.iter_mut().zip(&part.rows).for_each(|(sum, more)| sum.add(more));
        }
        sum
    }

    /// The length of the part in nanoseconds.
    pub fn span(&self) -> u64 {
        (self.to - self.from).max(0) as u64
    }
}

/// The figures of one row of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestKind {
    /// The name of the row.
    pub name: String,
    /// What the row covers.
    pub of: RowOf,
    /// The number of good answers.
    pub answered: u64,
    /// Failed requests by class.
    pub failures: Failures,
    /// Times from the sending to the answer; `None` unless there are two to 64 rows.
    pub service: Option<Latencies>,
}

/// What the generator's threads consumed while requests were sent and answered, summed over the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorCost {
    /// The number of threads.
    pub threads: u32,
    /// The time from the first due request to the last answer, in nanoseconds: the longest of any thread.
    pub elapsed: u64,
    /// Processor time in user mode, in nanoseconds.
    pub user: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system: u64,
    /// The time in which threads were ready but waited for a core, in nanoseconds.
    pub waited: u64,
    /// How often a thread was preempted.
    pub preempted: u64,
    /// The number of requests that were handled, including the warm-up and failures.
    pub requests: u64,
    /// The number of these that may have reached the server. A request does not reach it without a connection, or on
    /// one that the server was closing after an answer.
    pub reached: u64,
}

impl GeneratorCost {
    /// The share of the threads' time that they spent on a core, from 0 to 1.
    pub fn busy(&self) -> f64 {
        let available = self.elapsed as f64 * f64::from(self.threads);
        if available > 0.0 { (self.user + self.system) as f64 / available } else { 0.0 }
    }

    /// The share of the threads' time that they waited for a core, from 0 to 1.
    pub fn starved(&self) -> f64 {
        let available = self.elapsed as f64 * f64::from(self.threads);
        if available > 0.0 { self.waited as f64 / available } else { 0.0 }
    }
}

impl LoadResult {
    /// The number of connections that the server handles at a time, if it is smaller than that of the load: it answered
    /// on these and on no others, and requests timed out on the others only.
    pub fn connections_at_a_time(&self) -> Option<u32> {
        let ConnectionOutcomes { answering, mute, mute_timeouts } = self.connections;
        let timeouts: u64 = self.parts.iter().map(|part| part.counts.failures.of(Failure::TimedOut)).sum();
        (answering > 0 && mute > 0 && mute_timeouts == timeouts).then_some(answering)
    }

    /// Whether the figures may be used, because no doubt makes them void.
    pub fn valid(&self) -> bool {
        !self.doubts.iter().any(|doubt| doubt.voids)
    }

    /// Whether the generator made the latencies void. It does so for a turn as a whole or not at all, so that no part
    /// of a turn is left out because of its results.
    pub fn is_void(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.voids && doubt.code.starts_with("generator-"))
    }

    /// Whether the generator was later than the plan allows. Unless it changed the load, the responses are known between
    /// bounds.
    pub fn is_late(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.code == "generator-late")
    }

    /// The number of good answers that count for the rate. In an open loop these are the answers to all requests that
    /// were due in the span. In a closed loop they are those that arrived in it: not all connections have a request
    /// under way afterwards.
    pub fn answers_of_rate(&self) -> u64 {
        let is_open = self.times.lag.count() > 0 || self.behind > 0;
        if is_open { self.counts.answered } else { self.counted().iter().map(|part| part.arrived).sum() }
    }

    /// Good answers per second, over the span and the time by which the answers were behind at its end. If the generator
    /// was late, this is the most that the rate can have been.
    pub fn rate(&self) -> f64 {
        self.rate_over(self.span + self.behind)
    }

    /// The least that the rate can have been: as if all delays had been the server's.
    pub fn least_rate(&self) -> f64 {
        self.rate_over(self.span + self.behind_most)
    }

    fn rate_over(&self, time: u64) -> f64 {
        if self.span == 0 { 0.0 } else { self.answers_of_rate() as f64 * 1e9 / time as f64 }
    }

    /// The parts that count: all but the warm-up.
    pub fn counted(&self) -> &[RunPart] {
        &self.parts[self.warm_up.min(self.parts.len())..]
    }

    /// The parts of the warm-up.
    pub fn cut(&self) -> &[RunPart] {
        &self.parts[..self.warm_up.min(self.parts.len())]
    }

    /// The responses without the delays of the generator: the least that they can have been.
    pub fn least(&self) -> Latencies {
        self.times.delayed.least_of(&self.times.response)
    }
}
