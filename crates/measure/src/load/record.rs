//! What one generator thread writes down, request by request, without allocating.

use super::latencies::histogram;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How a request can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The connection was refused.
    Refused,
    /// The connection could not be made for another reason: no route, no descriptor, no answer in time.
    Unconnected,
    /// TLS could not be agreed on, or broke.
    Tls,
    /// The connection was reset.
    Reset,
    /// The connection was closed before a byte of the answer came.
    ClosedEarly,
    /// The connection was closed in the middle of the answer.
    HalfResponse,
    /// What came is not HTTP.
    Garbage,
    /// No answer came in time.
    TimedOut,
    /// The answer has a bad status.
    BadStatus,
    /// The answer fails a check of the scenario.
    CheckFailed,
    /// It was due, but until the end no connection was free to send it on.
    Unsent,
}

impl Failure {
    /// Every class, in the order of reports.
    pub const ALL: [Failure; 11] = [
        Failure::Refused,
        Failure::Unconnected,
        Failure::Tls,
        Failure::Reset,
        Failure::ClosedEarly,
        Failure::HalfResponse,
        Failure::Garbage,
        Failure::TimedOut,
        Failure::BadStatus,
        Failure::CheckFailed,
        Failure::Unsent,
    ];

    /// Its name in JSON and thresholds.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Refused => "refused",
            Failure::Unconnected => "unconnected",
            Failure::Tls => "tls",
            Failure::Reset => "reset",
            Failure::ClosedEarly => "closed-early",
            Failure::HalfResponse => "half-response",
            Failure::Garbage => "garbage",
            Failure::TimedOut => "timed-out",
            Failure::BadStatus => "bad-status",
            Failure::CheckFailed => "check-failed",
            Failure::Unsent => "unsent",
        }
    }

    /// What it means, as a clause about requests.
    pub fn meaning(self) -> &'static str {
        match self {
            Failure::Refused => "the connection was refused",
            Failure::Unconnected => "the connection could not be made",
            Failure::Tls => "TLS failed",
            Failure::Reset => "the connection was reset",
            Failure::ClosedEarly => "closed without an answer",
            Failure::HalfResponse => "closed in the middle of an answer",
            Failure::Garbage => "the answer was not HTTP",
            Failure::TimedOut => "no answer in time",
            Failure::BadStatus => "an answer with a bad status",
            Failure::CheckFailed => "an answer that failed a check",
            Failure::Unsent => "due, but never sent: no connection was free",
        }
    }
}

/// Failed requests by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures([u64; Failure::ALL.len()]);

impl Failures {
    /// Those of one class.
    pub fn of(&self, class: Failure) -> u64 {
        self.0[class as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The classes that occurred.
    pub fn each(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        Failure::ALL.into_iter().map(|class| (class, self.of(class))).filter(|(_, count)| *count > 0)
    }

    /// Adds others.
    pub fn add(&mut self, other: &Failures) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// Adds so many of one class.
    pub fn record(&mut self, class: Failure, requests: u64) {
        self.0[class as usize] += requests;
    }

    pub(crate) fn count(&mut self, class: Failure) {
        self.record(class, 1);
    }
}

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) request: u32,
    pub(crate) slice: u8,
    pub(crate) intended: u64,
    pub(crate) sent: u64,
}

/// When a slow request was due, sent and done, in nanoseconds since the first request was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slow {
    /// From due to done.
    pub response: u64,
    /// Due.
    pub intended: u64,
    /// Sent.
    pub sent: u64,
    /// Done.
    pub done: u64,
}

/// Slices that the measured span is divided into; slice 0 is the warm-up before it.
pub(crate) const SLICES: u64 = 32;

/// How many of the slowest requests are kept by each thread.
const SLOWEST: usize = 1024;

/// Kinds of requests that get a distribution of their own.
pub(crate) const NAMED: usize = 64;

pub(crate) struct SliceRecord {
    pub(crate) response: Histogram<u32>,
    pub(crate) service: Histogram<u32>,
    pub(crate) open: Option<OpenRecord>,
    pub(crate) due: u64,
    pub(crate) answered: u64,
    pub(crate) failures: Failures,
    pub(crate) bytes: u64,
    pub(crate) backlog: u64,
    /// The first and the last time at which requests of it were due.
    pub(crate) span: Option<(u64, u64)>,
}

/// What only an open loop has.
pub(crate) struct OpenRecord {
    /// From due to sent.
    pub(crate) lag: Histogram<u32>,
    /// From due to noticed by the generator: its own lateness, without the wait for a free connection.
    pub(crate) lateness: Histogram<u32>,
}

/// What was recorded of one kind of request.
pub(crate) struct KindRecord {
    pub(crate) answered: u64,
    pub(crate) failures: Failures,
    pub(crate) service: Option<Histogram<u32>>,
}

pub(crate) struct Recorder {
    pub(crate) slices: Vec<SliceRecord>,
    pub(crate) kinds: Vec<KindRecord>,
    pub(crate) slowest: BinaryHeap<Reverse<Slow>>,
    pub(crate) connect: Histogram<u32>,
    pub(crate) reconnects: u64,
    /// When the last measured request was answered or given up.
    pub(crate) last_done: u64,
    /// Failures to connect while no request was waiting for the connection.
    pub(crate) idle_failures: Failures,
}

impl Recorder {
    pub(crate) fn new(kinds: usize, open: bool) -> Recorder {
        let slice = || SliceRecord {
            response: histogram(),
            service: histogram(),
            open: open.then(|| OpenRecord { lag: histogram(), lateness: histogram() }),
            due: 0,
            answered: 0,
            failures: Failures::default(),
            bytes: 0,
            backlog: 0,
            span: None,
        };
        let own = kinds > 1 && kinds <= NAMED;
        let kind = || KindRecord { answered: 0, failures: Failures::default(), service: own.then(histogram) };
        Recorder {
            slices: (0..=SLICES).map(|_| slice()).collect(),
            kinds: (0..kinds).map(|_| kind()).collect(),
            slowest: BinaryHeap::with_capacity(SLOWEST + 1),
            connect: histogram(),
            reconnects: 0,
            last_done: 0,
            idle_failures: Failures::default(),
        }
    }

    /// A request has become due; `noticed` is when the generator saw that.
    pub(crate) fn due(&mut self, slice: u8, intended: u64, noticed: u64, backlog: u64) {
        let record = &mut self.slices[usize::from(slice)];
        record.due += 1;
        record.backlog = record.backlog.max(backlog);
        let first = record.span.map_or(intended, |(first, _)| first);
        record.span = Some((first, intended));
        if let Some(open) = &mut record.open {
            open.lateness.saturating_record(noticed.saturating_sub(intended));
        }
    }

    /// A request has been sent.
    pub(crate) fn sent(&mut self, exchange: &Exchange) {
        if let Some(open) = &mut self.slices[usize::from(exchange.slice)].open {
            open.lag.saturating_record(exchange.sent.saturating_sub(exchange.intended));
        }
    }

    /// A good answer has arrived whole.
    pub(crate) fn answered(&mut self, exchange: &Exchange, done: u64, bytes: u64) {
        let record = &mut self.slices[usize::from(exchange.slice)];
        record.answered += 1;
        record.bytes += bytes;
        let kind = &mut self.kinds[exchange.request as usize];
        kind.answered += 1;
        if let Some(service) = &mut kind.service {
            service.saturating_record(done - exchange.sent);
        }
        self.latency(exchange, done, true);
    }

    /// A request has failed. Those that were waited for in vain count in the latencies with the time that was waited,
    /// so that giving up does not make a server look fast; those that failed at once do not count there at all.
    pub(crate) fn failed(&mut self, exchange: &Exchange, done: u64, class: Failure) {
        self.slices[usize::from(exchange.slice)].failures.count(class);
        self.kinds[exchange.request as usize].failures.count(class);
        match class {
            Failure::TimedOut => self.latency(exchange, done, true),
            Failure::Unsent => self.latency(exchange, done, false),
            _ => {}
        }
    }

    fn latency(&mut self, exchange: &Exchange, done: u64, was_sent: bool) {
        let record = &mut self.slices[usize::from(exchange.slice)];
        let response = done.saturating_sub(exchange.intended);
        record.response.saturating_record(response);
        if was_sent {
            record.service.saturating_record(done.saturating_sub(exchange.sent));
        }
        if exchange.slice == 0 {
            return;
        }
        self.last_done = self.last_done.max(done);
        let full = self.slowest.len() >= SLOWEST;
        if !full || self.slowest.peek().is_some_and(|Reverse(fastest)| response > fastest.response) {
            let slow = Slow { response, intended: exchange.intended, sent: exchange.sent, done };
            self.slowest.push(Reverse(slow));
            if full {
                self.slowest.pop();
            }
        }
    }

    /// Requests that were given up so far.
    pub(crate) fn timeouts(&self) -> u64 {
        self.slices.iter().map(|slice| slice.failures.of(Failure::TimedOut)).sum()
    }

    /// Everything counted so far: answers and failures.
    pub(crate) fn totals(&self) -> (u64, u64) {
        self.slices.iter().fold((0, 0), |(answered, failed), slice| {
            (answered + slice.answered, failed + slice.failures.total())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giving_up_counts_as_slow_and_failing_at_once_does_not_count_as_fast() {
        let mut recorder = Recorder::new(1, true);
        let exchange = Exchange { request: 0, slice: 1, intended: 1_000, sent: 2_000 };
        recorder.failed(&exchange, 5_001_000, Failure::TimedOut);
        recorder.failed(&exchange, 3_000, Failure::Reset);
        let slice = &recorder.slices[1];
        assert_eq!((slice.response.len(), slice.service.len(), slice.failures.total()), (1, 1, 2));
        assert!(slice.response.max() >= 4_990_000);
        recorder.failed(&exchange, 9_000, Failure::Unsent);
        assert_eq!((recorder.slices[1].response.len(), recorder.slices[1].service.len()), (2, 1));
    }

    #[test]
    fn the_slowest_are_kept() {
        let mut recorder = Recorder::new(1, false);
        for i in 0..5_000_u64 {
            let exchange = Exchange { request: 0, slice: 1, intended: 10, sent: 10 };
            recorder.answered(&exchange, 10 + (i * 7919) % 5_000, 1);
        }
        let fastest = recorder.slowest.iter().map(|Reverse(slow)| slow.response).min();
        assert_eq!((recorder.slowest.len(), fastest), (SLOWEST, Some(5_000 - SLOWEST as u64)));
    }
}
