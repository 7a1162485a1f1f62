//! What waits in one thread: requests for a connection, and connections for a request.

use super::super::connection::Connection;
use super::Due;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Queue {
    /// Requests that wait for a connection.
    requests: VecDeque<Due>,
    /// The most requests that waited at a time.
    pub(super) most: u64,
    /// Idle connections, the longest idle first.
    idle: VecDeque<u32>,
    /// Connections of a closed loop that have become idle and are used next, together.
    gathered: Vec<u32>,
}

impl Queue {
    /// Prepares a turn.
    pub(super) fn begin(&mut self) {
        self.idle.clear();
        self.gathered.clear();
        self.most = 0;
    }

    /// How many requests wait.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// A request waits for a connection.
    pub(super) fn push(&mut self, due: Due) {
        self.requests.push_back(due);
        self.most = self.most.max(self.requests.len() as u64);
    }

    /// A request waits before all others.
    pub(super) fn push_first(&mut self, due: Due) {
        self.requests.push_front(due);
    }

    /// The request that waits the longest.
    pub(super) fn pop(&mut self) -> Option<Due> {
        self.requests.pop_front()
    }

    /// Nothing waits any more.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
    }

    /// A connection that can take a request, if no other request waits.
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

    /// Keeps a connection that has become idle for the next request, or for the next use of all that were gathered.
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

    /// Takes the connections that were gathered; [`Queue::give_back`] returns the memory.
    pub(super) fn take_gathered(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.gathered)
    }

    pub(super) fn give_back(&mut self, gathered: Vec<u32>) {
        debug_assert!(self.gathered.is_empty());
        self.gathered = gathered;
    }
}
