//! How the rate or the number of users changes over time.

use std::time::Duration;

/// A part of a load in which the level is constant, or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// How long the stage lasts.
    pub duration: Duration,
    /// The level at the beginning: sessions per second in the open model, users in the closed one.
    pub from: f64,
    /// The level at the end.
    pub to: f64,
}

impl Stage {
    fn seconds(&self) -> f64 {
        self.duration.as_secs_f64()
    }

    /// The number of sessions that start in the stage.
    fn sessions(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.seconds()
    }

    /// When `sessions` sessions of the stage have started, in seconds from its start: the root of the integral of the
    /// level.
    fn time_of(&self, sessions: f64) -> f64 {
        let slope = (self.to - self.from) / self.seconds();
        let root = (self.from * self.from + 2.0 * slope * sessions).max(0.0).sqrt();
        // This form of the root avoids cancellation.
        let sum = self.from + root;
        if sum > 0.0 { (2.0 * sessions / sum).min(self.seconds()) } else { 0.0 }
    }
}

/// When `sessions` sessions have started, in nanoseconds from the start of the first stage; `None` if there are
/// fewer.
pub(crate) fn time_of(stages: &[Stage], sessions: f64) -> Option<u64> {
    let (mut left, mut before) = (sessions, 0.0);
    for stage in stages {
        let all = stage.sessions();
        if left < all {
            return Some(((before + stage.time_of(left)) * 1e9) as u64);
        }
        left -= all;
        before += stage.seconds();
    }
    None
}

/// The level at a time in nanoseconds from the start of the first stage; 0 after the last.
pub(crate) fn level(stages: &[Stage], at: u64) -> f64 {
    let mut left = at as f64 / 1e9;
    for stage in stages {
        if left < stage.seconds() {
            return stage.from + (stage.to - stage.from) * left / stage.seconds();
        }
        left -= stage.seconds();
    }
    0.0
}

/// The arrivals of users in order: the time in nanoseconds, and the user's number. User `n` is present while the
/// level is above `n`.
pub(crate) fn arrivals(stages: &[Stage]) -> Vec<(u64, u32)> {
    let (mut found, mut before, mut level) = (Vec::new(), 0.0, 0.0);
    let numbers = |from: f64, to: f64| (from.max(0.0).ceil() as u32)..(to.max(0.0).ceil() as u32);
    for stage in stages {
        let at = |seconds: f64| (seconds * 1e9) as u64;
        found.extend(numbers(level, stage.from).map(|user| (at(before), user)));
        if stage.to > stage.from {
            let rise = stage.to - stage.from;
            let when = |user: u32| before + (f64::from(user) - stage.from) / rise * stage.seconds();
            found.extend(numbers(stage.from, stage.to).map(|user| (at(when(user)), user)));
        }
        level = stage.to;
        before += stage.seconds();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: u64, from: f64, to: f64) -> Stage {
        Stage { duration: Duration::from_secs(seconds), from, to }
    }

    #[test]
    fn sessions_begin_where_the_integral_of_the_rate_says() {
        let stages = [stage(10, 0.0, 100.0), stage(5, 100.0, 100.0), stage(10, 100.0, 0.0)];
        let at = |sessions: f64| time_of(&stages, sessions).map(|ns| ns as f64 / 1e9);
        assert_eq!(at(0.0), Some(0.0));
        // The integral of 10 t is 5 t².
        assert!((at(125.0).expect("within") - 5.0).abs() < 1e-6);
        assert!((at(600.0).expect("within") - 11.0).abs() < 1e-6);
        assert!((at(1000.0 + 375.0).expect("within") - 20.0).abs() < 1e-6);
        assert_eq!(at(1500.0), None);
        let all = (0..).map_while(|session| time_of(&stages, f64::from(session))).collect::<Vec<_>>();
        assert!(all.is_sorted() && all.len() == 1500, "{}", all.len());
    }

    #[test]
    fn users_come_as_the_level_rises_above_their_number() {
        let stages = [stage(10, 0.0, 5.0), stage(10, 2.0, 2.0), stage(10, 2.0, 4.0)];
        let seconds: Vec<(f64, u32)> =
            arrivals(&stages).iter().map(|(at, user)| (*at as f64 / 1e9, *user)).collect();
        let first = [(0.0, 0), (2.0, 1), (4.0, 2), (6.0, 3), (8.0, 4)];
        assert_eq!(seconds, [&first[..], &[(20.0, 2), (25.0, 3)]].concat());
        assert_eq!([level(&stages, 0), level(&stages, 4_000_000_000)], [0.0, 2.0]);
        assert_eq!([level(&stages, 12_000_000_000), level(&stages, 31_000_000_000)], [2.0, 0.0]);
        assert_eq!(arrivals(&[stage(1, 3.0, 3.0)]), [(0, 0), (0, 1), (0, 2)]);
    }
}
