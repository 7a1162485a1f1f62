//! Whether a closed loop polls for answers before it sleeps.
//!
//! A busy server answers within microseconds. A generator that sleeps in between has to be woken for nearly every
//! answer, and the server does the waking, which costs it answers. Polling for no longer than a sleep costs is at most
//! twice as expensive as knowing beforehand which of the two is cheaper (Karlin, Li, Manasse and Owicki 1991,
//! "Empirical studies of competitive spinning for a shared-memory multiprocessor"). Where polling fails, because the
//! server is slow or waits for this very core, it becomes rare.

/// The most sleeps between two attempts.
const LONGEST_REST: u32 = 64;

pub(super) struct Patience {
    looks: u32,
    /// Sleeps after the last attempt, if that failed.
    rest: u32,
    /// How many of them remain.
    resting: u32,
}

impl Patience {
    /// With this many polls in an attempt.
    pub(super) fn new(looks: u32) -> Patience {
        Patience { looks, rest: 0, resting: 0 }
    }

    /// How often to poll before the next sleep.
    pub(super) fn looks(&mut self) -> u32 {
        if self.resting > 0 {
            self.resting -= 1;
            return 0;
        }
        self.looks
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
        let mut patience = Patience::new(10);
        let mut attempts = 0;
        for _ in 0..1000 {
            if patience.looks() > 0 {
                attempts += 1;
                patience.learn(false);
            }
        }
        assert!((15..30).contains(&attempts), "{attempts}");
        while patience.looks() == 0 {}
        patience.learn(true);
        assert_eq!(patience.looks(), 10);
    }
}
