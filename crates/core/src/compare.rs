//! Two samples side by side: an effect with its interval, and one of four verdicts.
//!
//! The verdict is read off the interval and the margin m, both in logarithms so that twice and half are equally far:
//! outside ±ln(1+m) the arms are *different*, inside they are the *same*, an interval that excludes no effect but
//! crosses the margin is a *small* difference, and any other says *don't know*. Reading it off an interval of level
//! 1 − α makes each of the first three wrong in at most α of all cases.

mod exact;
mod many;

use serde::{Deserialize, Serialize};

pub use exact::compare_exact;
pub use many::{Entry, compare_many};

use crate::stats::paired::{self, Effect, Why};
use crate::stats::power;
use crate::stats::processes;
use crate::stats::quantile::{Interval, median};

/// What may be said about two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// They differ by more than the margin.
    #[serde(rename = "different")]
    Different,
    /// They differ by less than the margin, if at all.
    #[serde(rename = "same")]
    Same,
    /// They surely differ, maybe by less than the margin.
    #[serde(rename = "small")]
    Small,
    /// The readings do not tell.
    #[serde(rename = "don't know")]
    DontKnow,
}

/// Which way a difference goes for who pays the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The arm is better than the reference.
    Better,
    /// The arm is worse than the reference.
    Worse,
}

/// One arm against the reference in one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Arm divided by reference; infinite when only the reference is 0, NaN when no ratio makes sense.
    pub effect: f64,
    /// The interval of the effect; absent for exact metrics and where readings are too few or have no ratio.
    pub interval: Option<Interval>,
    /// The margin as a ratio less 1: 0.01 for one per cent.
    pub margin: f64,
    /// What may be said.
    pub verdict: Verdict,
    /// Which way it goes, where the verdict is different or small.
    pub direction: Option<Direction>,
    /// Blocks the comparison rests on; for unpaired samples the readings of the smaller one.
    pub blocks: usize,
    /// About how many more would tell, where the verdict is don't know; else 0.
    pub more_blocks: usize,
    /// Arm minus reference in the unit of the metric, where readings are exact.
    pub difference: Option<f64>,
    /// How the effect and interval were obtained, in words.
    pub method: &'static str,
    /// Why there is no interval, or why an exact metric had to be compared as a noisy one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// Compares readings taken in blocks, the i-th reading of either arm in block i.
///
/// Never fails: where there can be no effect the verdict is don't know and `why` says so.
pub fn compare_noisy(
    reference: &[f64],
    arm: &[f64],
    lower_is_better: bool,
    margin: f64,
    level: f64,
) -> Comparison {
    let nothing = !reference.is_empty() && reference.iter().chain(arm).all(|&r| r == 0.0);
    if nothing && reference.len() == arm.len() {
        return nothing_seen(reference.len(), margin);
    }
    match paired::effect(reference, arm, level) {
        Ok(effect) => judged(effect, lower_is_better, margin),
        Err(why) => unknown(crude_ratio(reference, arm), reference.len().min(arm.len()), margin, why),
    }
}

/// Compares two samples that were not taken in blocks, such as two stored runs.
///
/// What changed on the machine between the runs counts as an effect; `blocks` is the size of the smaller sample.
pub fn compare_unpaired(
    reference: &[f64],
    arm: &[f64],
    lower_is_better: bool,
    margin: f64,
    level: f64,
) -> Comparison {
    match paired::unpaired_effect(reference, arm, level) {
        Ok(effect) => judged(effect, lower_is_better, margin),
        Err(why) => unknown(crude_ratio(reference, arm), reference.len().min(arm.len()), margin, why),
    }
}

/// The verdict on a ratio known by its interval, for a margin given as a ratio less 1.
pub fn verdict(interval: &Interval, margin: f64) -> Verdict {
    let limit = margin.max(0.0).ln_1p();
    let (low, high) = (interval.low.ln(), interval.high.ln());
    if low > limit || high < -limit {
        Verdict::Different
    } else if -limit <= low && high <= limit {
        Verdict::Same
    } else if low > 0.0 || high < 0.0 {
        Verdict::Small
    } else {
        Verdict::DontKnow
    }
}

/// The wider of the margin `m` and what two identical arms were seen to differ by.
///
/// The far end of the A/A interval is what this session cannot tell from nothing.
pub fn honest_margin(m: f64, aa: Option<&Comparison>) -> f64 {
    let Some(interval) = aa.and_then(|aa| aa.interval) else { return m };
    let seen = interval.low.ln().abs().max(interval.high.ln().abs()).exp_m1();
    if seen.is_finite() { m.max(seen) } else { m }
}

/// The wider of the margin `m` and the step by which a clock or counter of `resolution` moves a typical reading.
///
/// Readings of three ticks cannot show one per cent, however well they agree.
pub fn resolved_margin(m: f64, reading: f64, resolution: f64) -> f64 {
    let step = resolution / reading;
    if step.is_finite() { m.max(step) } else { m }
}

/// Compares processes of which there are too few for ranks.
fn compare_processes(entry: &Entry<'_>, level: f64) -> Comparison {
    let effect = if entry.paired { processes::effect } else { processes::unpaired_effect };
    match effect(entry.reference, entry.arm, level) {
        Ok(effect) => judged(effect, entry.lower_is_better, entry.margin),
        Err(why) => {
            let count = entry.reference.len().min(entry.arm.len());
            unknown(crude_ratio(entry.reference, entry.arm), count, entry.margin, why)
        }
    }
}

fn judged(effect: Effect, lower_is_better: bool, margin: f64) -> Comparison {
    let verdict = verdict(&effect.interval, margin);
    let more_blocks = if verdict == Verdict::DontKnow { blocks_to_tell(&effect, margin) } else { 0 };
    let says = matches!(verdict, Verdict::Different | Verdict::Small);
    // The side is read off the interval, which excludes 1 here, and not off the estimate.
    let direction = says.then(|| direction(effect.interval.low > 1.0, lower_is_better));
    Comparison {
        effect: effect.ratio,
        interval: Some(effect.interval),
        margin,
        verdict,
        direction,
        blocks: effect.n,
        more_blocks,
        difference: None,
        method: effect.method,
        why: None,
    }
}

fn direction(more: bool, lower_is_better: bool) -> Direction {
    if more == lower_is_better { Direction::Worse } else { Direction::Better }
}

/// An undecided effect e is decided once the half width is below m − |e| (same) or |e| (small or different).
fn blocks_to_tell(effect: &Effect, margin: f64) -> usize {
    let (e, m) = (effect.ratio.ln().abs(), margin.max(0.0).ln_1p());
    let half_width = effect.interval.map(f64::ln).half_width();
    power::more_blocks(effect.n, half_width, e.max(m - e))
}

fn unknown(effect: f64, blocks: usize, margin: f64, why: Why) -> Comparison {
    let more_blocks = match why {
        Why::TooFew { have, need } => need.saturating_sub(have).max(1),
        _ => 0,
    };
    Comparison {
        effect,
        interval: None,
        margin,
        verdict: Verdict::DontKnow,
        direction: None,
        blocks,
        more_blocks,
        difference: None,
        method: "none",
        why: Some(why),
    }
}

/// A metric that showed nothing anywhere has no ratio, yet nobody would say that the arms may differ.
fn nothing_seen(blocks: usize, margin: f64) -> Comparison {
    Comparison {
        effect: 1.0,
        interval: None,
        margin,
        verdict: Verdict::Same,
        direction: None,
        blocks,
        more_blocks: 0,
        difference: Some(0.0),
        method: "every reading is zero",
        why: None,
    }
}

/// The ratio of medians, for readers who want to see where it points although nothing may be concluded.
fn crude_ratio(reference: &[f64], arm: &[f64]) -> f64 {
    median(arm) / median(reference)
}
