//! Decides which launches of a search for leaks are made: all that fit into the budget, smallest sizes first.

use crate::progress::{Progress, in_words};
use std::time::{Duration, Instant};

/// The steepest growth of the run time with the size that is expected, as a power of the size.
const STEEPEST: f64 = 2.0;
/// Searches that are expected to take less are not announced.
const SHORT: Duration = Duration::from_secs(15);

/// The launches of all sizes, in rounds: every size once, then every size again. The readings of all sizes grow evenly
/// in number, so that the search can end at any moment.
pub struct LeakSchedule {
    /// The sizes, smallest first, each with its text.
    sizes: Vec<(f64, String)>,
    rounds: u32,
    started: Instant,
    budget: Duration,
    progress: Progress,
    announced: bool,
    /// The longest time of a launch of each size with the current instrument.
    took: Vec<Duration>,
    cut: bool,
}

/// A launch that is to be made.
pub struct ScheduledRun {
    /// The index of its size.
    pub size: usize,
    /// The time that is left for it.
    pub left: Duration,
}

impl LeakSchedule {
    /// Plans to launch each size `rounds` times within this budget, which begins now.
    pub fn new(sizes: &[(f64, String)], rounds: u32, budget: Duration) -> LeakSchedule {
        LeakSchedule {
            sizes: sizes.to_vec(),
            rounds,
            started: Instant::now(),
            budget,
            progress: Progress::new(),
            announced: false,
            took: Vec::new(),
            cut: false,
        }
    }

    /// The number of launches.
    pub fn count(&self) -> usize {
        self.sizes.len() * self.rounds as usize
    }

    /// The size at an index, as a number and as the text that the program receives.
    pub fn size(&self, at: usize) -> &(f64, String) {
        &self.sizes[at]
    }

    /// Forgets the times of launches, because the next launches have another instrument.
    pub fn begin(&mut self) {
        self.took.clear();
        self.cut = false;
    }

    /// The next launch after this many; `None` if all were made, or the budget does not suffice for it.
    pub fn next(&mut self, made: usize, name: &str) -> Option<ScheduledRun> {
        let all = self.count();
        if made >= all || self.cut {
            self.progress.clear();
            return None;
        }
        self.announce(made);
        let size = made % self.sizes.len();
        let left = self.left();
        if left.is_zero() || self.expected(size) > left {
            self.progress.clear();
            return None;
        }
        let rest = match self.took.len() {
            0 | 1 => String::new(),
            _ => format!("about {} left · ", in_words(self.rest(made))),
        };
        self.progress.steps(&format!("{rest}size {}", self.sizes[size].1), made, all, name);
        Some(ScheduledRun { size, left })
    }

    /// Notes how long a launch of a size took.
    pub fn made(&mut self, size: usize, took: Duration) {
        match self.took.get_mut(size) {
            Some(longest) => *longest = (*longest).max(took),
            None => self.took.push(took),
        }
    }

    /// Notes that a launch was ended because the budget was spent.
    pub fn cut(&mut self) {
        self.cut = true;
    }

    /// The time that is left.
    pub fn left(&self) -> Duration {
        self.budget.saturating_sub(self.started.elapsed())
    }

    /// The sizes without a launch, if any, as texts.
    pub fn left_out(&self) -> &[(f64, String)] {
        &self.sizes[self.took.len().min(self.sizes.len())..]
    }

    /// How long all launches would have taken together.
    pub fn whole(&self) -> Duration {
        (0..self.sizes.len()).map(|size| self.expected(size)).sum::<Duration>() * self.rounds
    }

    /// The expected time of a launch of a size: that of the longest one so far, or the power of the size that the two
    /// largest known sizes show.
    fn expected(&self, size: usize) -> Duration {
        if let Some(took) = self.took.get(size) {
            return *took;
        }
        let Some(last) = self.took.len().checked_sub(1) else { return Duration::ZERO };
        let seconds = |at: usize| self.took[at].as_secs_f64();
        let ratio = |from: usize, to: usize| self.sizes[to].0 / self.sizes[from].0;
        let power = match last {
            0 => 0.0,
            _ => ((seconds(last) / seconds(last - 1).max(1e-9)).ln() / ratio(last - 1, last).ln())
                .clamp(0.0, STEEPEST),
        };
        Duration::try_from_secs_f64(seconds(last) * ratio(last, size).powf(power))
            .unwrap_or(Duration::MAX / 1000)
    }

    fn rest(&self, made: usize) -> Duration {
        (made..self.count()).map(|run| self.expected(run % self.sizes.len())).sum()
    }

    /// Says what the search will take, once the three smallest sizes show it.
    fn announce(&mut self, made: usize) {
        const SHOWN_BY: usize = 3;
        if self.announced || made < SHOWN_BY.min(self.sizes.len()) {
            return;
        }
        self.announced = true;
        let rest = self.rest(made);
        let left = self.left();
        if rest > left {
            self.progress.say(&format!(
                "all launches would take about {} more, and {} of the budget are left: larger sizes or repetitions will be \
                 left out",
                in_words(rest),
                in_words(left)
            ));
        } else if rest > SHORT {
            self.progress.say(&format!("the remaining launches will take about {}", in_words(rest)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(budget: u64) -> LeakSchedule {
        let sizes = [1.0, 2.0, 4.0, 8.0].map(|size: f64| (size, size.to_string()));
        LeakSchedule {
            progress: Progress::hidden(),
            ..LeakSchedule::new(&sizes, 2, Duration::from_secs(budget))
        }
    }

    #[test]
    fn every_size_runs_once_before_any_runs_twice() {
        let mut schedule = schedule(3600);
        let mut order = Vec::new();
        while let Some(turn) = schedule.next(order.len(), "prog") {
            schedule.made(turn.size, Duration::from_millis(1));
            order.push(turn.size);
        }
        assert_eq!(order, [0, 1, 2, 3, 0, 1, 2, 3]);
        assert!(schedule.left_out().is_empty());
    }

    #[test]
    fn a_size_that_would_take_too_long_is_left_out() {
        let mut schedule = schedule(100);
        for (size, seconds) in [1, 3, 9].into_iter().enumerate() {
            assert_eq!(schedule.next(size, "prog").map(|turn| turn.size), Some(size));
            schedule.made(size, Duration::from_secs(seconds * 5));
        }
        // Threefold at each doubling: 135 s for the next.
        assert_eq!(schedule.expected(3).as_secs(), 135);
        assert!(schedule.next(3, "prog").is_none());
        assert_eq!(schedule.left_out().len(), 1);
    }
}
