//! Intervals where the process or the launch is the unit of replication, with one number for each and few of them.
//!
//! Sources: Student, "The Probable Error of a Mean" (1908); Welch, "The Generalization of Student's Problem" (1947),
//! here with the smallest degrees of freedom that his formula can give, which errs on the wide side. A median of many
//! readings is close to normal, so a few medians may be taken for a normal sample. Ranks and order statistics, which
//! assume nothing, have no interval for fewer than six numbers.

use super::Interval;
use super::normal;
use super::paired::{Effect, Why, log_ratios};
use super::summary::{mean, sd};

/// The smallest number of processes that shows how much processes differ.
pub const FEWEST: usize = 3;

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

#[cfg(test)]
mod tests {
    use super::*;

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
