//! Passes every single request on to a consumer, such as a file.

use super::exchange::Exchange;
use super::failure::Failure;
use std::sync::mpsc::Sender;

/// The record of one request. Times are in nanoseconds since the start of the turn; negative in a warm-up before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EachRequest {
    /// The index of the request in the plan.
    pub request: u32,
    /// When the request was due.
    pub due: i64,
    /// When the request was sent, or failed without being sent.
    pub sent: i64,
    /// When the request was answered or failed.
    pub done: i64,
    /// The status of the answer; `None` if there was no answer.
    pub status: Option<u16>,
    /// The number of bytes of content of a good answer.
    pub bytes: u64,
    /// How the request failed; `None` if it was answered well.
    pub failure: Option<Failure>,
}

/// Records of requests of one turn of one server, in the order in which the requests ended.
#[derive(Debug)]
pub struct RequestBatch {
    /// The index of the server in the run.
    pub server: usize,
    /// The number of the turn.
    pub turn: u32,
    /// The requests.
    pub requests: Vec<EachRequest>,
}

/// The consumer of the requests of a turn.
#[derive(Clone, Debug)]
pub struct RequestReceiver {
    /// The index of the server in the run.
    pub server: usize,
    /// The number of the turn.
    pub turn: u32,
    /// The channel that takes batches, so that writing a file does not delay the generator.
    pub sender: Sender<RequestBatch>,
}

impl PartialEq for RequestReceiver {
    /// Always true: plans that differ only in their receiver send the same requests.
    fn eq(&self, _: &RequestReceiver) -> bool {
        true
    }
}

/// The number of requests in a full batch.
const BATCH: usize = 4096;

/// Collects the requests of one thread into batches.
pub(crate) struct RequestSink {
    to: RequestReceiver,
    start: u64,
    requests: Vec<EachRequest>,
}

impl RequestSink {
    pub(crate) fn of(to: &RequestReceiver) -> RequestSink {
        RequestSink { to: to.clone(), start: 0, requests: Vec::with_capacity(BATCH) }
    }

    /// Sets the time at which the turn starts, in nanoseconds on the monotonic clock.
    pub(crate) fn begin(&mut self, start: u64) {
        self.start = start;
    }

    pub(crate) fn record(
        &mut self,
        exchange: &Exchange,
        done: u64,
        status: Option<u16>,
        outcome: Result<u64, Failure>,
    ) {
        let at = |time: u64| time as i64 - self.start as i64;
        self.requests.push(EachRequest {
            request: exchange.request,
            due: at(exchange.intended),
            sent: at(exchange.sent),
            done: at(done),
            status,
            bytes: outcome.unwrap_or(0),
            failure: outcome.err(),
        });
        if self.requests.len() >= BATCH {
            self.flush();
        }
    }

    /// Passes on the remaining requests.
    pub(crate) fn flush(&mut self) {
        let requests = std::mem::replace(&mut self.requests, Vec::with_capacity(BATCH));
        if !requests.is_empty() {
            // If the consumer has stopped listening, it has reported the reason itself.
            let _ =
                self.to.sender.send(RequestBatch { server: self.to.server, turn: self.to.turn, requests });
        }
    }
}
