//! The result of a run.

use super::delayed::Delayed;
use super::doubt::Doubt;
use super::failure::Failures;
use super::latencies::{Buckets, Latencies};
use super::plan::RowOf;
use super::record::Slow;
use super::shared::Ended;
use super::stalls::Stall;
use serde::{Deserialize, Serialize};

/// The result of a run, without the warm-up unless stated otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadResult {
    /// How it ended.
    pub ended: Ended,
    /// When the first measured request could be due: nanoseconds on the monotonic clock, and since 1970.
    pub started: (u64, u64),
    /// The span in which requests were due, in nanoseconds.
    pub span: u64,
    /// How far the answers were behind the requests at its end, in nanoseconds; 0 where the server kept up.
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
    /// From the time a request was due to its answer. In a closed loop it is due when the connection becomes free.
    pub response: Latencies,
    /// From the sending to the answer.
    pub service: Latencies,
    /// From the time a request was due to its sending; empty in a closed loop.
    pub lag: Latencies,
    /// The part of the lag that the generator caused: from due to noticed; empty in a closed loop.
    pub lateness: Latencies,
    /// The responses that contain a delay of the generator.
    pub delayed: Delayed,
    /// From the start of a connection until it could be used, including TLS; all connections of the run.
    pub connect: Latencies,
    /// The most requests that waited for a free connection at one time.
    pub backlog: u64,
    /// Connections that were made again.
    pub reconnects: u64,
    /// The parts of the run, including the warm-up.
    pub parts: Vec<Part>,
    /// How many of the first parts count as warm-up.
    pub warm_up: usize,
    /// Times without answers although something was due, including the warm-up.
    pub stalls: Vec<Stall>,
    /// The figures of each kind of request, including the warm-up.
    pub kinds: Vec<Kind>,
    /// The slowest requests, the slowest first.
    pub slowest: Vec<Slow>,
    /// What the generator itself consumed.
    pub generator: GeneratorCost,
    /// Sessions in progress at the end.
    pub unfinished: u64,
    /// The doubts about the figures.
    pub doubts: Vec<Doubt>,
}

/// A part of the run: what was due in it, and its outcome, whenever it was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Its start in nanoseconds since the start of the measured span; negative in the warm-up before it.
    pub from: i64,
    /// Its end.
    pub to: i64,
    /// Requests that were due.
    pub due: u64,
    /// Good answers to them.
    pub answered: u64,
    /// Good answers that arrived in its time, whenever they were due.
    pub came: u64,
    /// Failures by class.
    pub failures: Failures,
    /// Bytes of content received.
    pub bytes: u64,
    /// The largest backlog.
    pub backlog: u64,
    /// From due to answered.
    pub response: Buckets,
    /// From sent to answered.
    pub service: Buckets,
    /// From due to sent.
    pub lag: Buckets,
    /// From due to noticed.
    pub lateness: Buckets,
    /// The responses that contain a delay of the generator.
    pub delayed: Delayed,
    /// The share of each row of the plan; empty where there is only one row, or more than 64.
    pub rows: Vec<PartRow>,
}

/// A row of the plan in a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartRow {
    /// Good answers; for a session, completed sessions.
    pub answered: u64,
    /// Failures by class; for a session, those that ended it.
    pub failures: Failures,
    /// From due to answered; for a session, from when its first request was due to its last answer.
    pub response: Buckets,
    /// The responses that contain a delay of the generator.
    pub delayed: Delayed,
}

impl PartRow {
    fn add(&mut self, other: &PartRow) {
        self.answered += other.answered;
        self.failures.add(&other.failures);
        self.response.add(&other.response);
        self.delayed.add(&other.delayed);
    }
}

impl Part {
    /// The part restricted to one row of the plan.
    pub fn row(&self, index: usize) -> Part {
        let row = self.rows.get(index).cloned().unwrap_or_default();
        Part {
            from: self.from,
            to: self.to,
            due: row.answered + row.failures.total(),
            answered: row.answered,
            came: row.answered,
            failures: row.failures,
            response: row.response,
            delayed: row.delayed,
            ..Part::default()
        }
    }

    /// The responses without the delays of the generator: the least that they can have been.
    pub fn least(&self) -> Buckets {
        self.delayed.least_of(&self.response)
    }

    /// Several parts as one, from the start of the first to the end of the last.
    pub fn together<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Part {
        let mut whole: Option<Part> = None;
        for part in parts {
            let Some(sum) = &mut whole else {
                whole = Some(part.clone());
                continue;
            };
            sum.to = part.to;
            sum.due += part.due;
            sum.answered += part.answered;
            sum.came += part.came;
            sum.failures.add(&part.failures);
            sum.bytes += part.bytes;
            sum.backlog = sum.backlog.max(part.backlog);
            sum.response.add(&part.response);
            sum.service.add(&part.service);
            sum.lag.add(&part.lag);
            sum.lateness.add(&part.lateness);
            sum.delayed.add(&part.delayed);
            sum.rows.iter_mut().zip(&part.rows).for_each(|(sum, more)| sum.add(more));
        }
        whole.unwrap_or_default()
    }

    /// Its length in nanoseconds.
    pub fn span(&self) -> u64 {
        (self.to - self.from).max(0) as u64
    }
}

/// The figures of one row of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// What it covers.
    pub of: RowOf,
    /// Good answers.
    pub answered: u64,
    /// Failures by class.
    pub failures: Failures,
    /// From the sending to the answer; only where there are two to 64 kinds.
    pub service: Option<Latencies>,
}

/// The consumption of the generator's threads while requests were sent and answered, summed over the threads.
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
    /// How often it was made to give up its core.
    pub preempted: u64,
    /// Requests that it handled, including warm-up and failures.
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
    /// Whether the figures may be used: no doubt makes them void.
    pub fn valid(&self) -> bool {
        !self.doubts.iter().any(|doubt| doubt.voids)
    }

    /// Good answers per second, over the span and the time by which the answers were behind at its end.
    pub fn rate(&self) -> f64 {
        if self.span == 0 { 0.0 } else { self.answered as f64 * 1e9 / (self.span + self.behind) as f64 }
    }

    /// The parts that count: all but the warm-up.
    pub fn counted(&self) -> &[Part] {
        &self.parts[self.warm_up.min(self.parts.len())..]
    }

    /// The warm-up.
    pub fn cut(&self) -> &[Part] {
        &self.parts[..self.warm_up.min(self.parts.len())]
    }

    /// The responses without the delays of the generator: the least that they can have been.
    pub fn least(&self) -> Buckets {
        self.delayed.least_of(&self.response.buckets())
    }

    /// The share of the finished requests that failed, 0 to 1.
    pub fn failed_share(&self) -> f64 {
        let failed = self.failures.total();
        let all = self.answered + failed;
        if all == 0 { 0.0 } else { failed as f64 / all as f64 }
    }
}
