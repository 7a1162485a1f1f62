//! Intervals where the process or the launch is the unit of replication, with one number for each and few of them.
//!
//! Sources: Kalibera & Jones, "Rigorous Benchmarking in Reasonable Time" (2013), for the variance between processes and
//! within them; Student, "The Probable Error of a Mean" (1908); Welch, "The Generalization of Student's Problem" (1947),
//! here with the smallest degrees of freedom that his formula can give, which errs on the wide side. A median of many
//! readings is close to normal, so a few medians may be taken for a normal sample. Ranks and order statistics, which
//! assume nothing, have no interval for fewer than six numbers.

use serde::Serialize;

use super::Interval;
use super::median_interval::median_interval;
use super::normal;
use super::paired::{Effect, Why, log_ratios};
use super::quantile::median;
use super::summary::{OF_MEDIAN, mean, sd, variance_of_median};

/// The smallest number of processes that shows how much processes differ.
pub const FEWEST: usize = 3;

/// The variance of the difference between the medians of two invocations, each over equally many processes, is this
/// many times that of one of them. Intervals over processes are that wide, since readers take them as a prediction of
/// the next invocation.
const NEXT: f64 = 2.0;

/// The effect from one number for each process or turn: pairwise if `paired`, else each arm as a sample of its own.
///
/// # Errors
///
/// Fails as [`effect`] or [`unpaired_effect`] does.
pub fn effect_of(reference: &[f64], arm: &[f64], paired: bool, level: f64) -> Result<Effect, Why> {
    if paired { effect(reference, arm, level) } else { unpaired_effect(reference, arm, level) }
}

/// The effect from the costs of reference and arm in processes that ran both side by side.
///
/// # Errors
///
/// Fails when there are fewer than [`FEWEST`] processes, or when a cost has no logarithm.
pub fn effect(reference: &[f64], arm: &[f64], level: f64) -> Result<Effect, Why> {
    let ratios = log_ratios(reference, arm)?;
    let n = ratios.len();
    let too_few = Why::TooFew { have: n, need: FEWEST };
    let effect = of_logarithms(&ratios, level, "mean of log ratios, Student").filter(|_| n >= FEWEST);
    effect.ok_or(too_few)
}

/// The effect from replicates of its logarithm: their mean with Student's interval; `None` for fewer than two
/// replicates.
pub(super) fn of_logarithms(logarithms: &[f64], level: f64, method: &'static str) -> Option<Effect> {
    let (n, spread) = (logarithms.len(), sd(logarithms)?);
    let half = normal::student(level, n as f64 - 1.0) * spread / (n as f64).sqrt();
    Some(of(mean(logarithms), half, n, level, method))
}

/// The effect from the costs in processes that ran only the reference and others that ran only the arm.
///
/// # Errors
///
/// Fails when an arm has fewer than [`FEWEST`] processes, or when a cost has no logarithm.
pub fn unpaired_effect(reference: &[f64], arm: &[f64], level: f64) -> Result<Effect, Why> {
    let n = reference.len().min(arm.len());
    let logarithms = |costs: &[f64]| log_ratios(&vec![1.0; costs.len()], costs);
    let (reference, arm) = (logarithms(reference)?, logarithms(arm)?);
    let too_few = Why::TooFew { have: n, need: FEWEST };
    let known = |logs: &[f64]| Some((mean(logs), sd(logs)?.powi(2) / logs.len() as f64));
    let (Some((before, left)), Some((after, right)), true) = (known(&reference), known(&arm), n >= FEWEST)
    else {
        return Err(too_few);
    };
    let half = normal::student(level, n as f64 - 1.0) * (left + right).sqrt();
    Ok(of(after - before, half, n, level, "difference of mean logs of processes, Welch"))
}

/// The interval of the median of a few positive readings, from the mean of their logarithms; `None` for fewer than two
/// readings.
pub fn amount(readings: &[f64], level: f64) -> Option<Interval> {
    let logarithms = log_ratios(&vec![1.0; readings.len()], readings).ok()?;
    Some(of_logarithms(&logarithms, level, "mean of logs, Student")?.interval)
}

fn of(centre: f64, half: f64, n: usize, level: f64, method: &'static str) -> Effect {
    let interval = Interval { low: centre - half, high: centre + half, level }.map(f64::exp);
    Effect { ratio: centre.exp(), interval, n, method }
}

/// The sources of the variance of a median: between processes and within them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Levels {
    /// Variance of the medians of the processes, in the unit squared.
    pub between: f64,
    /// The variance that the noise within processes alone would give these medians, in the unit squared.
    pub within: f64,
}

impl Levels {
    /// Whether processes differ so much more than their own noise explains that readings of one process must not count
    /// as independent. At the threshold, 1.5 times the variance, an interval that ignores this covers 89 % instead of
    /// 95 %.
    pub fn between_dominates(&self) -> bool {
        self.between > 1.5 * self.within
    }
}

/// Compares the variance of the medians of the processes with the variance that their own readings predict.
///
/// A process with a single reading does not show its noise and is left out. `None` when fewer than three processes remain.
pub fn levels(groups: &[Vec<f64>]) -> Option<Levels> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| group.len() >= 2).collect();
    if groups.len() < 3 {
        return None;
    }
    let medians: Vec<f64> = groups.iter().map(|g| median(g)).collect();
    let expected = groups.iter().zip(&medians).map(|(group, centre)| variance_of_median(group, *centre));
    let within = expected.sum::<f64>() / groups.len() as f64;
    Some(Levels { between: sd(&medians)?.powi(2), within })
}

/// A median over several processes, in the unit of the readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessesMedian {
    /// The median of all readings.
    pub estimate: f64,
    /// The interval of the estimate.
    pub interval: Interval,
    /// The method of the interval, in words.
    pub method: &'static str,
}

/// The median of readings taken in several processes, with an interval that covers the variance between processes.
///
/// The interval contains that of the exact order statistics of all readings. It also contains Student's prediction
/// interval for the median of as many further processes, since blocks of one process do not predict the next process.
/// If processes clearly differ, it also contains the order statistics of their medians, or all medians of fewer than
/// nine: if there are processes of two kinds, most of the next ones may be of the other kind. `None` when there are too
/// few readings for the order statistics.
pub fn median_of_groups(groups: &[Vec<f64>], level: f64) -> Option<ProcessesMedian> {
    widened(groups, level, |value| value, |value| value)
}

/// The median of amounts taken in several processes, as [`median_of_groups`] computes it. Where the median of each
/// process is positive, logarithms are used, so that the interval never reaches below zero, however few the processes
/// are and however much they differ. A reading that is not positive then counts as the smallest positive one of its
/// process, which does not change the median.
pub fn median_of_amounts(groups: &[Vec<f64>], level: f64) -> Option<ProcessesMedian> {
    match groups.iter().map(|group| positive(group)).collect::<Option<Vec<_>>>() {
        Some(groups) => widened(&groups, level, f64::ln, f64::exp),
        None => median_of_groups(groups, level).map(|mut found| {
            // Where no reading is below zero, what they measure is not either.
            if groups.iter().flatten().all(|reading| *reading >= 0.0) {
                found.interval.low = found.interval.low.max(0.0);
            }
            found
        }),
    }
}

/// Some readings, each at least as large as the smallest positive one; `None` where their median is not positive.
fn positive(readings: &[f64]) -> Option<Vec<f64>> {
    let least = readings.iter().copied().filter(|reading| *reading > 0.0).min_by(f64::total_cmp)?;
    (median(readings) > 0.0).then(|| readings.iter().map(|reading| reading.max(least)).collect())
}

/// The median of all readings, with the interval of [`median_of_groups`] on the scale that `onto` leads to and `back`
/// leads from.
fn widened(
    groups: &[Vec<f64>],
    level: f64,
    onto: fn(f64) -> f64,
    back: fn(f64) -> f64,
) -> Option<ProcessesMedian> {
    let pool = groups.concat();
    let exact = median_interval(&pool, level)?;
    let estimate = median(&pool);
    let of = |low: f64, high: f64, method| {
        let interval = Interval { low: low.min(exact.low), high: high.max(exact.high), level };
        ProcessesMedian { estimate, interval, method }
    };
    let medians: Vec<f64> = groups.iter().map(|group| onto(median(group))).collect();
    let n = medians.len() as f64;
    let Some(spread) = sd(&medians).filter(|_| medians.len() >= FEWEST) else {
        return Some(of(exact.low, exact.high, "median, order statistics"));
    };
    let half = normal::student(level, n - 1.0) * spread * (NEXT * OF_MEDIAN / n).sqrt();
    let (low, high) = (onto(estimate) - half, onto(estimate) + half);
    if !levels(groups).is_some_and(|levels| levels.between_dominates()) {
        return Some(of(back(low), back(high), "median, order statistics and Student over processes"));
    }
    // The order statistics that hold the median of as many further processes; of fewer than nine, the first and the last.
    let next = 2.0 * normal::cdf(NEXT.sqrt() * normal::quantile(0.5 + level / 2.0)) - 1.0;
    let (least, most) = match median_interval(&medians, next) {
        Some(middle) => (middle.low, middle.high),
        None => medians.iter().fold((low, high), |(low, high), one| (low.min(*one), high.max(*one))),
    };
    Some(of(back(low.min(least)), back(high.max(most)), "median, Student and order statistics of processes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_mostly_nothing_are_never_below_nothing() {
        let found = median_of_amounts(&[vec![0.0, 3.0], vec![0.0, 0.0], vec![1.0, 0.0]], 0.95);
        let found = found.expect("six readings").interval;
        assert!(found.low == 0.0 && found.high > 0.0, "{found:?}");
        let signed = median_of_amounts(&[vec![0.0, -3.0], vec![0.0, 0.0], vec![1.0, 0.0]], 0.95);
        assert!(signed.expect("six readings").interval.low < 0.0);
    }

    /// The values are those of the t table: 4.3027 with two degrees of freedom, 2.7764 with four.
    #[test]
    fn few_processes_have_the_interval_of_student() {
        let found = effect(&[1.0; 3], &[1.0_f64, 2.0, 3.0].map(f64::exp), 0.95).expect("three processes");
        let half = 4.302_653 / 3.0_f64.sqrt();
        assert!((found.ratio.ln() - 2.0).abs() < 1e-9);
        assert!((found.interval.high.ln() - 2.0 - half).abs() < 1e-3, "{found:?}");
        let five = [1.0_f64, 2.0, 3.0, 4.0, 5.0].map(f64::exp);
        let found = unpaired_effect(&five, &five, 0.95).expect("five of either");
        assert!(
            (found.interval.high.ln() - 2.776_445 * (2.0 * 2.5 / 5.0_f64).sqrt()).abs() < 1e-3,
            "{found:?}"
        );
        assert!(effect(&[1.0; 2], &[2.0; 2], 0.95).is_err());
    }
}
