//! Selects the blocks that count: those in which the machine did not disturb the program.

use super::witnesses::{BESIDE, WAITED, WITNESS, in_fastest_blocks, time_alone};
use crate::metric::Pass;
use crate::sample::Sample;
use crate::subject::Arm;
use scruple_stats::quantile::median;
use scruple_stats::sorting;
use std::collections::BTreeSet;

/// A block is undisturbed if its witness took at most this multiple of the time of the fastest ones.
pub(super) const DISTURBED: f64 = 1.25;

/// A block is undisturbed if the program waited for at most this share of it.
pub const MOST_WAITED: f64 = 0.02;

/// The blocks in which the machine did not disturb the program; `None` where there are too few. The scheduler's record
/// of waiting is used first, then the witness.
pub fn undisturbed(tare: &Arm) -> Option<BTreeSet<u32>> {
    let at_once = at_once(tare);
    let alone = alone(tare).filter(|(blocks, all)| enough(blocks, *all));
    match (at_once, alone) {
        (Some(at_once), Some((alone, all))) => {
            let both: BTreeSet<u32> = sorting::set(at_once.intersection(&alone).copied());
            Some(if enough(&both, all) { both } else { at_once })
        }
        (at_once, alone) => at_once.or(alone.map(|(blocks, _)| blocks)),
    }
}

/// The blocks in which the program hardly waited for a core, by the scheduler's record; `None` where there are too few,
/// or no record.
fn at_once(tare: &Arm) -> Option<BTreeSet<u32>> {
    let waited = tare.sample(WAITED)?;
    Some(at_most(waited, MOST_WAITED)).filter(|blocks| enough(blocks, waited.readings.len()))
}

fn enough(blocks: &BTreeSet<u32>, all: usize) -> bool {
    blocks.len() >= LEAST_CALM && blocks.len() * 20 >= all
}

/// The blocks in which the program had the core to itself, and the number of all blocks. The witness is the program's
/// own where it has one, else the tare and what Scruple did beside the block; where these two leave too few blocks, the
/// latter alone.
///
/// On a processor whose cores are shared with a neighbour (hyper-threads, a hypervisor), every loop has two speeds, and
/// the median of all batches has one or the other by chance: figures of one program then differ by half between
/// invocations. A witness runs next to the case, does the same work each time, and so shows the speed of the core.
/// Selecting blocks by the witness does not bias the case, whose own variation stays complete. A tare is a good witness
/// only where it keeps the core busy: a tare that mostly waits for its own results has the same speed in both states.
fn alone(tare: &Arm) -> Option<(BTreeSet<u32>, usize)> {
    if let Some(own) = tare.sample(WITNESS) {
        return Some((quick(own), own.readings.len()));
    }
    let time = tare.sample("time.wall")?;
    let by_tare = is_long(tare).then(|| quick(time));
    let by_scruple = tare.sample(BESIDE).map(|beside| {
        let fastest = in_fastest_blocks(&beside.readings);
        let fastest = time_alone(tare).map_or(fastest, |alone| alone.min(fastest));
        let slow = &sorting::set(beside.blocks.iter().copied()) - &at_most(beside, DISTURBED * fastest);
        &sorting::set(time.blocks.iter().copied()) - &slow
    });
    let all = time.readings.len();
    let found = match (by_tare, by_scruple) {
        (Some(by_tare), Some(by_scruple)) => {
            let both = &by_tare & &by_scruple;
            if enough(&both, all) { both } else { by_scruple }
        }
        (by_tare, by_scruple) => by_scruple.or(by_tare)?,
    };
    Some((found, all))
}

/// The blocks in which a witness was about as fast as in the fastest ones.
fn quick(witness: &Sample) -> BTreeSet<u32> {
    at_most(witness, DISTURBED * in_fastest_blocks(&witness.readings))
}

fn at_most(sample: &Sample, limit: f64) -> BTreeSet<u32> {
    let readings = sample.blocks.iter().zip(&sample.readings);
    sorting::set(readings.filter(|(_, reading)| **reading <= limit).map(|(block, _)| *block))
}

/// A batch of a tare that takes less than this, in nanoseconds, consists mostly of clock reads, and does not show the
/// speed of the core.
const SHORT: f64 = 2_000.0;

/// Whether the batches of a tare are long enough for a witness; true where their iterations are not known.
fn is_long(tare: &Arm) -> bool {
    let (Some(time), Some(iterations)) = (tare.sample("time.wall"), tare.sample("batch.iterations")) else {
        return true;
    };
    let (time, iterations) = time.paired(iterations);
    let lengths: Vec<f64> = time.iter().zip(&iterations).map(|(time, count)| time * count).collect();
    lengths.is_empty() || median(&lengths) >= SHORT
}

/// With fewer undisturbed blocks than this, all blocks are used instead.
const LEAST_CALM: usize = 6;

/// The readings of a sample that were taken in these blocks.
pub fn within(sample: &Sample, blocks: &BTreeSet<u32>) -> Sample {
    let (kept, readings) = sample
        .blocks
        .iter()
        .zip(&sample.readings)
        .filter(|(block, _)| blocks.contains(block))
        .map(|(block, reading)| (*block, *reading))
        .unzip();
    Sample { blocks: kept, readings, ..sample.clone() }
}

/// The readings of a case or a tare that count: those of undisturbed blocks, where there are enough.
pub fn counted(sample: &Sample, tare: &Arm) -> Sample {
    match undisturbed(tare) {
        Some(calm) if sample.pass == Pass::Timing => within(sample, &calm),
        _ => sample.clone(),
    }
}

/// Whether the machine disturbed nearly all blocks. The median is then too high, and intervals reach down to the
/// smallest reading. If a program waited for a core in nearly all blocks, nearly all were disturbed, even if the
/// witness did not wait.
pub(super) fn is_starved(tare: &Arm) -> bool {
    match tare.sample(WAITED) {
        Some(_) => at_once(tare).is_none(),
        None => alone(tare).is_some() && undisturbed(tare).is_none(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::bench_cases::net_estimate;
    use super::*;
    use crate::metric::{Metric, Quality};
    use crate::sample::{Figure, Reading};
    use crate::subject::{Role, Subject};
    use crate::unit::Unit;

    /// An arm of a case with readings of times, each with its block.
    pub(in crate::judge) fn arm(role: Role, figures: &[(&str, Vec<(u32, f64)>)]) -> Arm {
        let mut arm = Arm::new("f", Subject::case("f", Vec::new()), role);
        for (key, readings) in figures {
            let metric = Metric::custom(key, Unit::Nanoseconds, Quality::Noisy, Pass::Timing);
            let mut figure = None;
            for (block, value) in readings {
                Figure::add(&mut figure, Reading::of(&metric, *value, "test"), Pass::Timing, *block);
            }
            arm.figures.extend(figure.map(|figure| ((*key).to_owned(), figure)));
        }
        arm
    }

    /// A neighbour shares the core in two of three blocks, and the case then takes twice as long.
    const fn is_shared(block: u32) -> bool {
        !block.is_multiple_of(3)
    }

    fn by_block(of: impl Fn(u32) -> f64) -> Vec<(u32, f64)> {
        (0..60).map(|block| (block, of(block))).collect()
    }

    #[test]
    fn where_the_tare_does_not_show_a_shared_core_the_witness_beside_it_does() {
        let double = |one: f64| by_block(|block| if is_shared(block) { 2.0 * one } else { one });
        let case = arm(Role::Subject, &[("time.wall", double(19.0))]);
        let blind = by_block(|_| 2.7);
        let found = |figures: &[(&str, Vec<(u32, f64)>)]| {
            net_estimate(&case, &arm(Role::Tare, figures), "time.wall").expect("a net")
        };
        let time = ("time.wall", blind.clone());
        assert!((found(std::slice::from_ref(&time)) - 35.3).abs() < 1e-9);
        assert!((found(&[time.clone(), (BESIDE, double(731.0))]) - 16.3).abs() < 1e-9);
        // A block without a reading was not disturbed: the program itself ran beside the witness.
        let known = double(731.0).into_iter().filter(|(block, _)| *block != 1).collect();
        let some = arm(Role::Tare, &[time.clone(), (BESIDE, known)]);
        let kept = undisturbed(&some).expect("enough blocks");
        assert!(kept.contains(&0) && kept.contains(&1) && !kept.contains(&2), "{kept:?}");
        assert_eq!(kept.len(), 21);
        // The program's own witness is nearer.
        let own = (WITNESS, by_block(|_| 1.2));
        assert!((found(&[time, own, (BESIDE, double(731.0))]) - 35.3).abs() < 1e-9);
    }

    #[test]
    fn a_tare_that_shows_a_shared_core_counts_beside_the_witness_if_enough_blocks_are_left() {
        let tare = by_block(|block| if block % 2 == 0 { 1.0 } else { 2.0 });
        let beside = by_block(|block| if is_shared(block) { 2.0 } else { 1.0 });
        let both = arm(Role::Tare, &[("time.wall", tare), (BESIDE, beside.clone())]);
        let kept = undisturbed(&both).expect("enough blocks");
        assert!(kept.iter().all(|block| block % 6 == 0) && kept.len() == 10, "{kept:?}");
        let opposite = by_block(|block| if is_shared(block) { 1.0 } else { 2.0 });
        let none = arm(Role::Tare, &[("time.wall", opposite), (BESIDE, beside)]);
        let kept = undisturbed(&none).expect("those of the witness");
        assert!(kept.iter().all(|block| !is_shared(*block)) && kept.len() == 20, "{kept:?}");
    }

    #[test]
    fn a_tare_whose_batches_are_mostly_reads_of_the_clock_does_not_show_the_speed_of_the_core() {
        let time = by_block(|block| if is_shared(block) { 2.0 } else { 1.0 });
        let beside = by_block(|block| if block % 2 == 0 { 1.0 } else { 2.0 });
        let kept = |iterations: f64, beside: Option<&Vec<(u32, f64)>>| {
            let mut figures =
                vec![("time.wall", time.clone()), ("batch.iterations", by_block(|_| iterations))];
            figures.extend(beside.map(|beside| (BESIDE, beside.clone())));
            undisturbed(&arm(Role::Tare, &figures)).map(|kept| kept.len())
        };
        assert_eq!((kept(10_000.0, None), kept(100.0, None)), (Some(20), None));
        assert_eq!((kept(10_000.0, Some(&beside)), kept(100.0, Some(&beside))), (Some(10), Some(30)));
    }
}
