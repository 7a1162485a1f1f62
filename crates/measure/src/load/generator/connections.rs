//! The connections of one thread: which are open, which are being opened, and when to try again.

use super::super::clock::Poller;
use super::super::connection::{Connection, Link, unconnected};
use super::super::failure::Failure;
use super::super::plan::Plan;
use super::super::socket;
use super::super::target::Address;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// The number of connections that one thread opens at a time; more would overflow the queue of most listening sockets.
const OPENED_AT_A_TIME: usize = 100;

/// The pause before a connection is tried again for which the queue of a Unix socket had no room.
const QUEUE_FULL: u64 = 1_000_000;

/// The pause after the first failed attempt, which doubles with each.
const FIRST_PAUSE: u64 = 10_000_000;

pub(super) struct Connections {
    pub(super) poller: Poller,
    pub(super) list: Vec<Connection>,
    /// How many there may be.
    most: usize,
    opening: usize,
    pub(super) open: usize,
    /// Since when none is open.
    pub(super) none_open_since: u64,
    /// When those that failed are to be tried again.
    retries: BinaryHeap<Reverse<(u64, u32)>>,
    /// Why the last attempt failed.
    pub(super) last_failure: Option<Failure>,
    /// What was wrong with the first failed handshake.
    pub(super) tls_trouble: Option<String>,
}

impl Connections {
    /// A thread's share of the plan's connections. None is open.
    pub(super) fn new(plan: &Plan, thread: u32) -> io::Result<Connections> {
        let part = |whole: u32| (whole / plan.threads + u32::from(thread < whole % plan.threads)) as usize;
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

    /// Prepares a turn. What is open stays open.
    pub(super) fn begin(&mut self) {
        (self.last_failure, self.tls_trouble) = (None, None);
        for connection in &mut self.list {
            (connection.queued, connection.freed) = (false, None);
        }
    }

    /// Whether one more may be opened now.
    pub(super) fn may_open(&self) -> bool {
        self.opening < OPENED_AT_A_TIME
    }

    /// Adds one where there may be more. Returns its index.
    pub(super) fn grow(&mut self) -> Option<usize> {
        if self.list.len() >= self.most || !self.may_open() {
            return None;
        }
        self.list.push(Connection::new());
        Some(self.list.len() - 1)
    }

    /// Begins to open one. An error says why that failed; [`Connections::failed_to_open`] is to be called then.
    pub(super) fn connect(&mut self, index: usize, address: &Address, now: u64) -> Result<(), Failure> {
        self.opening += 1;
        let begun = socket::connect(address)
            .and_then(|connecting| self.list[index].begin(connecting, index, &self.poller, now));
        match begun {
            // The queue of a Unix socket is full: that is no failure yet.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.opening -= 1;
                self.retries.push(Reverse((now + QUEUE_FULL, index as u32)));
                Ok(())
            }
            begun => begun.map_err(|error| unconnected(&error)),
        }
    }

    /// One is open. Returns how long that took.
    pub(super) fn opened(&mut self, index: usize, now: u64) -> u64 {
        let connection = &mut self.list[index];
        connection.link = Link::Up;
        connection.failed_attempts = 0;
        self.opening -= 1;
        self.open += 1;
        now - connection.since
    }

    /// Closes one. It may be opened again.
    pub(super) fn close(&mut self, index: usize, now: u64) {
        if self.list[index].link == Link::Up {
            self.open -= 1;
            if self.open == 0 {
                self.none_open_since = now;
            }
        }
        self.list[index].close();
    }

    /// An attempt has failed: the next one is delayed.
    pub(super) fn failed_to_open(&mut self, index: usize, class: Failure, now: u64) {
        self.opening -= 1;
        self.last_failure = Some(class);
        let connection = &mut self.list[index];
        connection.close();
        connection.failed_attempts += 1;
        let pause = FIRST_PAUSE << connection.failed_attempts.min(6).saturating_sub(1);
        self.retries.push(Reverse((now + pause, index as u32)));
    }

    /// One that is to be tried again by now.
    pub(super) fn due_retry(&mut self, now: u64) -> Option<usize> {
        while let Some(Reverse((at, index))) = self.retries.peek().copied() {
            if at > now {
                break;
            }
            self.retries.pop();
            if self.list[index as usize].link == Link::Down {
                return Some(index as usize);
            }
        }
        None
    }

    /// When the next one is to be tried again, if that is before `otherwise`.
    pub(super) fn next_retry(&self, otherwise: u64) -> u64 {
        self.retries.peek().map_or(otherwise, |Reverse((at, _))| otherwise.min(*at))
    }
}
