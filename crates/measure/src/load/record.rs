//! What one generator thread writes down, request by request, without allocating.

use super::failure::{Failure, Failures};
use super::latencies::histogram;
use super::stalls::Listener;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) request: u32,
    pub(crate) part: u16,
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

/// How many of the slowest requests are kept by each thread.
const SLOWEST: usize = 1024;

/// Kinds of requests that get a distribution of their own.
pub(crate) const NAMED: usize = 64;

pub(crate) struct PartRecord {
    pub(crate) response: Histogram<u32>,
    pub(crate) service: Histogram<u32>,
    pub(crate) open: Option<OpenRecord>,
    pub(crate) due: u64,
    pub(crate) answered: u64,
    /// Good answers that came in its time, whenever they were due.
    pub(crate) came: u64,
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

/// The records of one turn.
pub(crate) struct Recorder {
    /// The first is what was due before the start.
    pub(crate) parts: Vec<PartRecord>,
    pub(crate) kinds: Vec<KindRecord>,
    /// Answers and failures.
    totals: (u64, u64),
    pub(crate) slowest: BinaryHeap<Reverse<Slow>>,
    /// What finds stalls.
    pub(crate) listener: Listener,
    pub(crate) connect: Histogram<u32>,
    pub(crate) reconnects: u64,
    /// When the last measured request was answered or given up.
    pub(crate) last_done: u64,
    /// Failures to connect while no request was waiting for the connection.
    pub(crate) idle_failures: Failures,
}

impl Recorder {
    pub(crate) fn new(kinds: usize, parts: u32, open: bool) -> Recorder {
        let part = || PartRecord {
            response: histogram(),
            service: histogram(),
            open: open.then(|| OpenRecord { lag: histogram(), lateness: histogram() }),
            due: 0,
            answered: 0,
            came: 0,
            failures: Failures::default(),
            bytes: 0,
            backlog: 0,
            span: None,
        };
        let own = kinds > 1 && kinds <= NAMED;
        let kind = || KindRecord { answered: 0, failures: Failures::default(), service: own.then(histogram) };
        Recorder {
            parts: (0..=parts).map(|_| part()).collect(),
            listener: Listener::default(),
            kinds: (0..kinds).map(|_| kind()).collect(),
            totals: (0, 0),
            slowest: BinaryHeap::with_capacity(SLOWEST + 1),
            connect: histogram(),
            reconnects: 0,
            last_done: 0,
            idle_failures: Failures::default(),
        }
    }

    /// A request has become due; `noticed` is when the generator saw that.
    pub(crate) fn due(&mut self, part: u16, intended: u64, noticed: u64, backlog: u64) {
        let record = &mut self.parts[usize::from(part)];
        record.due += 1;
        self.listener.due(intended);
        record.backlog = record.backlog.max(backlog);
        let first = record.span.map_or(intended, |(first, _)| first);
        record.span = Some((first, intended));
        if let Some(open) = &mut record.open {
            open.lateness.saturating_record(noticed.saturating_sub(intended));
        }
    }

    /// A request has been sent.
    pub(crate) fn sent(&mut self, exchange: &Exchange) {
        if let Some(open) = &mut self.parts[usize::from(exchange.part)].open {
            open.lag.saturating_record(exchange.sent.saturating_sub(exchange.intended));
        }
    }

    /// A good answer has arrived whole; `now` is the part that goes on.
    pub(crate) fn answered(&mut self, exchange: &Exchange, done: u64, now: Option<u16>, bytes: u64) {
        self.listener.answer(done);
        if let Some(record) = now.and_then(|part| self.parts.get_mut(usize::from(part))) {
            record.came += 1;
        }
        let record = &mut self.parts[usize::from(exchange.part)];
        record.answered += 1;
        self.totals.0 += 1;
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
        match class {
            Failure::TimedOut | Failure::Unsent => self.listener.give_up(done),
            _ => self.listener.answer(done),
        }
        self.parts[usize::from(exchange.part)].failures.count(class);
        self.kinds[exchange.request as usize].failures.count(class);
        self.totals.1 += 1;
        match class {
            Failure::TimedOut => self.latency(exchange, done, true),
            Failure::Unsent => self.latency(exchange, done, false),
            _ => {}
        }
    }

    fn latency(&mut self, exchange: &Exchange, done: u64, was_sent: bool) {
        let record = &mut self.parts[usize::from(exchange.part)];
        let response = done.saturating_sub(exchange.intended);
        record.response.saturating_record(response);
        if was_sent {
            record.service.saturating_record(done.saturating_sub(exchange.sent));
        }
        if exchange.part == 0 {
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

    /// Everything counted so far: answers and failures.
    pub(crate) fn totals(&self) -> (u64, u64) {
        self.totals
    }

    /// Requests that were given up so far.
    pub(crate) fn timeouts(&self) -> u64 {
        self.parts.iter().map(|slice| slice.failures.of(Failure::TimedOut)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giving_up_counts_as_slow_and_failing_at_once_does_not_count_as_fast() {
        let mut recorder = Recorder::new(1, 4, true);
        let exchange = Exchange { request: 0, part: 1, intended: 1_000, sent: 2_000 };
        recorder.failed(&exchange, 5_001_000, Failure::TimedOut);
        recorder.failed(&exchange, 3_000, Failure::Reset);
        let slice = &recorder.parts[1];
        assert_eq!((slice.response.len(), slice.service.len(), slice.failures.total()), (1, 1, 2));
        assert!(slice.response.max() >= 4_990_000);
        recorder.failed(&exchange, 9_000, Failure::Unsent);
        assert_eq!((recorder.parts[1].response.len(), recorder.parts[1].service.len()), (2, 1));
    }

    #[test]
    fn the_slowest_are_kept() {
        let mut recorder = Recorder::new(1, 4, false);
        for i in 0..5_000_u64 {
            let exchange = Exchange { request: 0, part: 1, intended: 10, sent: 10 };
            recorder.answered(&exchange, 10 + (i * 7919) % 5_000, Some(1), 1);
        }
        let fastest = recorder.slowest.iter().map(|Reverse(slow)| slow.response).min();
        assert_eq!((recorder.slowest.len(), fastest), (SLOWEST, Some(5_000 - SLOWEST as u64)));
    }
}
