//! Passes every single request to a consumer, such as a file.

use super::failure::Failure;
use super::record::Exchange;
use std::sync::mpsc::Sender;

/// One request. Times are nanoseconds since the start of its turn; negative in a warm-up before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EachRequest {
    /// Which of the plan's requests it was.
    pub request: u32,
    /// When it was due.
    pub due: i64,
    /// When it was sent, or failed without being sent.
    pub sent: i64,
    /// When it was answered, or failed.
    pub done: i64,
    /// The status of the answer; none where there was none.
    pub status: Option<u16>,
    /// Bytes of content of a good answer.
    pub bytes: u64,
    /// How it failed; none where it was answered well.
    pub failure: Option<Failure>,
}

/// Requests of one turn of one server, in the order in which they ended.
#[derive(Debug)]
pub struct Batch {
    /// The server's place among those of the run.
    pub server: usize,
    /// The turn.
    pub turn: u32,
    /// The requests.
    pub requests: Vec<EachRequest>,
}

/// Where the requests of a turn are sent.
#[derive(Clone, Debug)]
pub struct Listeners {
    /// The server's place among those of the run.
    pub server: usize,
    /// The turn.
    pub turn: u32,
    /// Takes them in batches, so that a file does not delay the generator.
    pub sender: Sender<Batch>,
}

impl PartialEq for Listeners {
    /// They are not compared: plans that differ only in them send the same.
    fn eq(&self, _: &Listeners) -> bool {
        true
    }
}

/// Requests in a batch.
const BATCH: usize = 4096;

/// The batch of one thread.
pub(crate) struct RequestSink {
    to: Listeners,
    start: u64,
    requests: Vec<EachRequest>,
}

impl RequestSink {
    pub(crate) fn of(to: &Listeners) -> RequestSink {
        RequestSink { to: to.clone(), start: 0, requests: Vec::with_capacity(BATCH) }
    }

    /// The turn starts at a time.
    pub(crate) fn begin(&mut self, start: u64) {
        self.start = start;
    }

    pub(crate) fn tell(
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
            // A consumer that has stopped listening has reported the reason itself.
            let _ = self.to.sender.send(Batch { server: self.to.server, turn: self.to.turn, requests });
        }
    }
}
