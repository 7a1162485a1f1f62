//! Compares the core during a run with what it was in earlier runs: its clock frequency, and whether it was shared, which
//! the processor may also show.

use super::cases::Cases;
use super::readings::own;
use super::record::SuiteRecord;
use crate::store::{Store, add_readings};
use scruple_core::harmless_text::list_names;
use scruple_core::judge::clock::{APART, USUAL, cycle, usual};
use scruple_core::judge::shared_core::{alone, longer};
use scruple_core::judge::witnesses::{ADDITIONS, ADDITIONS_ALONE, CYCLE, WITNESS, in_fastest_blocks};
use scruple_core::metric::Pass;
use scruple_core::plural::counted;
use scruple_core::run::Run;
use scruple_core::sample::Reading;
use scruple_core::unit::Unit;
use scruple_measure::core_speed::most_cycles_of_witness;
use scruple_stats::quantile::{median, sorted};

/// The number of earlier runs that are read.
const RUNS: usize = 20;

/// The core in earlier runs on this machine.
#[derive(Default)]
pub(super) struct EarlierCore {
    /// The length of a cycle in each run, in nanoseconds.
    cycles: Vec<f64>,
    /// The number of cycles that independent additions took in the fastest blocks of each run.
    additions: Vec<f64>,
}

impl EarlierCore {
    /// Returns what the store has of this class of machine. An unreadable store is ignored here, because writing the
    /// run reports it.
    pub(super) fn read(store: &Store, machine_class: &str) -> EarlierCore {
        let runs = store.newest([CYCLE, ADDITIONS], machine_class, RUNS).unwrap_or_default();
        let of_runs = |metric: usize, figure: fn(&[f64]) -> f64| {
            let readings = runs.iter().map(|run| &run[metric]).filter(|readings| !readings.is_empty());
            readings.map(|readings| figure(readings)).collect()
        };
        EarlierCore { cycles: of_runs(0, median), additions: of_runs(1, in_fastest_blocks) }
    }

    /// Stores the usual states of the core with the times of each case, and adds remarks if this run had another one.
    pub(super) fn add_to(&self, cases: &Cases, record: &mut SuiteRecord) {
        let Some(seen) = SeenCore::of(cases, &record.run) else { return };
        for (tare, block, reading) in self.usual(cases, &seen) {
            record.keep(tare, Pass::Timing, block, vec![reading]);
        }
        if let Some(text) = remark_on_clock(seen.cycle, &self.cycles, &seen.cycles) {
            record.run.warn("clock", text);
        }
        if let Some(text) = remark_on_sharing(cases, &record.run) {
            record.run.warn("shared-core", text);
        }
    }

    /// Returns the run so far, with the usual states of the core for its times.
    pub(super) fn partial_run(&self, cases: &Cases, run: &Run) -> Run {
        let mut run = run.clone();
        let seen = SeenCore::of(cases, &run);
        for (tare, block, reading) in seen.iter().flat_map(|seen| self.usual(cases, seen)) {
            add_readings(&mut run.arms[tare], vec![reading], Pass::Timing, block);
        }
        run
    }

    fn usual(&self, cases: &Cases, seen: &SeenCore) -> Vec<(usize, u32, Reading)> {
        let (low, high) = usual(&self.cycles, seen.cycle);
        let cycle = |end| own(USUAL, Unit::Nanoseconds, end);
        let alone = self.additions_alone(seen).map(|alone| (0, own(ADDITIONS_ALONE, Unit::Count, alone)));
        let all: Vec<(u32, Reading)> = [(0, cycle(low)), (1, cycle(high))].into_iter().chain(alone).collect();
        let of_tare = |tare| all.iter().map(move |(block, reading)| (tare, *block, reading.clone()));
        tares(cases).flat_map(of_tare).collect()
    }

    /// The number of cycles that the additions take alone. The witness of a program itself is nearer than what is known
    /// of the processor.
    fn additions_alone(&self, seen: &SeenCore) -> Option<f64> {
        let of_processor = if seen.has_witness { None } else { most_cycles_of_witness() };
        seen.additions.map(|now| alone(now, &self.additions, of_processor))
    }
}

fn tares(cases: &Cases) -> impl Iterator<Item = usize> {
    cases.weighed.iter().filter(|weighed| weighed.is_open()).map(|weighed| weighed.tare)
}

/// The core during a run.
struct SeenCore {
    /// The length of a cycle in the whole run, and in each of its processes, in nanoseconds.
    cycle: f64,
    cycles: Vec<f64>,
    /// The number of cycles that independent additions took in the fastest blocks.
    additions: Option<f64>,
    /// Whether the program has a witness of its own.
    has_witness: bool,
}

impl SeenCore {
    fn of(cases: &Cases, run: &Run) -> Option<SeenCore> {
        let readings = |tare: &usize| run.arms[*tare].sample(CYCLE).map_or(0, |sample| sample.readings.len());
        let with_most = tares(cases).max_by_key(readings)?;
        let tare = &run.arms[with_most];
        let sample = tare.sample(CYCLE)?;
        let cycles = sample.by_process().iter().map(|readings| median(readings)).collect();
        let additions = tare.sample(ADDITIONS).map(|additions| in_fastest_blocks(&additions.readings));
        let has_witness = tare.sample(WITNESS).is_some();
        Some(SeenCore { cycle: cycle(tare)?, cycles, additions, has_witness })
    }
}

/// The smallest number of processes that can show a change of the clock during a run. At least two of them must have
/// either frequency.
const ENOUGH: usize = 5;

/// Writes the remark about the clock, if its frequency was unusual or changed during the run.
fn remark_on_clock(now: f64, earlier: &[f64], processes: &[f64]) -> Option<String> {
    let ghz = |cycle: f64| format!("{:.2} GHz", 1.0 / cycle);
    let ordered = sorted(processes);
    if let [_, least, .., most, _] = ordered.as_slice()
        && ordered.len() >= ENOUGH
        && most / least > 1.0 + APART
    {
        return Some(format!(
            "the core’s clock changed while the cases were timed, from {} to {}: times vary as much from process to process, and their intervals include that",
            ghz(*least),
            ghz(*most)
        ));
    }
    if earlier.is_empty() {
        return None;
    }
    let usual = median(earlier);
    if (now / usual).max(usual / now) <= 1.0 + APART {
        return None;
    }
    let (change, word) =
        if now > usual { (now / usual - 1.0, "longer") } else { (1.0 - now / usual, "shorter") };
    Some(format!(
        "the core ran at {}, and at {} in the {} before: times of code that computes are {:.1} % {word}, and their intervals include both",
        ghz(now),
        ghz(usual),
        counted(earlier.len(), "stored run"),
        100.0 * change
    ))
}

/// Writes the remark about a core that was shared in nearly all blocks of some cases.
fn remark_on_sharing(cases: &Cases, run: &Run) -> Option<String> {
    let open = cases.weighed.iter().filter(|weighed| weighed.is_open());
    let shared: Vec<(&str, f64)> = open
        .filter_map(|weighed| Some((run.arms[weighed.arm].name.as_str(), longer(&run.arms[weighed.tare])?)))
        .collect();
    let most = shared.iter().map(|(_, longer)| *longer).reduce(f64::max)?;
    Some(format!(
        "other work used the same core in nearly all blocks of {}: independent additions took up to {:.0} % longer than alone on the core; so alone, these cases may take down to half of the times shown, and the intervals include that",
        list_names(shared.iter().map(|(name, _)| name)),
        100.0 * (most - 1.0)
    ))
}

#[cfg(test)]
mod tests {
    use super::remark_on_clock;

    #[test]
    fn a_run_at_another_clock_frequency_is_reported_with_both_frequencies() {
        let text = remark_on_clock(0.35, &[0.3, 0.3, 0.301], &[0.35; 5]).expect("17 % is worth a remark");
        assert!(
            text.contains("2.86 GHz") && text.contains("3.33 GHz") && text.contains("16.7 % longer"),
            "{text}"
        );
        assert_eq!(remark_on_clock(0.303, &[0.3], &[0.303; 5]), None);
        assert_eq!(remark_on_clock(0.35, &[], &[0.35; 5]), None);
        assert_eq!(remark_on_clock(0.3, &[0.3], &[0.30, 0.30, 0.33]), None);
        let text =
            remark_on_clock(0.3, &[0.3], &[0.33, 0.30, 0.30, 0.30, 0.33]).expect("10 % within the run");
        assert!(text.contains("from 3.33 GHz to 3.03 GHz"), "{text}");
    }
}
