//! Judges cases of bench programs: their tares, their nets, and comparisons across fresh processes.

use super::shared_core::{self, in_fastest_blocks};
use super::{Groups, Pair, RESAMPLING_SEED, estimate};
use crate::evidence::Replicate;
use crate::metric::Pass;
use crate::run::Run;
use crate::sample::{BLOCKS_OF_A_PROCESS, BLOCKS_OF_A_TURN, Sample};
use crate::sorting::{self, SortedMap};
use crate::stats::Interval;
use crate::stats::processes;
use crate::stats::quantile::{median, quantile, sorted};
use crate::stats::tare::{self, Net};
use crate::subject::{Arm, Parameter, Role, Subject};
use std::collections::BTreeSet;

/// The pairs to compare inside a run of bench programs. With two programs, each case of the second is compared with the
/// same case of the first. With one program and a reference case, every other case is compared with that one.
pub fn pairs(run: &Run) -> Vec<Pair<'_>> {
    let subjects = || run.arms.iter().enumerate().filter(|(_, arm)| arm.role == Role::Subject);
    let pair = |left: usize, right: usize| {
        let tares = tare_at(run, left).zip(tare_at(run, right));
        Pair { tares, ..Pair::new(&run.arms[left], &run.arms[right], true) }
    };
    let Some(first) = subjects().next().and_then(|(_, arm)| arm.version.as_ref()) else {
        let Some(name) = run.terms.reference.as_ref() else { return Vec::new() };
        let Some((reference, _)) = subjects().find(|(_, arm)| &arm.name == name) else { return Vec::new() };
        return subjects()
            .filter(|(_, arm)| &arm.name != name)
            .map(|(other, _)| pair(reference, other))
            .collect();
    };
    let is_old = |arm: &Arm| arm.version.as_ref() == Some(first);
    let mut old: SortedMap<&str, usize> = SortedMap::new();
    for (position, arm) in subjects().filter(|(_, arm)| is_old(arm)) {
        old.entry(unversioned(arm)).or_insert(position);
    }
    subjects()
        .filter(|(_, arm)| !is_old(arm))
        .filter_map(|(position, arm)| Some(pair(*old.get(unversioned(arm))?, position)))
        .collect()
}

/// The pairs to compare inside a run of several commands at several versions: each command with its own first version.
/// Empty for other runs.
pub(super) fn at_versions(run: &Run) -> Vec<Pair<'_>> {
    let subjects: Vec<&Arm> = run.arms_of(Role::Subject).collect();
    let mut first: SortedMap<&str, &Arm> = SortedMap::new();
    let mut pairs = Vec::new();
    for arm in subjects.iter().filter(|arm| arm.version.is_some()) {
        match first.get(unversioned(arm)) {
            Some(&reference) => pairs.push(Pair::new(reference, arm, true)),
            None => _ = first.insert(unversioned(arm), arm),
        }
    }
    let all = subjects.iter().all(|arm| arm.version.is_some());
    if all && first.len() > 1 && !pairs.is_empty() { pairs } else { Vec::new() }
}

/// The name of an arm without its version.
fn unversioned(arm: &Arm) -> &str {
    arm.name.rsplit_once(" @").map_or(arm.name.as_str(), |(name, _)| name)
}

/// The tare of the case at this position among the arms of the run: the arm after it, which ran the same loop around an
/// identity body in the same blocks.
pub fn tare_at(run: &Run, position: usize) -> Option<&Arm> {
    run.arms
        .get(position + 1)
        .filter(|arm| arm.role == Role::Tare && matches!(arm.subject, Subject::Case { .. }))
}

/// The tare of an arm of a run: that of the case, or for a command the empty program.
pub fn tare_of<'a>(run: &'a Run, arm: &Arm) -> Option<&'a Arm> {
    match arm.subject {
        Subject::Case { .. } => {
            let position = run.arms.iter().position(|other| {
                other.name == arm.name && other.version == arm.version && other.role == arm.role
            });
            tare_at(run, position?)
        }
        _ => run.arms_of(Role::Tare).find(|tare| matches!(tare.subject, Subject::Command { .. })),
    }
}

/// The key of the figure of a tare that shows the speed of the core during a block: the time, in nanoseconds, of a
/// fixed piece of work that the program did next to the batches. Programs need not have it.
pub const WITNESS: &str = "batch.witness";

/// The key of the figure of a tare that holds the time, in nanoseconds, of a fixed piece of work that Scruple did
/// before and after each block, on the core on which the program ran. A block without it was undisturbed.
pub const BESIDE: &str = "batch.beside";

/// A block is undisturbed if its witness took at most this multiple of the time of the fastest ones.
pub(super) const DISTURBED: f64 = 1.25;

/// The key of the figure of a tare that holds the share of each block in which the program was ready to run but waited
/// for a core.
pub const WAITED: &str = "batch.waited";

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
        let fastest = shared_core::time_alone(tare).map_or(fastest, |alone| alone.min(fastest));
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

/// The readings of a case and of its tare in one process, over undisturbed blocks.
#[derive(Default)]
pub(super) struct ProcessReadings {
    pub(super) raw: Vec<f64>,
    tare: Vec<f64>,
}

impl ProcessReadings {
    /// The readings of the case less those of its tare in the same blocks.
    pub(super) fn differences(&self) -> Vec<f64> {
        self.raw.iter().zip(&self.tare).map(|(raw, tare)| raw - tare).collect()
    }
}

/// The readings of a case and of its tare in each process.
pub(super) fn processes(arm: &Arm, tare: &Arm, key: &str) -> Option<Vec<ProcessReadings>> {
    Some(readings_of_processes(&counted(arm.sample(key)?, tare), tare.sample(key)?))
}

fn readings_of_processes(raw: &Sample, readings: &Sample) -> Vec<ProcessReadings> {
    let mut processes: SortedMap<u32, ProcessReadings> = SortedMap::new();
    let tares: SortedMap<u32, f64> =
        SortedMap::from_iter(readings.blocks.iter().copied().zip(readings.readings.iter().copied()));
    for (block, reading) in raw.blocks.iter().zip(&raw.readings) {
        if let Some(tare) = tares.get(block) {
            let group = processes.entry(block / BLOCKS_OF_A_PROCESS).or_default();
            group.raw.push(*reading);
            group.tare.push(*tare);
        }
    }
    processes.into_values().collect()
}

/// The estimate of [`net`], without its interval.
pub fn net_estimate(arm: &Arm, tare: &Arm, key: &str) -> Option<f64> {
    let all: Vec<f64> = processes(arm, tare, key)?.iter().flat_map(ProcessReadings::differences).collect();
    (!all.is_empty()).then(|| median(&all))
}

/// The cost per iteration of a case without the harness, over undisturbed blocks.
pub fn net(arm: &Arm, tare: &Arm, key: &str, level: f64) -> Option<Net> {
    let raw = counted(arm.sample(key)?, tare);
    let readings = tare.sample(key)?;
    let processes = readings_of_processes(&raw, readings);
    let pairs: Vec<(&[f64], &[f64])> =
        processes.iter().map(|process| (process.raw.as_slice(), process.tare.as_slice())).collect();
    let mut net = tare::net_by_process(&pairs, level, RESAMPLING_SEED).ok()?;
    // Other work only makes batches longer. If it made the tare longer, the true net is larger than the estimate.
    let quick = least(&readings.readings);
    if net.below_resolution.is_none() {
        net.interval.high = net.interval.high.max(median(&raw.readings) - quick);
    }
    if is_starved(tare) {
        let reach = (1.0 - tare::RESOLUTION) * least_alone(arm, &raw, key) - quick;
        net.interval.low = net.interval.low.min(reach.max(0.0));
    }
    if key != "time.wall" {
        return Some(super::clock::widened_net(net, tare));
    }
    if let Some(Groups { low, high }) = Groups::among(&processes).filter(Groups::are_certain) {
        net.interval.low = net.interval.low.min(low.0.max(0.0));
        net.interval.high = net.interval.high.max(high.0);
        net.below_resolution = net.below_resolution.map(|limit| limit.max(high.0));
    }
    Some(super::earlier_runs::widened_net(super::clock::widened_net(net, tare), tare))
}

/// Whether the machine disturbed nearly all blocks. The median is then too high, and intervals reach down to the
/// smallest reading. Where a program waited for a core in nearly all blocks, a witness that did not wait does not
/// change that.
fn is_starved(tare: &Arm) -> bool {
    match tare.sample(WAITED) {
        Some(_) => at_once(tare).is_none(),
        None => alone(tare).is_some() && undisturbed(tare).is_none(),
    }
}

/// The least that a batch may have taken without other work on the machine: its smallest reading, or its smallest
/// processor time, of which each of several threads has its part. Batches longer than a time slice all wait for a core
/// on a busy machine, and threads take turns on one.
fn least_alone(arm: &Arm, raw: &Sample, key: &str) -> f64 {
    let threads = match arm.params.get("threads") {
        Some(Parameter::Number(threads)) => threads.max(1.0),
        _ => 1.0,
    };
    let cpu = arm.sample("time.cpu").filter(|_| key == "time.wall");
    cpu.map_or(f64::INFINITY, |cpu| least(&cpu.readings) / threads).min(least(&raw.readings))
}

/// The smallest of some readings, except the one in fifty that a clock may have cut short.
fn least(readings: &[f64]) -> f64 {
    quantile(&sorted(readings), 0.02)
}

/// The net cost with its interval; where there is no net, the raw cost with its interval.
pub fn net_or_raw(arm: &Arm, tare: &Arm, key: &str, level: f64) -> Option<(f64, Interval)> {
    if let Some(net) = net(arm, tare, key, level) {
        return Some((net.estimate, net.interval));
    }
    let estimate = estimate(arm.sample(key)?, level);
    Some((estimate.value, estimate.interval?))
}

/// The costs of two samples of a case, one number for each process.
///
/// Processes differ in memory placement and compilation, and a comparison must also hold for the next process. Blocks
/// of one process are not independent replicates in this respect, even where the processes of this run agree.
pub(super) fn by_process(reference: &Sample, arm: &Sample, paired: bool) -> (Vec<f64>, Vec<f64>, Replicate) {
    if !paired {
        let medians = |sample: &Sample| sample.by_process().iter().map(|group| median(group)).collect();
        return (medians(reference), medians(arm), Replicate::Process);
    }
    let (left, right) = by_group(reference, arm, BLOCKS_OF_A_PROCESS);
    (left, right, Replicate::Process)
}

/// The costs of two samples of a load, one number for each turn. Windows of one turn follow each other while the other
/// server rests, so they do not show how much turns differ. A load that was not taken side by side may have too few
/// turns to show that; then its thirds stand for turns.
pub(super) fn by_turn(reference: &Sample, arm: &Sample, paired: bool) -> (Vec<f64>, Vec<f64>, Replicate) {
    if !paired {
        return (turns_or_thirds(reference), turns_or_thirds(arm), Replicate::Turn);
    }
    let (left, right) = by_group(reference, arm, BLOCKS_OF_A_TURN);
    (left, right, Replicate::Turn)
}

/// The median of each turn, or of each third of the windows where there are fewer than three turns.
fn turns_or_thirds(sample: &Sample) -> Vec<f64> {
    let turns = sample.by_turn();
    if turns.len() >= processes::FEWEST {
        return turns.iter().map(|readings| median(readings)).collect();
    }
    let third = sample.readings.len().div_ceil(processes::FEWEST).max(1);
    sample.readings.chunks(third).map(median).collect()
}

/// One number of each arm for each group of `blocks_of_a_group` consecutive blocks. The effect of a group is the median
/// of the ratios of its blocks; the two numbers of the group have that ratio.
fn by_group(reference: &Sample, arm: &Sample, blocks_of_a_group: u32) -> (Vec<f64>, Vec<f64>) {
    let (left, right) = reference.paired(arm);
    let blocks = arm.blocks.iter().filter(|block| reference.blocks.binary_search(block).is_ok());
    let mut groups: SortedMap<u32, (Vec<f64>, Vec<f64>)> = SortedMap::new();
    for ((block, a), b) in blocks.zip(&left).zip(&right) {
        let group = groups.entry(block / blocks_of_a_group).or_default();
        group.0.push(*a);
        group.1.push((b / a).ln());
    }
    // Two costs of zero have no ratio, and count as equal.
    if left.iter().chain(&right).all(|reading| *reading == 0.0) {
        return (vec![0.0; groups.len()], vec![0.0; groups.len()]);
    }
    let base: Vec<f64> = groups.values().map(|(readings, _)| median(readings)).collect();
    let other =
        base.iter().zip(groups.values()).map(|(base, (_, ratios))| base * median(ratios).exp()).collect();
    (base, other)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::metric::{Metric, Quality};
    use crate::sample::{Figure, Reading};
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
    fn a_bound_holds_both_groups_of_processes() {
        // Ten processes show nothing, and two a cost.
        let costs = [[0.0; 10].as_slice(), &[0.09; 2]].concat();
        let blocks = |base: f64, cost: bool| {
            let of = |(process, extra): (u32, f64)| {
                (0..20).map(move |block| {
                    let noise = 0.001 * f64::from((block * 7 + process) % 5) * f64::from(u32::from(cost));
                    (process * BLOCKS_OF_A_PROCESS + block, base + noise + if cost { extra } else { 0.0 })
                })
            };
            (0..).zip(costs.clone()).flat_map(of).collect::<Vec<(u32, f64)>>()
        };
        let case = arm(Role::Subject, &[("time.wall", blocks(0.5, true))]);
        let found = net(&case, &arm(Role::Tare, &[("time.wall", blocks(0.5, false))]), "time.wall", 0.95);
        let limit = found.and_then(|net| net.below_resolution).expect("a bound");
        assert!(limit >= 0.09, "{limit}");
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
        // A block of which nothing is known was not disturbed: the program itself ran beside the witness.
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
