//! Decides whether a closed loop polls for answers before it sleeps.
//!
//! A busy server answers within microseconds. If the generator sleeps in between, the server has to wake it for nearly
//! every answer, which costs the server answers. If polling ends when it has cost as much as a sleep, the total cost is
//! at most twice that of knowing beforehand which of the two is cheaper (Karlin, Li, Manasse and Owicki 1991,
//! "Empirical studies of competitive spinning for a shared-memory multiprocessor"). If polling fails, because the
//! server is slow or waits for this very core, it becomes rare.

/// The largest number of sleeps between two attempts to poll.
const LONGEST_REST: u32 = 64;

pub(super) struct PollOrSleep {
    polls: u32,
    /// The number of sleeps after the last attempt; 0 if it succeeded.
    rest: u32,
    /// How many sleeps remain before the next attempt.
    resting: u32,
}

impl PollOrSleep {
    /// Creates a decider whose attempts consist of this many polls.
    pub(super) fn new(polls: u32) -> PollOrSleep {
        PollOrSleep { polls, rest: 0, resting: 0 }
    }

    /// The number of polls before the next sleep.
    pub(super) fn polls(&mut self) -> u32 {
        if self.resting > 0 {
            self.resting -= 1;
            return 0;
        }
        self.polls
    }

    /// Records whether an attempt found something.
    pub(super) fn learn(&mut self, found: bool) {
        self.rest = if found { 0 } else { (self.rest * 2).clamp(1, LONGEST_REST) };
        self.resting = self.rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_in_vain_becomes_rare_and_success_brings_it_back() {
        let mut polling = PollOrSleep::new(10);
        let mut attempts = 0;
        for _ in 0..1000 {
            if polling.polls() > 0 {
                attempts += 1;
                polling.learn(false);
            }
        }
        assert!((15..30).contains(&attempts), "{attempts}");
        while polling.polls() == 0 {}
        polling.learn(true);
        assert_eq!(polling.polls(), 10);
    }
}
