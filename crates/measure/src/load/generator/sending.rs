//! Sends requests, and chooses which request is sent.

use super::super::exchange::{Exchange, NO_USER};
use super::super::failure::Failure;
use super::super::request::Request;
use super::super::{clock, http2};
use super::Generator;
use super::due_request::DueRequest;

impl Generator {
    /// Sends, in a closed loop, on all connections that have become free. They are used together, so that the server
    /// finds several requests when it wakes up.
    pub(super) fn send_gathered(&mut self) {
        let mut gathered = self.queue.take_gathered();
        for index in gathered.drain(..).map(|index| index as usize) {
            let now = clock::now();
            self.connections.list[index].queued = false;
            self.connections.list[index].gathers = self.connections.list[index].http2.is_some();
            while self.connections.list[index].is_free() && !self.done_sending(now) {
                let intended = self.connections.list[index].freed.take().unwrap_or(now);
                let part = self.time.part(now);
                self.recorder.due(part, now, now, 0);
                self.time.last_due = now;
                self.time.count(part);
                self.start(index, DueRequest { at: intended, user: NO_USER, late: 0 }, now, part);
            }
            self.send_held_back(index);
        }
        self.queue.give_back(gathered);
    }

    /// Sends the requests again, together, that the server did not process, as many as the connection can take.
    pub(super) fn send_repeated(&mut self, index: usize, now: u64) {
        self.connections.list[index].gathers = true;
        while self.connections.list[index].is_free()
            && let Some(exchange) = self.queue.repeated.pop_front()
        {
            self.send(index, exchange, now);
        }
        self.send_held_back(index);
    }

    /// Sends the frames that were held back.
    fn send_held_back(&mut self, index: usize) {
        if std::mem::take(&mut self.connections.list[index].gathers)
            && let Err(class) = self.connections.list[index].send_frames(index, &self.connections.poller)
        {
            self.fail(index, class);
        }
    }

    pub(super) fn start(&mut self, index: usize, due: DueRequest, now: u64, part: u16) {
        // Lateness is absorbed once nothing is in flight.
        self.carried = if self.in_flight == 0 { due.late } else { self.carried.max(due.late) };
        let request = self.request_of(due);
        let mut exchange = Exchange { carried: self.carried, ..due.exchange(request, part, now) };
        match self.users.as_ref().and_then(|users| users.sent_before(due.user)) {
            Some(sent) => exchange.sent = sent,
            None => self.recorder.sent(&exchange),
        }
        self.send(index, exchange, now);
    }

    /// Sends the request of an exchange. That of a user may differ from the plan's.
    pub(super) fn send(&mut self, index: usize, exchange: Exchange, now: u64) {
        self.in_flight += 1;
        let base = &self.plan.requests[exchange.request as usize];
        let composed = match &mut self.users {
            Some(users) if exchange.user != NO_USER => {
                users.composed(exchange.user, base, self.shared.tls.is_some())
            }
            _ => None,
        };
        let sent = match composed {
            None => self.send_prepared(index, exchange),
            Some(request) => self.send_composed(index, &request, exchange),
        };
        self.sent(index, exchange, now, sent);
    }

    /// Sends a request of the plan, encoded beforehand.
    fn send_prepared(&mut self, index: usize, exchange: Exchange) -> Result<(), Failure> {
        let (shared, request) = (&*self.shared, exchange.request as usize);
        let connection = &mut self.connections.list[index];
        match &mut connection.http2 {
            None => {
                connection.exchange = Some(exchange);
                connection.send(&shared.encoded[request], index, &self.connections.poller)
            }
            Some(http2) => http2
                .start(&shared.frames[request], exchange)
                .and_then(|()| connection.send_frames(index, &self.connections.poller)),
        }
    }

    /// Handles the result of sending a request.
    fn sent(&mut self, index: usize, exchange: Exchange, now: u64, sent: Result<(), Failure>) {
        if let Err(class) = sent {
            if !self.connections.list[index].exchanges().any(|under_way| under_way == exchange) {
                self.in_flight -= 1;
                self.failed(&exchange, now, class);
            }
            self.fail(index, class);
        }
    }

    /// The index of the plan's request that is sent for `due`.
    pub(super) fn request_of(&mut self, due: DueRequest) -> u32 {
        match &self.users {
            Some(users) if due.user != NO_USER => users.request(due.user),
            _ => self.choice.next(&self.shared.cumulated),
        }
    }

    fn send_composed(&mut self, index: usize, request: &Request, exchange: Exchange) -> Result<(), Failure> {
        let target = &self.shared.target;
        let connection = &mut self.connections.list[index];
        match &mut connection.http2 {
            None => {
                connection.exchange = Some(exchange);
                connection.send(
                    &request.http1(&target.host, self.plan.keep_alive),
                    index,
                    &self.connections.poller,
                )
            }
            Some(http2) => {
                let encoded = http2::encode(request, target).map_err(|_| Failure::Garbage)?;
                http2.start(&encoded, exchange)?;
                connection.send_frames(index, &self.connections.poller)
            }
        }
    }
}
