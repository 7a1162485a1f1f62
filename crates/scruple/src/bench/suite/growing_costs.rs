//! Says which cases take longer the more often they have run.
//!
//! A body that keeps what earlier iterations left, such as one that appends to a list and walks over it, has no cost of
//! its own: its figure depends on how many iterations ran before.

use super::cases::{Cases, Weighed};
use super::record::SuiteRecord;
use scruple_core::judge::undisturbed_blocks;
use scruple_core::run::Run;
use scruple_core::subject::Arm;
use scruple_core::unit::{Unit, quantity};
use scruple_stats::quantile::median;

/// The least rise from the first third of a process to its last third, in the median process, that is notable.
const NOTABLE: f64 = 1.1;

/// In this share of the pairs of an early and a late reading, the late one must be longer. Of three processes with
/// twelve readings each, noise alone has as many in less than one of a thousand cases.
const SURE: f64 = 0.9;

/// The smallest number of readings in a third of a process, and of processes.
const FEWEST: usize = 3;

/// Adds a remark about the case that rises most.
pub(super) fn add_remark(cases: &Cases, record: &mut SuiteRecord) {
    let found = cases.weighed.iter().filter(|weighed| weighed.is_open()).filter_map(|weighed| {
        let (early, late) = rise_of(&record.run, weighed)?;
        Some((early, late, record.name(weighed)))
    });
    let Some((early, late, name)) =
        found.max_by(|one, other| (one.1 / one.0).total_cmp(&(other.1 / other.0)))
    else {
        return;
    };
    let [early, late] = [early, late].map(|time| quantity(time, &Unit::Nanoseconds));
    let text = format!(
        "the more often ‘{name}’ has run, the longer it takes: {early} of processor time early in a process, and {late} \
         late: does it keep what earlier iterations left? Its figure depends on how many there were"
    );
    record.run.warn("growing-costs", text);
}

/// The processor time of a case early and late in a process, if it rises and its tare does not.
fn rise_of(run: &Run, weighed: &Weighed) -> Option<(f64, f64)> {
    let (arm, tare) = (&run.arms[weighed.arm], &run.arms[weighed.tare]);
    let rise = |arm: &Arm| rise(&undisturbed_blocks::counted(arm.sample("time.cpu")?, tare).by_process());
    rise(arm).filter(|_| rise(tare).is_none())
}

/// The medians of the first and the last thirds of processes, if nearly all readings of the last third of a process are
/// above nearly all of its first third: the share of such pairs is the statistic of Mann & Whitney (1947).
fn rise(processes: &[Vec<f64>]) -> Option<(f64, f64)> {
    let (mut above, mut pairs) = (0, 0);
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for process in processes {
        let third = process.len() / 3;
        if third < FEWEST {
            continue;
        }
        let (first, last) = (&process[..third], &process[process.len() - third..]);
        above += first.iter().map(|one| last.iter().filter(|other| *other > one).count()).sum::<usize>();
        pairs += third * third;
        early.push(median(first));
        late.push(median(last));
    }
    // The first process finds the number of iterations, so its state has grown before it is timed and rises less.
    let ratios: Vec<f64> = early.iter().zip(&late).map(|(early, late)| late / early).collect();
    let rises = early.len() >= FEWEST && above as f64 > SURE * pairs as f64 && median(&ratios) > NOTABLE;
    rises.then(|| (median(&early), median(&late)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_whose_state_grows_rises_in_each_process() {
        let growing = |from: f64| -> Vec<f64> { (0..12).map(|block| from + f64::from(block)).collect() };
        assert_eq!(rise(&[growing(100.0), growing(10.0), growing(10.0)]), Some((11.5, 19.5)));
        let steady: Vec<f64> = (0..12).map(|block| 10.0 + f64::from(block % 3)).collect();
        assert_eq!(rise(&[growing(10.0), steady, growing(10.0)]), None);
        assert!(rise(&[growing(10.0), growing(10.0), vec![5.0; 2], growing(10.0)]).is_some());
        assert_eq!(rise(&[growing(10.0), growing(10.0)]), None, "two processes may rise by chance");
        assert_eq!(rise(&[growing(1000.0), growing(1000.0), growing(1000.0)]), None, "too little");
        assert_eq!(rise(&[vec![1.0; 2], vec![2.0; 2], vec![3.0; 2]]), None);
    }
}
