//! Judges cases of bench programs: their tares, their nets, and comparisons across fresh processes.

use super::process_groups::{self, ProcessReadings, readings_of_processes};
use super::undisturbed_blocks::{counted, is_starved};
use super::witnesses::in_fastest_blocks;
use super::{Groups, Pair, estimate};
use crate::evidence::Replicate;
use crate::run::Run;
use crate::sample::{BLOCKS_OF_A_PROCESS, BLOCKS_OF_A_TURN, Sample};
use crate::subject::{Arm, Parameter, Role, Subject};
use scruple_stats::quantile::{median, quantile, sorted};
use scruple_stats::sorting::SortedMap;
use scruple_stats::tare::{self, Net};
use scruple_stats::{Interval, processes};

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

/// The estimate of [`net`], without its interval.
pub fn net_estimate(arm: &Arm, tare: &Arm, key: &str) -> Option<f64> {
    let all: Vec<f64> =
        process_groups::processes(arm, tare, key)?.iter().flat_map(ProcessReadings::differences).collect();
    (!all.is_empty()).then(|| median(&all))
}

/// The cost per iteration of a case without the harness, over undisturbed blocks.
pub fn net(arm: &Arm, tare: &Arm, key: &str, level: f64) -> Option<Net> {
    let raw = counted(arm.sample(key)?, tare);
    let readings = tare.sample(key)?;
    let processes = readings_of_processes(&raw, readings);
    let pairs: Vec<(&[f64], &[f64])> =
        processes.iter().map(|process| (process.raw.as_slice(), process.tare.as_slice())).collect();
    let mut net = tare::net_by_process(&pairs, level).ok()?;
    let quick = in_fastest_blocks(&readings.readings);
    if net.below_resolution.is_none() {
        // A collector, for example, makes some batches of this run longer, and may make most batches of the next run
        // longer.
        let differences: Vec<f64> = processes.iter().flat_map(ProcessReadings::differences).collect();
        let differences = sorted(&differences);
        net.interval.low = net.interval.low.min(quantile(&differences, 0.25).max(0.0));
        // Other work only makes batches longer. If it made the tare longer, the true net is larger than the estimate.
        let beside_quick = median(&raw.readings) - quick;
        net.interval.high = net.interval.high.max(quantile(&differences, 0.75)).max(beside_quick);
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

/// The least that a batch may have taken without other work on the machine: its smallest reading, or its smallest
/// processor time divided by the number of threads. Batches longer than a time slice all wait for a core on a busy
/// machine, and threads take turns on one.
fn least_alone(arm: &Arm, raw: &Sample, key: &str) -> f64 {
    let threads = match arm.params.get("threads") {
        Some(Parameter::Number(threads)) => threads.max(1.0),
        _ => 1.0,
    };
    let cpu = arm.sample("time.cpu").filter(|_| key == "time.wall");
    cpu.map_or(f64::INFINITY, |cpu| in_fastest_blocks(&cpu.readings) / threads)
        .min(in_fastest_blocks(&raw.readings))
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
mod tests {
    use super::super::undisturbed_blocks::tests::arm;
    use super::*;

    #[test]
    fn the_interval_holds_the_middle_half_of_its_batches() {
        // The medians of the processes agree by chance, although a quarter of all batches takes twice as long.
        let blocks = |processes: u32, case: f64| {
            let reading = move |block: u32| {
                10.0 + case * if block.is_multiple_of(4) { 2.0 } else { 1.0 } + 0.001 * f64::from(block % 5)
            };
            let of = move |process| {
                (0..12).map(move |block| (process * BLOCKS_OF_A_PROCESS + block, reading(block)))
            };
            (0..processes).flat_map(of).collect::<Vec<(u32, f64)>>()
        };
        let found = |processes| {
            let case = arm(Role::Subject, &[("time.wall", blocks(processes, 1000.0))]);
            net(&case, &arm(Role::Tare, &[("time.wall", blocks(processes, 0.0))]), "time.wall", 0.95)
                .expect("a net")
        };
        for processes in [3, 20] {
            let net = found(processes);
            assert!(net.estimate < 1100.0 && net.interval.high > 1200.0, "{net:?}");
        }
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
}
