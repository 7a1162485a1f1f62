//! Requests that have no answer in time, or when the turn ends.

use super::Generator;
use crate::load::connection::ConnectionState;
use crate::load::exchange::Exchange;
use crate::load::failure::{Failed, Failure};
use crate::load::result::Ended;

impl Generator {
    /// Fails the requests that have waited for longer than `timeout` nanoseconds, or since the last call for a server
    /// that announced the end of a connection to close it.
    pub(super) fn give_up_on(&mut self, now: u64, timeout: u64) {
        for index in 0..self.connections.list.len() {
            if self.connections.list[index].http2.is_some() {
                self.give_up_streams(index, now.saturating_sub(timeout));
                continue;
            }
            let connection = &mut self.connections.list[index];
            if connection.awaits_close() && std::mem::replace(&mut connection.closing, true) {
                self.on_end(index);
                continue;
            }
            match (connection.link, connection.exchange) {
                (ConnectionState::Up, Some(exchange)) if now.saturating_sub(exchange.sent) >= timeout => {
                    self.connections.list[index].cause = connection.cause_of_time_out(&exchange);
                    self.fail(index, Failure::TimedOut);
                }
                (ConnectionState::Connecting, _) if now.saturating_sub(connection.since) >= timeout => {
                    self.unconnected(index, Failure::Unconnected);
                }
                (ConnectionState::Handshaking, _) if now.saturating_sub(connection.since) >= timeout => {
                    self.connections.list[index].cause =
                        Some(Failed::Cause(Failure::Tls, "the handshake did not end in time".into()));
                    self.unconnected(index, Failure::Tls);
                }
                _ => {}
            }
        }
    }

    /// Accounts for the requests that are in flight or wait when the turn ends at `now`. Connections with requests in
    /// flight are closed, the others stay open.
    pub(crate) fn account_for_unfinished(&mut self, ended: Ended, now: u64) {
        for index in 0..self.connections.list.len() {
            let busy: Vec<Exchange> = self.connections.list[index].exchanges().collect();
            if busy.is_empty() {
                continue;
            }
            self.connections.list[index].outcomes.1 += busy.len() as u64;
            self.in_flight -= busy.len();
            for exchange in &busy {
                let cause = self.connections.list[index].cause_of_time_out(exchange);
                self.end_without_answer(exchange, (ended, now), Failure::TimedOut, cause.as_ref());
            }
            self.connections.close(index, now);
        }
        while let Some(exchange) = self.queue.repeated.pop_front() {
            self.recorder.unread += u64::from(ended != Ended::Interrupted);
            self.end_without_answer(&exchange, (ended, now), Failure::TimedOut, None);
        }
        while let Some(due) = self.queue.pop() {
            let (request, part) = (self.request_of(due), self.time.part(due.at));
            let exchange = due.exchange(request, part, now);
            self.end_without_answer(&exchange, (ended, now), Failure::Unsent, None);
        }
        if let Some(sink) = &mut self.sink {
            sink.flush();
        }
        self.live().publish_counts(&self.recorder);
        self.live().publish_record(&self.recorder, true);
        self.live().publish(&self.recorder, self.time.part(now), self.queue.len());
        self.queue.clear();
        self.time.finish();
    }

    /// A request that has no answer when the turn ends at `now` has failed; if the turn was interrupted, it is neither
    /// answered nor failed.
    fn end_without_answer(
        &mut self,
        exchange: &Exchange,
        (ended, now): (Ended, u64),
        failure: Failure,
        cause: Option<&Failed>,
    ) {
        if ended == Ended::Interrupted {
            self.recorder.unanswered.add(now.saturating_sub(exchange.intended));
            return;
        }
        self.recorder.failed(exchange, now, failure, cause);
        self.record_request(exchange, now, None, Err(failure));
    }
}
