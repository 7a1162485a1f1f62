//! A request in flight.

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) request: u32,
    pub(crate) part: u16,
    pub(crate) intended: u64,
    pub(crate) sent: u64,
    /// How much of the time from due to sent the generator itself was late.
    pub(crate) late: u64,
    /// How much of the response may be due to lateness: its own, or that of requests in flight at the same time, for
    /// which it may have to wait.
    pub(crate) carried: u64,
    /// The index of the user who sent it, or [`NO_USER`].
    pub(crate) user: u32,
    /// How often it was sent before to a server that said that it did not process it.
    pub(crate) repeats: u8,
}

/// The value of `user` for requests that belong to no session.
pub(crate) const NO_USER: u32 = u32::MAX;
