//! A request that is due.

use crate::load::exchange::Exchange;

/// A request that is due.
#[derive(Clone, Copy)]
pub(super) struct DueRequest {
    pub(super) at: u64,
    /// The index of the user who sends it, or [`NO_USER`](crate::load::exchange::NO_USER).
    pub(super) user: u32,
    /// How much of the time since then the generator itself was late.
    pub(super) late: u64,
}

impl DueRequest {
    /// Returns the exchange in which this request is sent at `now`. It carries its own lateness only.
    pub(super) fn exchange(&self, request: u32, part: u16, now: u64) -> Exchange {
        let DueRequest { at, user, late } = *self;
        Exchange { request, part, intended: at, sent: now, late, carried: late, user, repeats: 0 }
    }
}
