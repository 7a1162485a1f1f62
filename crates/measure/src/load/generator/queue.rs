//! The queues of one thread: requests that wait for a connection, and connections that wait for a request.

use super::super::connection::Connection;
use super::super::exchange::Exchange;
use super::due_request::DueRequest;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Queue {
    /// Requests that wait for a connection.
    requests: VecDeque<DueRequest>,
    /// Requests that the server did not process. They are sent again before all others.
    pub(super) repeated: VecDeque<Exchange>,
    /// The largest number of requests that waited at one time.
    pub(super) most: u64,
    /// Idle connections, the longest idle one first.
    idle: VecDeque<u32>,
    /// Connections of a closed loop that have become idle, and will be used together.
    gathered: Vec<u32>,
}

impl Queue {
    /// Prepares a turn.
    pub(super) fn begin(&mut self) {
        self.idle.clear();
        self.gathered.clear();
        self.most = 0;
    }

    /// The number of waiting requests.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.repeated.is_empty()
    }

    /// Appends a request that waits for a connection.
    pub(super) fn push(&mut self, due: DueRequest) {
        self.requests.push_back(due);
        self.most = self.most.max(self.requests.len() as u64);
    }

    /// Inserts a request before all others that wait.
    pub(super) fn push_first(&mut self, due: DueRequest) {
        self.requests.push_front(due);
    }

    /// Removes the request that has waited longest.
    pub(super) fn pop(&mut self) -> Option<DueRequest> {
        self.requests.pop_front()
    }

    /// Removes all waiting requests.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.repeated.clear();
    }

    /// Removes an idle connection that can take a request; `None` if other requests wait or no connection is free.
    pub(super) fn take_idle(&mut self, connections: &mut [Connection]) -> Option<usize> {
        if !self.requests.is_empty() {
            return None;
        }
        while let Some(index) = self.idle.pop_front() {
            let connection = &mut connections[index as usize];
            connection.queued = false;
            if connection.is_free() {
                return Some(index as usize);
            }
        }
        None
    }

    /// Adds a connection that has become idle: with `gather` to those that are used together, else to the idle ones.
    pub(super) fn offer(&mut self, index: usize, connection: &mut Connection, gather: bool) {
        if connection.is_free() && !connection.queued {
            connection.queued = true;
            if gather {
                self.gathered.push(index as u32);
            } else {
                self.idle.push_back(index as u32);
            }
        }
    }

    /// Takes the gathered connections; [`Queue::give_back`] returns the memory.
    pub(super) fn take_gathered(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.gathered)
    }

    pub(super) fn give_back(&mut self, gathered: Vec<u32>) {
        debug_assert!(self.gathered.is_empty());
        self.gathered = gathered;
    }
}
