//! Compares the clock frequency of the core during a run with that of earlier runs.

use super::Suite;
use super::readings::own;
use crate::store::{Store, add_readings};
use scruple_core::judge::clock::{APART, CYCLE, USUAL, cycle, usual};
use scruple_core::metric::Pass;
use scruple_core::run::Run;
use scruple_core::sample::Reading;
use scruple_core::stats::quantile::{median, sorted};
use scruple_core::unit::Unit;

/// The number of earlier runs that determine the usual clock frequency.
const RUNS: usize = 20;

/// Returns the cycle lengths of earlier runs on this machine, as far as the store has them. An unreadable store is
/// ignored here, because writing the run reports it.
pub(super) fn earlier(store: &Store, machine_class: &str) -> Vec<f64> {
    let runs = store.newest(CYCLE, machine_class, RUNS).unwrap_or_default();
    runs.iter().filter(|readings| !readings.is_empty()).map(|readings| median(readings)).collect()
}

impl Suite {
    /// Stores the usual range of clock frequencies with the times of each case, and adds a remark if this run had
    /// another one.
    pub(super) fn tell_clock(&mut self) {
        let Some(seen) = self.seen_clock() else { return };
        for (tare, block, reading) in self.usual_clocks(&seen) {
            self.keep(tare, Pass::Timing, block, vec![reading]);
        }
        if let Some(text) = remark(seen.now, &self.earlier_cycles, &seen.processes) {
            self.run.warn("clock", text);
        }
    }

    /// Returns the run so far, with the usual range of clock frequencies for its times.
    pub(super) fn so_far(&self) -> Run {
        let mut run = self.run.clone();
        for (tare, block, reading) in self.seen_clock().iter().flat_map(|seen| self.usual_clocks(seen)) {
            add_readings(&mut run.arms[tare], vec![reading], Pass::Timing, block);
        }
        run
    }

    fn usual_clocks(&self, seen: &SeenClock) -> Vec<(usize, u32, Reading)> {
        let (low, high) = usual(&self.earlier_cycles, seen.now);
        let both = |tare: &usize| [(*tare, 0, low), (*tare, 1, high)];
        let ends = self.tares().iter().flat_map(both).collect::<Vec<_>>();
        ends.into_iter().map(|(tare, block, end)| (tare, block, own(USUAL, Unit::Nanoseconds, end))).collect()
    }

    fn tares(&self) -> Vec<usize> {
        self.weighed.iter().filter(|weighed| !weighed.failed).map(|weighed| weighed.tare).collect()
    }

    fn seen_clock(&self) -> Option<SeenClock> {
        let readings =
            |tare: &usize| self.run.arms[*tare].sample(CYCLE).map_or(0, |sample| sample.readings.len());
        let with_most = self.tares().into_iter().max_by_key(readings)?;
        let sample = self.run.arms[with_most].sample(CYCLE)?;
        let processes = sample.by_process().iter().map(|readings| median(readings)).collect();
        Some(SeenClock { now: cycle(&self.run.arms[with_most])?, processes })
    }
}

/// The length of a core cycle in a run, and in each of its processes, in nanoseconds.
struct SeenClock {
    now: f64,
    processes: Vec<f64>,
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
            "the core’s clock changed while the cases were timed, from {} to {}: times differ by as much from process to process, and their intervals hold it",
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
        "the core ran at {}, and at {} in the {} stored {runs} before: times of code that computes are {:.1} % {word} for that, and their intervals hold both",
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
    fn a_run_at_another_clock_is_told_with_both_clocks() {
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
