//! Compares the clock frequency of the core during a run with that of earlier runs.

use super::readings::own;
use super::{Cases, SuiteRecord};
use crate::store::{Store, add_readings};
use scruple_core::judge::clock::{APART, CYCLE, USUAL, cycle, usual};
use scruple_core::metric::Pass;
use scruple_core::run::Run;
use scruple_core::sample::Reading;
use scruple_core::stats::quantile::{median, sorted};
use scruple_core::unit::Unit;

/// The number of earlier runs that determine the usual clock frequency.
const RUNS: usize = 20;

/// The lengths of a core cycle in earlier runs on this machine, in nanoseconds.
#[derive(Default)]
pub(super) struct EarlierClock(Vec<f64>);

impl EarlierClock {
    /// Returns what the store has of this class of machine. An unreadable store is ignored here, because writing the
    /// run reports it.
    pub(super) fn read(store: &Store, machine_class: &str) -> EarlierClock {
        let runs = store.newest(CYCLE, machine_class, RUNS).unwrap_or_default();
        let stored = runs.iter().filter(|readings| !readings.is_empty());
        EarlierClock(stored.map(|readings| median(readings)).collect())
    }

    /// Stores the usual range of clock frequencies with the times of each case, and adds a remark if this run had
    /// another one.
    pub(super) fn add_to(&self, cases: &Cases, record: &mut SuiteRecord) {
        let Some(seen) = SeenClock::of(cases, &record.run) else { return };
        for (tare, block, reading) in self.usual(cases, &seen) {
            record.keep(tare, Pass::Timing, block, vec![reading]);
        }
        if let Some(text) = remark(seen.now, &self.0, &seen.processes) {
            record.run.warn("clock", text);
        }
    }

    /// Returns the run so far, with the usual range of clock frequencies for its times.
    pub(super) fn partial_run(&self, cases: &Cases, run: &Run) -> Run {
        let mut run = run.clone();
        let seen = SeenClock::of(cases, &run);
        for (tare, block, reading) in seen.iter().flat_map(|seen| self.usual(cases, seen)) {
            add_readings(&mut run.arms[tare], vec![reading], Pass::Timing, block);
        }
        run
    }

    fn usual(&self, cases: &Cases, seen: &SeenClock) -> Vec<(usize, u32, Reading)> {
        let (low, high) = usual(&self.0, seen.now);
        let both = |tare: usize| [(tare, 0, low), (tare, 1, high)];
        let ends = tares(cases).flat_map(both);
        ends.map(|(tare, block, end)| (tare, block, own(USUAL, Unit::Nanoseconds, end))).collect()
    }
}

fn tares(cases: &Cases) -> impl Iterator<Item = usize> {
    cases.weighed.iter().filter(|weighed| !weighed.failed).map(|weighed| weighed.tare)
}

/// The length of a core cycle in a run, and in each of its processes, in nanoseconds.
struct SeenClock {
    now: f64,
    processes: Vec<f64>,
}

impl SeenClock {
    fn of(cases: &Cases, run: &Run) -> Option<SeenClock> {
        let readings = |tare: &usize| run.arms[*tare].sample(CYCLE).map_or(0, |sample| sample.readings.len());
        let with_most = tares(cases).max_by_key(readings)?;
        let sample = run.arms[with_most].sample(CYCLE)?;
        let processes = sample.by_process().iter().map(|readings| median(readings)).collect();
        Some(SeenClock { now: cycle(&run.arms[with_most])?, processes })
    }
}

/// The smallest number of processes that can show a change of the clock during a run. At least two of them must have
/// either frequency.
const ENOUGH: usize = 5;

/// Writes the remark about the clock, if its frequency was unusual or changed during the run.
fn remark(now: f64, earlier: &[f64], processes: &[f64]) -> Option<String> {
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
    let runs = if earlier.len() == 1 { "run" } else { "runs" };
    Some(format!(
        "the core ran at {}, and at {} in the {} stored {runs} before: times of code that computes are {:.1} % {word}, and their intervals include both",
        ghz(now),
        ghz(usual),
        earlier.len(),
        100.0 * change
    ))
}

#[cfg(test)]
mod tests {
    use super::remark;

    #[test]
    fn a_run_at_another_clock_frequency_is_reported_with_both_frequencies() {
        let text = remark(0.35, &[0.3, 0.3, 0.301], &[0.35; 5]).expect("17 % is worth a remark");
        assert!(
            text.contains("2.86 GHz") && text.contains("3.33 GHz") && text.contains("16.7 % longer"),
            "{text}"
        );
        assert_eq!(remark(0.303, &[0.3], &[0.303; 5]), None);
        assert_eq!(remark(0.35, &[], &[0.35; 5]), None);
        assert_eq!(remark(0.3, &[0.3], &[0.30, 0.30, 0.33]), None);
        let text = remark(0.3, &[0.3], &[0.33, 0.30, 0.30, 0.30, 0.33]).expect("10 % within the run");
        assert!(text.contains("from 3.33 GHz to 3.03 GHz"), "{text}");
    }
}
