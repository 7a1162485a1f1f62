//! The time of one turn, and the number of requests that a thread begins in it.

use super::super::plan::Plan;

/// When a turn begins and ends, how many requests the thread may begin in it, and how many it has begun.
pub(super) struct TurnTime {
    /// The start in nanoseconds; `u64::MAX` before the turn begins and after it is over.
    pub(super) start: u64,
    /// The end in nanoseconds; no new request is sent from then on.
    pub(super) end: u64,
    /// The length in nanoseconds that is divided into parts.
    span: u64,
    parts: u64,
    /// The largest number of requests.
    pub(super) limit: u64,
    /// The number of requests begun in the turn, without those of the warm-up before it.
    begun: u64,
    /// Whether parts also end by the number of requests.
    by_count: bool,
    /// The time at which the last request was due.
    pub(super) last_due: u64,
}

impl TurnTime {
    /// The share of one thread in a turn that has not begun.
    pub(super) fn of(plan: &Plan, thread: u32) -> TurnTime {
        let (thread, threads) = (u64::from(thread), u64::from(plan.threads.count));
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

    /// Makes parts end when their share of the requests has begun, if that is before their time. It is for turns
    /// without a schedule.
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

    /// Whether the largest number of requests has begun.
    pub(super) fn is_used_up(&self) -> bool {
        self.begun >= self.limit
    }

    /// Counts a request that begins in this part.
    pub(super) fn count(&mut self, part: u16) {
        self.begun += u64::from(part > 0);
    }

    /// The part that a time belongs to: by the clock, or by the number of requests if that is ahead. Part 0 is the
    /// warm-up before the start.
    pub(super) fn part(&self, at: u64) -> u16 {
        if at < self.start {
            return 0;
        }
        let by_clock = (u128::from(at - self.start) * u128::from(self.parts) / u128::from(self.span)) as u64;
        let by_count = if self.by_count { self.begun.saturating_mul(self.parts) / self.limit } else { 0 };
        by_clock.max(by_count).min(self.parts - 1) as u16 + 1
    }

    /// The part at a time; `None` after the last part, which also ends with the last request if parts end by their
    /// number.
    pub(super) fn part_now(&self, now: u64) -> Option<u16> {
        let is_over = self.by_count && self.is_used_up() || now >= self.start.saturating_add(self.span);
        (!is_over).then(|| self.part(now))
    }
}
