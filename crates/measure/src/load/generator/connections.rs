//! The connections of one thread: which are open, which are being opened, and when failed ones are tried again.

use super::super::clock::Poller;
use super::super::connection::{Connection, ConnectionState, unconnected};
use super::super::failure::{Failed, Failure};
use super::super::plan::Plan;
use super::super::result::ConnectionOutcomes;
use super::super::socket;
use super::super::target::Address;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// The number of connections that one thread opens at a time; more would overflow the queue of most listening sockets.
const OPENED_AT_A_TIME: usize = 100;

/// The pause in nanoseconds before connecting again to a Unix socket whose queue had no room.
const QUEUE_FULL: u64 = 1_000_000;

/// The pause in nanoseconds after the first failed attempt. It doubles with each further one.
const FIRST_PAUSE: u64 = 10_000_000;

pub(super) struct Connections {
    pub(super) poller: Poller,
    pub(super) list: Vec<Connection>,
    /// The largest number of connections.
    most: usize,
    opening: usize,
    pub(super) open: usize,
    /// The time in nanoseconds since which no connection is open.
    pub(super) none_open_since: u64,
    /// The times at which failed connections are tried again, with their indices.
    retries: BinaryHeap<Reverse<(u64, u32)>>,
    /// The class of the last failed attempt.
    pub(super) last_failure: Option<Failure>,
    /// The reason of the first failed handshake.
    pub(super) tls_trouble: Option<String>,
}

impl Connections {
    /// A thread's share of the plan's connections, none of which is open yet.
    pub(super) fn new(plan: &Plan, thread: u32) -> io::Result<Connections> {
        let part = |whole: u32| {
            (whole / plan.threads.count + u32::from(thread < whole % plan.threads.count)) as usize
        };
        let most = if plan.by_clock() { plan.grow_to.max(plan.connections) } else { plan.connections };
        Ok(Connections {
            poller: Poller::new()?,
            list: (0..part(plan.connections)).map(|_| Connection::new()).collect(),
            most: part(most),
            opening: 0,
            open: 0,
            none_open_since: 0,
            retries: BinaryHeap::new(),
            last_failure: None,
            tls_trouble: None,
        })
    }

    /// Prepares a turn. Open connections stay open.
    pub(super) fn begin(&mut self) {
        (self.last_failure, self.tls_trouble) = (None, None);
        for connection in &mut self.list {
            (connection.queued, connection.freed, connection.outcomes) = (false, None, (0, 0));
        }
    }

    /// How the turn's requests went by connection.
    pub(super) fn outcomes(&self) -> ConnectionOutcomes {
        let of = |which: fn(&&Connection) -> bool| self.list.iter().filter(which);
        let mute = || of(|connection| connection.outcomes.0 == 0);
        ConnectionOutcomes {
            answering: of(|connection| connection.outcomes.0 > 0).count() as u32,
            mute: mute().filter(|connection| connection.outcomes.1 > 0).count() as u32,
            mute_timeouts: mute().map(|connection| connection.outcomes.1).sum(),
        }
    }

    /// Whether the thread may begin to open another connection.
    pub(super) fn may_open(&self) -> bool {
        self.opening < OPENED_AT_A_TIME
    }

    /// Whether no connection is open or being opened.
    pub(super) fn all_failed(&self) -> bool {
        self.open == 0 && self.opening == 0
    }

    /// Adds a connection if there may be more, and returns its index.
    pub(super) fn grow(&mut self) -> Option<usize> {
        if self.list.len() >= self.most || !self.may_open() {
            return None;
        }
        self.list.push(Connection::new());
        Some(self.list.len() - 1)
    }

    /// Begins to open a connection. If this returns an error, the caller must call [`Connections::failed_to_open`].
    pub(super) fn connect(&mut self, index: usize, address: &Address, now: u64) -> Result<(), Failure> {
        self.opening += 1;
        let begun = socket::connect(address)
            .and_then(|connecting| self.list[index].begin(connecting, index, &self.poller, now));
        match begun {
            // That the queue of a Unix socket is full is not a failure yet.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.opening -= 1;
                self.retries.push(Reverse((now + QUEUE_FULL, index as u32)));
                Ok(())
            }
            begun => begun.map_err(|error| unconnected(&error)),
        }
    }

    /// Records that a connection is open, and returns how long opening it took in nanoseconds.
    pub(super) fn opened(&mut self, index: usize, now: u64) -> u64 {
        let connection = &mut self.list[index];
        connection.link = ConnectionState::Up;
        connection.failed_attempts = 0;
        self.opening -= 1;
        self.open += 1;
        now - connection.since
    }

    /// Closes a connection, which may be opened again.
    pub(super) fn close(&mut self, index: usize, now: u64) {
        if self.list[index].link == ConnectionState::Up {
            self.open -= 1;
            if self.open == 0 {
                self.none_open_since = now;
            }
        }
        self.list[index].close();
    }

    /// Notes why the handshake or the encryption of a connection fails, which the caller must then report as a failure.
    pub(super) fn note_tls_trouble(&mut self, index: usize, why: String) {
        self.tls_trouble.get_or_insert_with(|| why.clone());
        self.list[index].cause = Some(Failed::Cause(Failure::Tls, why.into()));
    }

    /// Records that an attempt to connect has failed, and schedules the next one after a pause.
    pub(super) fn failed_to_open(&mut self, index: usize, class: Failure, now: u64) {
        self.opening -= 1;
        self.last_failure = Some(class);
        let connection = &mut self.list[index];
        connection.close();
        connection.failed_attempts += 1;
        let pause = FIRST_PAUSE << connection.failed_attempts.min(6).saturating_sub(1);
        self.retries.push(Reverse((now + pause, index as u32)));
    }

    /// A connection whose retry is due, if there is one.
    pub(super) fn due_retry(&mut self, now: u64) -> Option<usize> {
        while let Some(Reverse((at, index))) = self.retries.peek().copied() {
            if at > now {
                break;
            }
            self.retries.pop();
            if self.list[index as usize].link == ConnectionState::Down {
                return Some(index as usize);
            }
        }
        None
    }

    /// The earlier of the time of the next retry and `otherwise`.
    pub(super) fn next_retry(&self, otherwise: u64) -> u64 {
        self.retries.peek().map_or(otherwise, |Reverse((at, _))| otherwise.min(*at))
    }
}
