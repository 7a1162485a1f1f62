//! The processor times of two programs, and whether they contradict the counts of instructions.

use scruple_stats::paired::{self, Effect};
use scruple_stats::quantile::median;

/// The level of the interval of time that is shown.
const LEVEL: f64 = 0.95;

/// The level at which times contradict the instructions. Two launches of the same program must never do that, whatever else
/// runs on the machine: at this level, fewer than one in a thousand pairs do. It takes 11 blocks.
const CERTAIN: f64 = 0.999;

/// The difference in time from which times are compared with instructions.
const DISAGREES: f64 = 0.03;

/// The processor times of both sides.
pub struct Time {
    /// The median of each side, in nanoseconds.
    pub medians: (f64, f64),
    /// The ratio of the times with its interval, if there were enough launches.
    pub effect: Option<Effect>,
    /// The same at the level at which times contradict the instructions.
    certain: Option<Effect>,
}

impl Time {
    /// Compares the times of launches in shared blocks. `None` if there are none.
    pub fn of([first, second]: &[Vec<f64>; 2]) -> Option<Time> {
        if first.is_empty() || first.len() != second.len() {
            return None;
        }
        let effect = |level| paired::effect(first, second, level).ok();
        Some(Time {
            medians: (median(first), median(second)),
            effect: effect(LEVEL),
            certain: effect(CERTAIN),
        })
    }

    /// Whether the times contradict the ratio of the instructions.
    pub fn contradicts(&self, counted: f64) -> bool {
        self.certain.as_ref().is_some_and(|effect| is_against(effect, counted))
    }

    /// Whether the times may contradict the ratio of the instructions, so that more launches must show it.
    pub fn may_contradict(&self, counted: f64) -> bool {
        self.certain.is_none() && self.effect.as_ref().is_some_and(|effect| is_against(effect, counted))
    }
}

fn is_against(effect: &Effect, counted: f64) -> bool {
    let (low, high) = (effect.interval.low, effect.interval.high);
    let less = |ratio: f64| ratio < 1.0;
    let matters = |ratio: f64| (ratio - 1.0).abs() > DISAGREES;
    match low > 1.0 || high < 1.0 {
        true => matters(effect.ratio) && (!matters(counted) || less(counted) != less(effect.ratio)),
        false => matters(counted) && !(low..=high).contains(&counted),
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    /// Times of this many blocks, in each of which the second program takes less by chance.
    fn times(blocks: u32) -> Time {
        let each =
            |factor: f64| (0..blocks).map(|block| factor * (100.0 + f64::from(block * block))).collect();
        Time::of(&[each(1.0), each(0.9)]).expect("times")
    }

    #[test]
    fn eight_blocks_never_contradict_the_instructions() {
        let few = times(8);
        assert!(
            few.may_contradict(1.0) && !few.contradicts(1.0),
            "one in 128 pairs without a difference is like that"
        );
        let many = times(16);
        assert!(many.contradicts(1.0) && !many.may_contradict(1.0));
        assert!(!many.contradicts(0.9) && !few.may_contradict(0.9));
    }

    #[test]
    fn an_equal_time_contradicts_more_instructions() {
        let equal = |blocks| Time::of(&[vec![100.0; blocks], vec![100.0; blocks]]).expect("times");
        assert!(equal(16).contradicts(1.5) && !equal(8).contradicts(1.5));
    }
}
