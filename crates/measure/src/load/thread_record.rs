//! The record of one generator thread. Recording allocates no memory, except when the distribution of a row grows.

use super::exchange::Exchange;
use super::failure::{Failed, Failure, Failures};
use super::generator_delays::DelayedRecord;
use super::latencies::SparseHistogram;
use super::latency_counts::LatencyCounts;
use super::plan::{Plan, RowOf};
use super::request::Request;
use super::result::{SlowRequest, Unanswered};
use super::stalls::{Arrival, StallDetector};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The bounds of the live histogram of responses, in nanoseconds.
pub const LIVE_BOUNDS: [u64; 20] = {
    let us = 1_000;
    let ms = 1_000 * us;
    let s = 1_000 * ms;
    [
        100 * us,
        250 * us,
        500 * us,
        ms,
        2_500 * us,
        5 * ms,
        7_500 * us,
        10 * ms,
        25 * ms,
        50 * ms,
        75 * ms,
        100 * ms,
        250 * ms,
        500 * ms,
        750 * ms,
        s,
        2_500 * ms,
        5 * s,
        10 * s,
        60 * s,
    ]
};

/// The number of slowest requests that each thread keeps.
const SLOWEST: usize = 1024;

/// The largest number of rows that get distributions of their own.
pub(crate) const NAMED: usize = 64;

pub(crate) struct PartRecord {
    pub(crate) response: LatencyCounts,
    pub(crate) service: LatencyCounts,
    pub(crate) delayed: DelayedRecord,
    pub(crate) carried: DelayedRecord,
    pub(crate) open: Option<OpenRecord>,
    pub(crate) due: u64,
    pub(crate) answered: u64,
    /// The number of good answers that arrived in the time of this part, whenever their requests were due.
    pub(crate) arrived: u64,
    pub(crate) failures: Failures,
    pub(crate) bytes: u64,
    pub(crate) backlog: u64,
    /// The first and the last time at which requests of this part were due.
    pub(crate) span: Option<(u64, u64)>,
}

/// Distributions that only an open loop has.
pub(crate) struct OpenRecord {
    /// The time from due to sent.
    pub(crate) lag: LatencyCounts,
    /// The time from due to noticed by the generator: its own lateness, without the wait for a free connection.
    pub(crate) lateness: LatencyCounts,
}

/// The record of one row of the report.
pub(crate) struct KindRecord {
    pub(crate) answered: u64,
    pub(crate) failures: Failures,
    pub(crate) service: Option<LatencyCounts>,
    /// The record of each part, by when requests were due.
    pub(crate) parts: Vec<KindPart>,
}

/// The record of one row in one part.
#[derive(Clone, Default)]
pub(crate) struct KindPart {
    pub(crate) answered: u64,
    pub(crate) failures: Failures,
    pub(crate) response: SparseHistogram,
    pub(crate) delayed: DelayedRecord,
    pub(crate) carried: DelayedRecord,
}

/// The largest part of a response that may be a delay of the generator.
#[derive(Clone, Copy)]
struct Lateness {
    /// With this request itself.
    own: u64,
    /// The generator was late with this request, or with others in flight at the same time, for which this one may have
    /// waited.
    carried: u64,
}

impl Lateness {
    fn of(exchange: &Exchange, uncertain: u64) -> Lateness {
        let own = exchange.late + uncertain;
        Lateness { own, carried: uncertain + exchange.carried.max(exchange.late) }
    }
}

impl KindPart {
    fn responded(&mut self, response: u64, late: Lateness) {
        self.response.record(response);
        self.delayed.note(response, late.own);
        self.carried.note(response, late.carried);
    }
}

impl KindRecord {
    fn answered(&mut self, part: u16, response: u64, late: Lateness, service: u64) {
        self.answered += 1;
        if let Some(own) = &mut self.service {
            own.record(service);
        }
        if let Some(part) = self.parts.get_mut(usize::from(part)) {
            part.answered += 1;
            part.responded(response, late);
        }
    }

    fn failed(
        &mut self,
        part: u16,
        response: Option<(u64, Lateness)>,
        (class, wrong): (Failure, Option<&Failed>),
    ) {
        self.failures.count(class, wrong);
        if let Some(part) = self.parts.get_mut(usize::from(part)) {
            part.failures.count(class, wrong);
            if let Some((response, late)) = response {
                part.responded(response, late);
            }
        }
    }
}

/// The outcomes of the requests since the start of a turn, for observers. All counts are of the same moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRecord {
    /// The number of good answers.
    pub answered: u64,
    /// Failed requests by class.
    pub failures: Failures,
    /// The number of responses by the first of [`LIVE_BOUNDS`] that they do not exceed, then of those above the last
    /// bound.
    pub response: [u64; LIVE_BOUNDS.len() + 1],
    /// The sum of all responses in nanoseconds.
    pub sum: u64,
}

impl LiveRecord {
    /// Adds the requests of another thread or turn.
    pub fn add(&mut self, more: &LiveRecord) {
        self.answered += more.answered;
        self.failures.add(&more.failures);
        self.response.iter_mut().zip(more.response).for_each(|(sum, more)| *sum += more);
        self.sum += more.sum;
    }
}

/// The records of one turn.
pub(crate) struct Recorder {
    /// The records of the parts; the first is that of requests that were due before the start.
    pub(crate) parts: Vec<PartRecord>,
    /// The records of the plan's rows.
    pub(crate) kinds: Vec<KindRecord>,
    /// For each request, the row of its group if it has one.
    groups: Vec<Option<u32>>,
    /// For each session of the scenario, its row if it has one.
    sessions: Vec<Option<u32>>,
    /// The numbers of answers and of failures.
    totals: (u64, u64),
    /// The number of failed requests that the server cannot have read.
    pub(crate) unread: u64,
    /// The responses that are published while the turn runs, if that was requested.
    pub(crate) live: Option<Box<LiveRecord>>,
    pub(crate) slowest: BinaryHeap<Reverse<SlowRequest>>,
    /// The detector of stalls.
    pub(crate) stall_detector: StallDetector,
    pub(crate) connect: LatencyCounts,
    pub(crate) reconnects: u64,
    /// How often the server closed a connection after an answer.
    pub(crate) closings: u64,
    /// How often a request was sent again, because the server did not process it.
    pub(crate) repeated: u64,
    /// When the last measured request was answered or given up.
    pub(crate) last_done: u64,
    /// Failures to connect while no request waited for the connection.
    pub(crate) idle_failures: Failures,
    pub(crate) unanswered: Unanswered,
}

impl Recorder {
    /// An empty record that is never written to.
    pub(crate) fn empty() -> Recorder {
        Recorder::with(0, 0, false)
    }

    /// Creates the record of a turn.
    pub(crate) fn new(plan: &Plan) -> Recorder {
        let rows = plan.rows();
        let place = |name: &str, of: RowOf| {
            rows.iter().position(|row| row.of == of && row.name == name).map(|row| row as u32)
        };
        let group = |request: &Request| place(request.group.as_deref()?, RowOf::Group);
        let sessions = plan.scenario.iter().flat_map(|scenario| &scenario.sessions);
        Recorder {
            groups: plan.requests.iter().map(group).collect(),
            sessions: sessions.map(|session| place(&session.name, RowOf::Session)).collect(),
            live: plan.live.then(Box::default),
            ..Recorder::with(rows.len(), plan.parts, plan.by_clock())
        }
    }

    fn with(kinds: usize, parts: u32, open: bool) -> Recorder {
        let part = || PartRecord {
            response: LatencyCounts::new(),
            service: LatencyCounts::new(),
            delayed: DelayedRecord::default(),
            carried: DelayedRecord::default(),
            open: open.then(|| OpenRecord { lag: LatencyCounts::new(), lateness: LatencyCounts::new() }),
            due: 0,
            answered: 0,
            arrived: 0,
            failures: Failures::default(),
            bytes: 0,
            backlog: 0,
            span: None,
        };
        let own = kinds > 1 && kinds <= NAMED;
        let kind = || KindRecord {
            answered: 0,
            failures: Failures::default(),
            service: own.then(LatencyCounts::new),
            parts: if own { vec![KindPart::default(); parts as usize + 1] } else { Vec::new() },
        };
        Recorder {
            parts: (0..=parts).map(|_| part()).collect(),
            stall_detector: StallDetector::default(),
            kinds: (0..kinds).map(|_| kind()).collect(),
            groups: Vec::new(),
            sessions: Vec::new(),
            totals: (0, 0),
            unread: 0,
            live: None,
            slowest: BinaryHeap::with_capacity(SLOWEST + 1),
            connect: LatencyCounts::new(),
            reconnects: 0,
            closings: 0,
            repeated: 0,
            last_done: 0,
            idle_failures: Failures::default(),
            unanswered: Unanswered::default(),
        }
    }

    /// Records that a request is due; `noticed` is when the generator noticed it.
    pub(crate) fn due(&mut self, part: u16, intended: u64, noticed: u64, backlog: u64) {
        let record = &mut self.parts[usize::from(part)];
        record.due += 1;
        self.stall_detector.due(noticed);
        record.backlog = record.backlog.max(backlog);
        let first = record.span.map_or(intended, |(first, _)| first);
        record.span = Some((first, intended));
        if let Some(open) = &mut record.open {
            open.lateness.record(noticed.saturating_sub(intended));
        }
    }

    /// Records that a request was sent.
    pub(crate) fn sent(&mut self, exchange: &Exchange) {
        if let Some(open) = &mut self.parts[usize::from(exchange.part)].open {
            open.lag.record(exchange.sent.saturating_sub(exchange.intended));
        }
    }

    /// Records that a good answer has arrived completely; `now` is the current part.
    pub(crate) fn answered(&mut self, exchange: &Exchange, read: Arrival, now: Option<u16>, bytes: u64) {
        self.stall_detector.overtook(exchange.intended);
        self.stall_detector.answer(read);
        if let Some(record) = now.and_then(|part| self.parts.get_mut(usize::from(part))) {
            record.arrived += 1;
        }
        let record = &mut self.parts[usize::from(exchange.part)];
        record.answered += 1;
        self.totals.0 += 1;
        if let Some(live) = &mut self.live {
            live.answered += 1;
        }
        record.bytes += bytes;
        let done = read.latest.max(exchange.sent);
        let (response, service) = (done.saturating_sub(exchange.intended), done - exchange.sent);
        let late = Lateness::of(exchange, read.uncertain());
        self.kinds[exchange.request as usize].answered(exchange.part, response, late, service);
        if let Some(group) = self.groups.get(exchange.request as usize).copied().flatten() {
            self.kinds[group as usize].answered(exchange.part, response, late, service);
        }
        self.latency(exchange, done, late, true);
    }

    /// Records the end of a session, which is successful unless one of its requests failed. The session began at the
    /// time `began` in the part `part`; up to `late` nanoseconds of it were the generator's.
    pub(crate) fn session(
        &mut self,
        session: u32,
        (began, part): (u64, u16),
        (done, late): (u64, u64),
        outcome: Result<(), Failure>,
    ) {
        let Some(row) = self.sessions.get(session as usize).copied().flatten() else { return };
        let row = &mut self.kinds[row as usize];
        let length = done.saturating_sub(began);
        match outcome {
            Ok(()) => row.answered(part, length, Lateness { own: late, carried: late }, length),
            Err(class) => row.failed(part, None, (class, None)),
        }
    }

    /// Records that a request has failed. Requests that timed out count in the latencies with the time that was
    /// waited, so that giving up does not make a server look fast. Requests that failed at once do not count there.
    /// `wrong` is what is wrong with the answer, if one came.
    pub(crate) fn failed(&mut self, exchange: &Exchange, done: u64, class: Failure, wrong: Option<&Failed>) {
        // Where no connection is made, nothing has answered.
        if class == Failure::TimedOut || class.is_before_sending() {
            self.stall_detector.give_up(done, exchange.intended);
        } else {
            self.stall_detector.answer(self.stall_detector.reading(done, None));
        }
        self.parts[usize::from(exchange.part)].failures.count(class, wrong);
        let waited = matches!(class, Failure::TimedOut | Failure::Unsent);
        let late = Lateness::of(exchange, 0);
        let response = waited.then(|| (done.saturating_sub(exchange.intended), late));
        self.kinds[exchange.request as usize].failed(exchange.part, response, (class, wrong));
        if let Some(group) = self.groups.get(exchange.request as usize).copied().flatten() {
            self.kinds[group as usize].failed(exchange.part, response, (class, wrong));
        }
        self.totals.1 += 1;
        self.unread += u64::from(class == Failure::Unsent);
        if let Some(live) = &mut self.live {
            live.failures.count(class, wrong);
        }
        match class {
            Failure::TimedOut => self.latency(exchange, done, late, true),
            Failure::Unsent => self.latency(exchange, done, late, false),
            _ => {}
        }
    }

    fn latency(&mut self, exchange: &Exchange, done: u64, late: Lateness, was_sent: bool) {
        let record = &mut self.parts[usize::from(exchange.part)];
        let response = done.saturating_sub(exchange.intended);
        record.response.record(response);
        record.delayed.note(response, late.own);
        record.carried.note(response, late.carried);
        if let Some(live) = &mut self.live {
            live.response[LIVE_BOUNDS.partition_point(|bound| *bound < response)] += 1;
            live.sum += response;
        }
        if was_sent {
            record.service.record(done.saturating_sub(exchange.sent));
        }
        if exchange.part == 0 {
            return;
        }
        self.last_done = self.last_done.max(done);
        let full = self.slowest.len() >= SLOWEST;
        if !full || self.slowest.peek().is_some_and(|Reverse(fastest)| response > fastest.response) {
            let slow = SlowRequest { response, intended: exchange.intended, sent: exchange.sent, done };
            self.slowest.push(Reverse(slow));
            if full {
                self.slowest.pop();
            }
        }
    }

    /// The numbers of answers and failures so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        self.totals
    }

    /// The number of requests that timed out so far.
    pub(crate) fn timeouts(&self) -> u64 {
        self.parts.iter().map(|slice| slice.failures.of(Failure::TimedOut)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::NO_USER;
    use super::*;

    #[test]
    fn giving_up_counts_as_slow_and_failing_at_once_does_not_count_as_fast() {
        let mut recorder = Recorder::with(1, 4, true);
        let exchange = Exchange {
            request: 0,
            part: 1,
            intended: 1_000,
            sent: 2_000,
            late: 0,
            carried: 0,
            user: NO_USER,
            repeats: 0,
        };
        recorder.failed(&exchange, 5_001_000, Failure::TimedOut, None);
        recorder.failed(&exchange, 3_000, Failure::Reset, None);
        let slice = &recorder.parts[1];
        let (response, service) = (slice.response.latencies(), slice.service.latencies());
        assert_eq!((response.count(), service.count(), slice.failures.total()), (1, 1, 2));
        assert!(response.max() >= Some(4_990_000));
        recorder.failed(&exchange, 9_000, Failure::Unsent, None);
        let slice = &recorder.parts[1];
        assert_eq!((slice.response.latencies().count(), slice.service.latencies().count()), (2, 1));
    }

    #[test]
    fn a_connection_that_is_not_made_is_no_answer() {
        [Failure::Refused, Failure::Unconnected, Failure::Tls].into_iter().for_each(one_stall_with);
    }

    fn one_stall_with(class: Failure) {
        const MS: u64 = 1_000_000;
        // A request each 10 ms, answered at once, except from 1 s to 2 s: then one each 100 ms fails, and the
        // others wait.
        let mut recorder = Recorder::with(1, 1, true);
        let exchange = |due: u64| Exchange {
            request: 0,
            part: 1,
            intended: due,
            sent: due,
            late: 0,
            carried: 0,
            user: NO_USER,
            repeats: 0,
        };
        let mut waiting = Vec::new();
        for due in (0..3_000).step_by(10).map(|ms| ms * MS) {
            recorder.due(1, due, due, waiting.len() as u64);
            waiting.push(exchange(due));
            if !(1_000..2_000).contains(&(due / MS)) {
                waiting.drain(..).for_each(|one| recorder.answered(&one, Arrival::at(due + MS), Some(1), 1));
            } else if due / MS % 100 == 50 {
                recorder.failed(&waiting.remove(0), due + MS, class, None);
            }
        }
        let found = super::super::stalls::stalls(&[&recorder.stall_detector], 0);
        let ms = MS as i64;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].from / ms, found[0].to / ms), (1_000, 2_001), "{class:?} {found:?}");
    }

    #[test]
    fn the_slowest_are_kept() {
        let mut recorder = Recorder::with(1, 4, false);
        for i in 0..5_000_u64 {
            let exchange = Exchange {
                request: 0,
                part: 1,
                intended: 10,
                sent: 10,
                late: 0,
                carried: 0,
                user: NO_USER,
                repeats: 0,
            };
            recorder.answered(&exchange, Arrival::at(10 + (i * 7919) % 5_000), Some(1), 1);
        }
        let fastest = recorder.slowest.iter().map(|Reverse(slow)| slow.response).min();
        assert_eq!((recorder.slowest.len(), fastest), (SLOWEST, Some(5_000 - SLOWEST as u64)));
    }
}
