//! Whether the core on which cases were timed was shared with another hardware thread during a whole run.
//!
//! Other work on the same core makes code slower that keeps its execution units busy. If the core was shared in some of
//! the blocks, the fastest blocks show the difference, and the others are left out. If it was shared in nearly all of
//! them, only earlier runs on the machine can show it, or what is known of the processor.

use super::undisturbed_blocks::{self, DISTURBED};
use super::witnesses::{ADDITIONS, ADDITIONS_ALONE, BESIDE, in_fastest_blocks, time_alone};
use crate::subject::Arm;
use scruple_stats::quantile::median;

/// A core was shared if the additions took more than this multiple of what they take alone.
const SHARED: f64 = 1.1;

/// Beside another hardware thread, the additions take about twice as long as alone. If they take more than this multiple
/// of what is known of the processor, the processor is another one, as under an emulator.
const OTHER_PROCESSOR: f64 = 3.0;

/// The number of cycles that the additions take alone: the least of this run, of earlier runs, and of what is known of
/// the processor.
pub fn alone(now: f64, earlier: &[f64], of_processor: Option<f64>) -> f64 {
    let of_processor = of_processor.filter(|most| now < OTHER_PROCESSOR * most);
    earlier.iter().copied().chain(of_processor).fold(now, f64::min)
}

/// The factor by which code on a shared core may be slower than alone. Two hardware threads share the execution units of
/// a core about evenly. Code that needs other units than the additions may be slowed down more than these: a sort took
/// 1.8 times as long while additions took 1.4 times as long.
const SLOWEST: f64 = 2.0;

/// The factor by which a core that was shared in the blocks that count may have made code slower; 1 if it was not
/// shared, or if that is not known.
pub fn slowdown(tare: &Arm) -> f64 {
    if longer(tare).is_some() { SLOWEST } else { 1.0 }
}

/// How many times as long the additions took as alone, if the core was shared in the blocks that count.
pub fn longer(tare: &Arm) -> Option<f64> {
    let alone = least(tare, ADDITIONS_ALONE)?;
    let in_fastest = least(tare, ADDITIONS).filter(|additions| is_shared(*additions, alone));
    let beside = beside_in_undisturbed_blocks(tare).zip(time_alone(tare)).map(|(time, alone)| time / alone);
    in_fastest
        .map(|additions| additions / alone)
        .into_iter()
        .chain(beside.filter(|ratio| *ratio > DISTURBED))
        .reduce(f64::max)
}

/// The usual time of the additions beside the blocks that count, in nanoseconds.
fn beside_in_undisturbed_blocks(tare: &Arm) -> Option<f64> {
    let beside = undisturbed_blocks::counted(tare.sample(BESIDE)?, tare);
    (!beside.readings.is_empty()).then(|| median(&beside.readings))
}

/// The factor by which code may have been slower in one of two runs than in the other because the core was shared in
/// one of them.
pub(super) fn between(left: &Arm, right: &Arm) -> f64 {
    let fastest = least(left, ADDITIONS).zip(least(right, ADDITIONS));
    let differ = fastest.is_some_and(|(left, right)| is_shared(left.max(right), left.min(right)));
    if differ || longer(left).is_some() != longer(right).is_some() { SLOWEST } else { 1.0 }
}

fn least(tare: &Arm, key: &str) -> Option<f64> {
    Some(in_fastest_blocks(&tare.sample(key)?.readings))
}

/// Whether additions that took this many cycles shared the core, if they take `alone` cycles on a core of their own.
pub fn is_shared(additions: f64, alone: f64) -> bool {
    additions > SHARED * alone
}

#[cfg(test)]
mod tests {
    use super::super::undisturbed_blocks::tests::arm;
    use super::super::witnesses::CYCLE;
    use super::*;
    use crate::subject::Role;

    fn tare(additions: impl Fn(u32) -> f64, alone: Option<f64>) -> Arm {
        let additions = (0..60).map(|block| (block, additions(block))).collect();
        let alone = alone.map(|alone| (ADDITIONS_ALONE, vec![(0, alone)]));
        arm(Role::Tare, &[(ADDITIONS, additions)].into_iter().chain(alone).collect::<Vec<_>>())
    }

    #[test]
    fn a_core_that_is_shared_in_all_blocks_shows_against_one_alone() {
        let always = |_| 3_700.0;
        assert_eq!(slowdown(&tare(always, Some(2_700.0))), SLOWEST);
        assert_eq!(slowdown(&tare(always, None)), 1.0, "nothing else is known");
        let mostly = |block: u32| if block.is_multiple_of(10) { 2_700.0 } else { 3_700.0 };
        assert_eq!(slowdown(&tare(mostly, Some(2_700.0))), 1.0, "some blocks were alone");
        assert_eq!(slowdown(&tare(|_| 2_800.0, Some(2_700.0))), 1.0, "noise");
    }

    #[test]
    fn a_core_that_is_shared_in_most_of_the_blocks_that_count_made_them_slower() {
        // Alone, the additions take 2,700 cycles of 0.27 ns: 729 ns.
        let tare = |beside: fn(u32) -> f64, alone: Option<f64>| {
            let of_blocks = |of: fn(u32) -> f64| (0..60).map(|block| (block, of(block))).collect::<Vec<_>>();
            let mut samples = vec![
                (BESIDE, of_blocks(beside)),
                (CYCLE, of_blocks(|_| 0.27)),
                ("time.wall", of_blocks(|_| 2.5)),
            ];
            samples.extend(alone.map(|alone| (ADDITIONS_ALONE, vec![(0, alone)])));
            arm(Role::Tare, &samples)
        };
        let rarely_alone: fn(u32) -> f64 = |block| if block.is_multiple_of(30) { 730.0 } else { 1_100.0 };
        assert_eq!(slowdown(&tare(rarely_alone, Some(2_700.0))), SLOWEST);
        assert_eq!(slowdown(&tare(rarely_alone, None)), 1.0, "nothing else is known");
        let often_alone: fn(u32) -> f64 = |block| if block.is_multiple_of(6) { 730.0 } else { 1_100.0 };
        let counted = undisturbed_blocks::undisturbed(&tare(often_alone, Some(2_700.0))).expect("ten blocks");
        assert!(counted.iter().all(|block| block.is_multiple_of(6)), "{counted:?}");
        assert_eq!(slowdown(&tare(often_alone, Some(2_700.0))), 1.0);
        // The fastest blocks were not alone either, as the processor tells.
        let slower: fn(u32) -> f64 = |block| 930.0 + f64::from(block % 10) * 30.0;
        assert_eq!(slowdown(&tare(slower, Some(2_700.0))), SLOWEST);
        assert!(longer(&tare(slower, Some(2_700.0))).is_some_and(|longer| (1.3..1.6).contains(&longer)));
    }

    #[test]
    fn what_additions_take_alone_is_known_of_earlier_runs_or_of_the_processor() {
        let told = [
            alone(3_700.0, &[], Some(2_625.0)),
            alone(3_700.0, &[3_650.0, 2_700.0], None),
            alone(2_100.0, &[], Some(2_625.0)),
            alone(10_000.0, &[], Some(2_625.0)),
        ];
        // The last one is that of an emulator, which executes all additions one after the other.
        assert_eq!(told, [2_625.0, 2_700.0, 2_100.0, 10_000.0]);
    }

    #[test]
    fn of_two_runs_one_may_have_been_slower_because_it_shared_the_core() {
        let (alone, shared) = (tare(|_| 2_700.0, None), tare(|_| 3_700.0, None));
        for (left, right) in [(&alone, &shared), (&shared, &alone)] {
            assert_eq!(between(left, right), SLOWEST);
        }
        assert_eq!(between(&alone, &alone), 1.0);
    }
}
