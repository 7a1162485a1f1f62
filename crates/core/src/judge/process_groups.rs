//! Finds cases whose processes fall into two groups, such as two ways in which a just-in-time compiler compiled them.

use super::undisturbed_blocks::counted;
use crate::sample::{BLOCKS_OF_A_PROCESS, Sample};
use crate::subject::Arm;
use scruple_stats::quantile::median;
use scruple_stats::sorting::{self, SortedMap};

/// The readings of a case and of its tare in one process, over undisturbed blocks.
#[derive(Default)]
pub(super) struct ProcessReadings {
    pub(super) raw: Vec<f64>,
    pub(super) tare: Vec<f64>,
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

pub(super) fn readings_of_processes(raw: &Sample, readings: &Sample) -> Vec<ProcessReadings> {
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

/// Two groups of processes with different costs of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Groups {
    /// The median net of the cheaper group, and the number of its processes.
    pub low: (f64, usize),
    /// The median net of the more expensive group, and the number of its processes.
    pub high: (f64, usize),
}

/// The gap between two groups is at least this share of the raw cost of the cheaper one.
const NOTABLE: f64 = 0.1;

/// The gap between two groups is at least this many times the range of either.
const APART: f64 = 3.0;

impl Groups {
    /// The groups of a case's processes, by their net wall time; `None` if there is one group. A group may be a single
    /// process, which may also have been disturbed.
    pub fn of(arm: &Arm, tare: &Arm) -> Option<Groups> {
        Groups::among(&processes(arm, tare, "time.wall")?)
    }

    /// The groups among processes with these readings of their wall time.
    pub(super) fn among(processes: &[ProcessReadings]) -> Option<Groups> {
        let cost = |process: &ProcessReadings| (median(&process.differences()), median(&process.raw));
        Groups::of_costs(processes.iter().map(cost).collect())
    }

    /// The groups among processes, each given as its net and its raw cost. The processes are split at the largest gap
    /// between neighbouring nets.
    fn of_costs(mut processes: Vec<(f64, f64)>) -> Option<Groups> {
        sorting::by(&mut processes, |one, other| one.0.total_cmp(&other.0));
        let gap = |at: usize| processes[at].0 - processes[at - 1].0;
        let split = (1..processes.len()).max_by(|one, other| gap(*one).total_cmp(&gap(*other)))?;
        let (low, high) = processes.split_at(split);
        let range = |group: &[(f64, f64)]| group[group.len() - 1].0 - group[0].0;
        let least = (APART * range(low).max(range(high))).max(NOTABLE * low[0].1);
        let centre = |group: &[(f64, f64)]| {
            let nets: Vec<f64> = group.iter().map(|process| process.0).collect();
            (median(&nets), group.len())
        };
        let found = Groups { low: centre(low), high: centre(high) };
        (processes.len() > 2 && gap(split) > least).then_some(found)
    }

    /// Whether each of the two costs was found in at least two processes, so that neither is an accident.
    pub fn are_certain(&self) -> bool {
        self.low.1.min(self.high.1) >= 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_stats::rng::Pcg;

    fn among(nets: &[f64]) -> Option<Groups> {
        Groups::of_costs(nets.iter().map(|net| (*net, net + 1.0)).collect())
    }

    #[test]
    fn two_ways_of_compiling_are_two_groups() {
        let found = among(&[31.0, 70.0, 30.5, 69.0, 31.5]).expect("31 and 70 ns");
        assert_eq!(found, Groups { low: (31.0, 3), high: (69.5, 2) });
        assert!(found.are_certain());
        let single = among(&[31.0, 31.2, 31.1, 70.0, 31.0]).expect("one process differs");
        assert!(!single.are_certain());
        assert_eq!(among(&[31.0, 31.1, 33.0, 33.1]), None, "less than a tenth");
        assert_eq!(among(&[30.0, 40.0, 50.0, 60.0, 70.0]), None, "no gap is larger than the others");
        assert_eq!(among(&[30.0, 70.0]), None);
        assert_eq!(among(&[]), None);
    }

    /// Processes with a spread of 10 % are rarely taken for two groups.
    #[test]
    fn noise_is_rarely_two_groups() {
        let mut pcg = Pcg::new(7);
        let mut normal =
            || (0..12).map(|_| f64::from(pcg.below(1 << 20)) / f64::from(1 << 20)).sum::<f64>() - 6.0;
        let tries = 4000;
        let found = |n: usize, normal: &mut dyn FnMut() -> f64| {
            let nets: Vec<f64> = (0..n).map(|_| 100.0 + 10.0 * normal()).collect();
            among(&nets).is_some_and(|groups| groups.are_certain())
        };
        for n in [5, 8] {
            let wrong = (0..tries).filter(|_| found(n, &mut normal)).count();
            assert!(wrong < tries / 20, "{wrong} of {tries} with {n} processes");
        }
    }
}
