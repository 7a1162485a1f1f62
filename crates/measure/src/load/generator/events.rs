//! Handles the events on connections: they open, answer, end and fail.

use super::super::clock;
use super::super::connection::{ConnectionState, broken, unconnected};
use super::super::exchange::{Exchange, NO_USER};
use super::super::failure::{Failed, Failure};
use super::super::http1::{self, AtEnd, Garbage};
use super::super::http2::{FinishedRequest, Http2};
use super::super::scenario::answer::{AnswerHead, KeptAnswer};
use super::super::stalls::Arrival;
use super::super::tls::Tls;
use super::due_request::DueRequest;
use super::users::Server;
use super::{Generator, LONGEST_SLEEP};
use std::io;

/// How often a request is sent again to a server of HTTP/2 that says that it did not process it.
const REPEATS: u8 = 10;

impl Generator {
    /// Waits for events and handles them. Returns their number.
    pub(super) fn turn_once(&mut self, wait: u64) -> io::Result<usize> {
        let count = self.connections.poller.wait(wait.min(LONGEST_SLEEP))?;
        self.act_on(count);
        Ok(count)
    }

    /// Handles the events that the poller has returned.
    pub(super) fn act_on(&mut self, count: usize) {
        for event in 0..count {
            let event = self.connections.poller.event(event);
            let index = (event.token & 0xffff_ffff) as usize;
            let current = |generator: &Generator| {
                generator.connections.list.get(index).is_some_and(|c| c.token(index) == event.token)
            };
            // A server may answer and close before it has read the whole request. The answer is then still there.
            if event.readable
                && current(self)
                && self.connections.list[index].link != ConnectionState::Connecting
            {
                self.on_readable(index);
            }
            if event.writable && current(self) {
                self.on_writable(index);
            }
        }
    }

    fn on_writable(&mut self, index: usize) {
        let connection = &mut self.connections.list[index];
        if connection.link != ConnectionState::Connecting {
            let generation = connection.generation;
            if let Err(class) = connection.send_more(index, &self.connections.poller) {
                self.on_readable(index);
                if self.connections.list[index].generation == generation {
                    self.fail(index, class);
                }
            }
            return;
        }
        if let Err(error) = connection.connected() {
            return self.unconnected(index, unconnected(&error));
        }
        let Some(setup) = &self.shared.tls else {
            if connection.send_more(index, &self.connections.poller).is_ok() {
                self.established(index);
            }
            return;
        };
        connection.link = ConnectionState::Handshaking;
        let hello = Tls::new(setup).and_then(|tls| {
            connection.tls = Some(Box::new(tls));
            connection.send_more(index, &self.connections.poller)?;
            connection.send_handshake(index, &self.connections.poller)
        });
        if let Err(class) = hello {
            self.unconnected(index, class);
        }
    }

    fn established(&mut self, index: usize) {
        let now = clock::now();
        let connection = &mut self.connections.list[index];
        if self.shared.http2() {
            if connection.tls.as_ref().is_some_and(|tls| !tls.speaks_http2()) {
                self.connections.note_tls_trouble(index, "the server does not offer HTTP/2".to_owned());
                return self.unconnected(index, Failure::Tls);
            }
            let most = if self.plan.keep_alive { self.plan.streams as usize } else { 1 };
            connection.http2 = Some(Box::new(Http2::new(most)));
            if let Err(class) = connection.send_frames(index, &self.connections.poller) {
                return self.unconnected(index, class);
            }
        }
        self.recorder.connect.record(self.connections.opened(index, now));
        self.ready(index, now, 0);
    }

    fn on_readable(&mut self, index: usize) {
        let mut buffer = std::mem::take(&mut self.memory.received);
        let generation = self.connections.list[index].generation;
        loop {
            let received = self.connections.list[index].receive(&mut buffer);
            let now = clock::now();
            let noted = received.as_ref().ok().and_then(|(_, noted)| *noted);
            let arrived = noted.and_then(|time| self.arrivals.monotonic(time, now));
            self.reading = self.recorder.stall_detector.reading(now, arrived);
            match received {
                Ok((0, _)) => self.on_end(index),
                Ok((length, _)) => {
                    self.on_bytes(index, &buffer[..length]);
                    if length == buffer.len() && self.connections.list[index].generation == generation {
                        continue;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => self.fail(index, broken(&error)),
            }
            break;
        }
        self.memory.received = buffer;
    }

    fn on_bytes(&mut self, index: usize, bytes: &[u8]) {
        let connection = &mut self.connections.list[index];
        let generation = connection.generation;
        let Some(tls) = &mut connection.tls else { return self.on_plain(index, bytes) };
        let mut plain = std::mem::take(&mut self.memory.plain);
        plain.clear();
        let opened = tls.open(bytes, &mut plain);
        let (handshaking, has_ended) = (tls.is_handshaking(), tls.has_ended);
        // If the handshake is refused, the alert with the reason is still sent.
        let sent = connection.send_handshake(index, &self.connections.poller);
        if let Err(why) = opened {
            self.connections.note_tls_trouble(index, why);
            self.fail(index, Failure::Tls);
        } else if let Err(class) = sent {
            self.fail(index, class);
        } else {
            if self.connections.list[index].link == ConnectionState::Handshaking && !handshaking {
                self.established(index);
            }
            if !plain.is_empty() {
                self.on_plain(index, &plain);
            }
            let connection = &self.connections.list[index];
            if has_ended && connection.generation == generation && !connection.awaits_close() {
                self.on_end(index);
            }
        }
        self.memory.plain = plain;
    }

    /// Handles bytes of HTTP/2: records the requests that they complete, and sends the protocol's replies.
    fn on_frames(&mut self, index: usize, bytes: &[u8]) {
        let mut done = std::mem::take(&mut self.memory.done);
        let connection = &mut self.connections.list[index];
        let Some(http2) = &mut connection.http2 else { return };
        let received = http2.receive(bytes, &mut done);
        if received.is_err() {
            connection.cause = http2.fault(bytes).map(|why| Failed::Cause(Failure::Garbage, why.into()));
        }
        let received = received.and_then(|()| connection.send_frames(index, &self.connections.poller));
        self.end_streams(index, &mut done, self.reading);
        self.memory.done = done;
        match received {
            Err(class) => self.fail(index, class),
            Ok(()) => self.reopen_or_use(index, self.reading.late()),
        }
        while !self.queue.repeated.is_empty()
            && let Some(idle) = self.queue.take_idle(&mut self.connections.list)
        {
            self.ready(idle, clock::now(), 0);
        }
    }

    /// Opens a connection of HTTP/2 again that takes no more requests, or uses it for those that wait.
    fn reopen_or_use(&mut self, index: usize, late: u64) {
        let once = !self.plan.keep_alive;
        if self.connections.list[index].http2.as_ref().is_some_and(|http2| http2.is_over(once)) {
            self.reopen(index);
        } else {
            self.ready(index, clock::now(), late);
        }
    }

    /// Records requests of HTTP/2 that are done. Those that the server says it did not process are sent again, at most
    /// [`REPEATS`] times.
    fn end_streams(&mut self, index: usize, done: &mut Vec<FinishedRequest>, read: Arrival) {
        let now = read.now;
        let part = self.time.part_now(now);
        for FinishedRequest { exchange, status, outcome, cause, unread, repeatable, kept } in done.drain(..) {
            self.in_flight -= 1;
            let connection = &mut self.connections.list[index];
            connection.freed = Some(now);
            if repeatable && exchange.repeats < REPEATS {
                self.recorder.repeated += 1;
                self.queue.repeated.push_back(Exchange { repeats: exchange.repeats + 1, ..exchange });
                continue;
            }
            self.recorder.unread += u64::from(unread);
            connection.outcomes.0 += u64::from(outcome.is_ok());
            connection.outcomes.1 += u64::from(outcome == Err(Failure::TimedOut));
            match outcome {
                Err(class) => {
                    let cause = cause.map(|cause| Failed::Cause(class, cause.into()));
                    let status = (status > 0).then_some(status);
                    self.failed_with(&exchange, now, class, status, cause.as_ref());
                }
                Ok(length) => {
                    let answer =
                        KeptAnswer { status, length, head: AnswerHead::Http2(&kept.0), body: &kept.1 };
                    self.answered(&exchange, read, part, answer);
                }
            }
        }
    }

    pub(super) fn give_up_streams(&mut self, index: usize, sent_before: u64) {
        let mut done = std::mem::take(&mut self.memory.done);
        let connection = &mut self.connections.list[index];
        let Some(http2) = &mut connection.http2 else { return };
        http2.give_up(sent_before, &mut done);
        let sent = connection.send_frames(index, &self.connections.poller);
        let any = !done.is_empty();
        self.end_streams(index, &mut done, Arrival::at(clock::now()));
        self.memory.done = done;
        match sent {
            Err(class) => self.fail(index, class),
            Ok(()) if any => self.reopen_or_use(index, 0),
            Ok(()) => {}
        }
    }

    fn on_plain(&mut self, index: usize, bytes: &[u8]) {
        if self.connections.list[index].http2.is_some() {
            return self.on_frames(index, bytes);
        }
        let connection = &mut self.connections.list[index];
        let expect = connection.exchange.map(|exchange| self.shared.expected[exchange.request as usize]);
        let fed = match expect {
            Some(expect) => connection.reader.feed(bytes, expect),
            None => Err(Garbage("data that no request asked for")),
        };
        let why = match fed {
            Ok((_, None)) => return,
            Ok((used, Some(head))) if used == bytes.len() => return self.finish(index, head),
            // No request is in flight that bytes after this answer could belong to.
            Ok(_) => Garbage("more data follows it"),
            Err(why) => why,
        };
        connection.cause = Some(Failed::Cause(Failure::Garbage, why.0.into()));
        self.fail(index, Failure::Garbage);
    }

    pub(super) fn on_end(&mut self, index: usize) {
        let connection = &mut self.connections.list[index];
        if connection.link == ConnectionState::Handshaking {
            connection.cause = Some(Failed::Cause(Failure::Tls, "the server closed the connection".into()));
            return self.fail(index, Failure::Tls);
        }
        if connection.http2.is_some() {
            let busy = connection.exchanges().next().is_some();
            return if busy { self.fail(index, Failure::ClosedEarly) } else { self.reopen(index) };
        }
        match (connection.exchange, connection.reader.end()) {
            (None, _) => self.reopen(index),
            (Some(_), AtEnd::Nothing) => self.fail(index, Failure::ClosedEarly),
            (Some(_), AtEnd::Half) => self.fail(index, Failure::HalfResponse),
            (Some(_), AtEnd::Complete(head)) => self.finish(index, head),
        }
    }

    fn finish(&mut self, index: usize, head: http1::Head) {
        let read = self.reading;
        let now = read.now;
        let part = self.time.part_now(now);
        let connection = &mut self.connections.list[index];
        let Some(exchange) = connection.exchange.take() else { return };
        self.in_flight -= 1;
        let (kept_head, kept_body) = connection.reader.take_kept();
        let answer = KeptAnswer {
            status: head.status,
            length: head.body,
            head: AnswerHead::Http1(&kept_head),
            body: &kept_body,
        };
        self.answered(&exchange, read, part, answer);
        let connection = &mut self.connections.list[index];
        connection.reader.give_back(kept_head, kept_body);
        connection.freed = Some(now);
        connection.heard = true;
        connection.outcomes.0 += 1;
        if !(head.keep_alive && self.plan.keep_alive) {
            self.reopen(index);
        } else if connection.all_sent() {
            self.ready(index, now, read.late());
        } else {
            self.reconnect(index);
        }
    }

    /// Closes a connection that failed; the requests in flight on it fail with this class. If it was closed, those of
    /// HTTP/2 fail with the class of what had arrived of each answer.
    pub(super) fn fail(&mut self, index: usize, class: Failure) {
        let connection = &mut self.connections.list[index];
        if connection.link != ConnectionState::Up {
            return self.unconnected(index, class);
        }
        let now = clock::now();
        let mut cause = connection.cause.take();
        let lost: Vec<(Exchange, Failure)> = connection
            .exchanges()
            .map(|exchange| (exchange, connection.class_of(&exchange, class)))
            .collect();
        if connection.may_have_crossed(class) {
            self.recorder.closings += 1;
            // A request is sent again if that does no harm, as clients do.
            if let [(exchange, _)] = lost[..]
                && self.plan.requests[exchange.request as usize].is_idempotent()
                && connection.was_unread(class)
            {
                self.recorder.repeated += 1;
                self.in_flight -= 1;
                self.queue.repeated.push_back(exchange);
                return self.reconnect(index);
            }
            self.recorder.unread += lost.len() as u64;
            let why = "the server closed a connection on which it had answered before";
            cause = cause.or_else(|| Some(Failed::Cause(class, why.into())));
        }
        if class == Failure::TimedOut {
            connection.outcomes.1 += lost.len() as u64;
        }
        self.in_flight -= lost.len();
        if !lost.is_empty() {
            connection.freed = Some(now);
        }
        for (exchange, class) in &lost {
            self.failed_with(exchange, now, *class, None, cause.as_ref());
        }
        if lost.is_empty() && class == Failure::Garbage {
            self.recorder.idle_failures.count(class, cause.as_ref());
        }
        self.reconnect(index);
    }

    /// Opens a connection again that the server closes after an answer, or that carries only one request.
    fn reopen(&mut self, index: usize) {
        self.recorder.closings += 1;
        self.reconnect(index);
    }

    fn reconnect(&mut self, index: usize) {
        self.connections.close(index, clock::now());
        self.recorder.reconnects += 1;
        if !self.time.is_under_way() || !self.done_sending(clock::now()) || !self.queue.is_empty() {
            self.connect(index);
        }
    }

    pub(super) fn connect(&mut self, index: usize) {
        let now = clock::now();
        if let Err(class) = self.connections.connect(index, &self.shared.address, now) {
            self.unconnected(index, class);
        }
    }

    /// Handles a failed attempt to connect: the request that waits for the connection fails, and the next attempt is
    /// delayed.
    pub(super) fn unconnected(&mut self, index: usize, class: Failure) {
        let now = clock::now();
        let cause = self.connections.list[index].cause.take();
        self.connections.failed_to_open(index, class, now);
        let freed = self.connections.list[index].freed.replace(now);
        if !self.time.is_under_way() {
            return;
        }
        if let Some(exchange) = self.queue.repeated.pop_front() {
            self.recorder.unread += 1;
            return self.failed_with(&exchange, now, class, None, cause.as_ref());
        }
        let due = if self.schedule.is_some() {
            self.queue.pop().map(|due| (due, self.time.part(due.at)))
        } else if !self.done_sending(now) {
            let part = self.time.part(now);
            self.recorder.due(part, now, now, 0);
            self.time.count(part);
            Some((DueRequest { at: freed.unwrap_or(now), user: NO_USER, late: 0 }, part))
        } else {
            None
        };
        match due {
            Some((due, part)) => {
                let request = self.request_of(due);
                let exchange = due.exchange(request, part, now);
                self.recorder.unread += 1;
                self.failed_with(&exchange, now, class, None, cause.as_ref());
            }
            None => self.recorder.idle_failures.count(class, cause.as_ref()),
        }
    }

    pub(super) fn retry(&mut self, now: u64) {
        while let Some(index) = self.connections.due_retry(now) {
            self.connect(index);
        }
    }

    /// Handles a whole answer: judges it.
    fn answered(&mut self, exchange: &Exchange, read: Arrival, part: Option<u16>, answer: KeptAnswer<'_>) {
        let request = &self.plan.requests[exchange.request as usize];
        let decoded = if request.keeps() { answer.decoded() } else { None };
        let answer = KeptAnswer { body: decoded.as_deref().unwrap_or(answer.body), ..answer };
        let outcome = request.check.judge(&answer);
        let outcome = match &mut self.users {
            Some(users) if exchange.user != NO_USER => {
                let host = self.shared.target.host.as_str();
                let named = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
                let hosts = [host, named.map_or(host, |(_, named)| named)];
                let server = Server { encrypted: self.shared.tls.is_some(), hosts };
                match users.process_answer(exchange, answer, outcome, server, &request.name) {
                    Some(outcome) => outcome,
                    None => {
                        let late = exchange.late + read.uncertain();
                        self.queue.push_first(DueRequest {
                            at: exchange.intended,
                            user: exchange.user,
                            late,
                        });
                        return;
                    }
                }
            }
            _ => outcome,
        };
        if let Some(users) = self.users.as_mut().filter(|_| exchange.user != NO_USER) {
            users.note_lateness(exchange.user, exchange.carried.max(exchange.late) + read.late());
        }
        match outcome {
            Ok(()) => {
                let bytes = answer.length;
                self.recorder.answered(exchange, read, part, bytes);
                self.record_request(exchange, read.latest.max(exchange.sent), Some(answer.status), Ok(bytes));
                if let Some(users) = self.users.as_mut().filter(|_| exchange.user != NO_USER) {
                    users.go_on(exchange.user, read.now, &self.time, &mut self.recorder);
                }
            }
            Err(wrong) => {
                self.failed_with(exchange, read.now, wrong.class(), Some(answer.status), Some(&wrong));
            }
        }
    }

    /// Records a failed request, whose session ends.
    pub(super) fn failed(&mut self, exchange: &Exchange, now: u64, class: Failure) {
        self.failed_with(exchange, now, class, None, None);
    }

    fn failed_with(
        &mut self,
        exchange: &Exchange,
        now: u64,
        class: Failure,
        status: Option<u16>,
        wrong: Option<&Failed>,
    ) {
        self.recorder.failed(exchange, now, class, wrong);
        self.record_request(exchange, now, status, Err(class));
        if let Some(users) = self.users.as_mut().filter(|_| exchange.user != NO_USER) {
            users.end_session(exchange.user, (now, Err(class)), &self.time, &mut self.recorder);
        }
    }
}
