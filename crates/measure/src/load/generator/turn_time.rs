//! The time of one turn, and the requests that a thread begins in it.

use super::super::plan::Plan;

/// When a turn begins and ends, how many requests it may have, and how many have begun.
pub(super) struct TurnTime {
    /// `u64::MAX` until it begins, and again once it is over.
    pub(super) start: u64,
    /// From here on nothing new is sent.
    pub(super) end: u64,
    /// What its parts divide, in nanoseconds; requests that were due before the end are answered within it.
    span: u64,
    parts: u64,
    /// The most requests.
    pub(super) limit: u64,
    /// Requests begun in it, those of the warm-up before it not among them.
    begun: u64,
    /// Whether its parts are ended by the count of requests as well.
    by_count: bool,
    /// When the last request was due.
    pub(super) last_due: u64,
}

impl TurnTime {
    /// The share of a thread in a turn that has not begun.
    pub(super) fn of(plan: &Plan, thread: u32) -> TurnTime {
        let (thread, threads) = (u64::from(thread), u64::from(plan.threads));
        let share = |most: u64| most / threads + u64::from(thread < most % threads);
        TurnTime {
            start: u64::MAX,
            end: u64::MAX,
            span: plan.span(),
            parts: u64::from(plan.parts),
            limit: plan.max_requests.map_or(u64::MAX, share),
            begun: 0,
            by_count: false,
            last_due: 0,
        }
    }

    pub(super) fn begin(&mut self, start: u64, plan: &Plan) {
        (self.start, self.last_due) = (start, start);
        self.end = start + plan.duration.as_nanos() as u64;
    }

    /// Nothing is scheduled: parts end when their share of the requests has begun, if that is before their time.
    pub(super) fn end_parts_by_count(&mut self) {
        self.by_count = self.limit < u64::MAX;
    }

    pub(super) fn finish(&mut self) {
        self.start = u64::MAX;
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.start < u64::MAX
    }

    /// Whether no new request may begin.
    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.end || self.is_used_up()
    }

    /// Whether as many requests have begun as may.
    pub(super) fn is_used_up(&self) -> bool {
        self.begun >= self.limit
    }

    /// Counts a request of that part.
    pub(super) fn count(&mut self, part: u16) {
        self.begun += u64::from(part > 0);
    }

    /// The part that a time belongs to: by the clock, or by the count of requests where that is ahead. 0 is the warm-up
    /// before the start.
    pub(super) fn part(&self, at: u64) -> u16 {
        if at < self.start {
            return 0;
        }
        let by_clock = (u128::from(at - self.start) * u128::from(self.parts) / u128::from(self.span)) as u64;
        let by_count = if self.by_count { self.begun.saturating_mul(self.parts) / self.limit } else { 0 };
        by_clock.max(by_count).min(self.parts - 1) as u16 + 1
    }

    /// The part at a time; none after the last.
    pub(super) fn part_now(&self, now: u64) -> Option<u16> {
        (now < self.start.saturating_add(self.span)).then(|| self.part(now))
    }
}
