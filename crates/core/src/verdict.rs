//! Compares two samples: the evidence of a difference, and one of four verdicts.
//!
//! The verdict follows from the evidence and the margin m. Intervals are compared in logarithms, so that twice and half
//! are equally far from 1: outside ±ln(1+m) the arms are *different*, inside they are the *same*; an interval that
//! excludes 1 but crosses the margin is a *small* difference, and any other is *can't tell*. With an interval of level
//! 1 − α, each of the first three verdicts is wrong in at most α of all cases.

mod many;

use serde::{Deserialize, Serialize};

pub(crate) use many::hold_together;
pub use many::{NoisyRow, compare_many};

use crate::evidence::{Evidence, ReadingRange, Replicate};
use scruple_stats::Interval;
use scruple_stats::paired::{Effect, Why};
use scruple_stats::power;

/// The verdict on two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The arms differ by more than the margin.
    #[serde(rename = "different")]
    Different,
    /// The arms differ by less than the margin, if at all.
    #[serde(rename = "same")]
    Same,
    /// The arms differ, maybe by less than the margin.
    #[serde(rename = "small")]
    Small,
    /// The readings do not decide.
    #[serde(rename = "can't tell")]
    CantTell,
}

/// The direction of a difference, for the user, who pays the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The arm is better than the reference.
    Better,
    /// The arm is worse than the reference.
    Worse,
}

/// The largest margin, as a ratio less 1, at which arms may be called the same. With a wider one, "same" would mean
/// nothing.
pub const WIDEST_MARGIN: f64 = 0.25;

/// An undecided interval whose upper end is more than this many times the lower one tells a reader nothing.
const WIDEST_INTERVAL: f64 = 10_000.0;

/// The comparison of one arm with the reference in one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The evidence of the difference.
    pub evidence: Evidence,
    /// The margin as a ratio less 1: 0.01 for one per cent. It is wider than the requested one where the evidence does
    /// not support that.
    pub margin: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// The direction of the difference; absent unless the verdict is different or small.
    pub direction: Option<Direction>,
    /// How many more blocks help where the verdict is can't tell, else 0: with an interval, about as many as would
    /// tell; without one, the fewest that a verdict needs.
    pub more_blocks: usize,
}

impl Comparison {
    /// Derives the verdict from the evidence, for a margin given as a ratio less 1.
    pub fn of(evidence: Evidence, lower_is_better: bool, margin: f64) -> Comparison {
        let margin = evidence.judgeable_margin(margin);
        let (verdict, more) = match &evidence {
            Evidence::Exact { reference, arm, .. } if reference == arm => (Verdict::Same, false),
            Evidence::Exact { reference, arm, .. } => (Verdict::Different, arm > reference),
            Evidence::Interval { effect, resolution, .. } => {
                let found = verdict(&effect.interval, margin);
                let differs = !evidence.ratio_bounds().is_ok_and(|(low, high)| low <= 1.0 && 1.0 <= high);
                // A difference that identical programs may have is not a small difference either.
                let known = found != Verdict::Small || *resolution == 0.0 || differs;
                (if known { found } else { Verdict::CantTell }, effect.interval.low > 1.0)
            }
            Evidence::Ranges { reference, arm, floor, .. } => {
                (of_ranges(reference, arm, *floor, margin), arm.middle > reference.middle)
            }
            Evidence::Absent { .. } => (Verdict::CantTell, false),
        };
        let says = matches!(verdict, Verdict::Different | Verdict::Small);
        let direction =
            says.then_some(if more == lower_is_better { Direction::Worse } else { Direction::Better });
        let more_blocks = if verdict == Verdict::CantTell { blocks_to_tell(&evidence, margin) } else { 0 };
        Comparison { evidence, margin, verdict, direction, more_blocks }
    }

    /// The comparison, without its interval if that decides nothing and excludes next to nothing.
    fn without_empty_interval(mut self) -> Comparison {
        if let Evidence::Interval { effect, .. } = self.evidence
            && self.verdict == Verdict::CantTell
            && effect.interval.high > effect.interval.low * WIDEST_INTERVAL
        {
            let pointing = Some(effect.ratio).filter(|ratio| ratio.is_finite());
            self.evidence = Evidence::Absent { why: Why::TooWide, pointing, readings: effect.n };
        }
        self
    }

    /// The interval of the effect; `None` where the evidence is of another kind.
    pub fn interval(&self) -> Option<Interval> {
        self.evidence.interval()
    }

    /// Half the width of the interval in logarithms; infinite where there is no interval.
    pub fn half_width(&self) -> f64 {
        self.interval().map_or(f64::INFINITY, |interval| interval.map(f64::ln).half_width())
    }
}

/// Compares readings taken in blocks: the i-th reading of each arm belongs to block i.
///
/// Never fails: where there is no effect, the verdict is can't tell, and the evidence gives the reason.
///
/// ```
/// use scruple_core::verdict::{Direction, Verdict, compare_noisy};
///
/// // Times of twelve blocks, in nanoseconds: the arm takes about 10 % longer in each.
/// let reference = [100.0, 104.0, 99.0, 107.0, 101.0, 98.0, 103.0, 100.0, 105.0, 102.0, 99.0, 101.0];
/// let arm: Vec<f64> = reference.iter().enumerate().map(|(i, time)| time * (1.1 + 0.001 * i as f64)).collect();
/// let comparison = compare_noisy(&reference, &arm, true, 0.02, 0.95);
/// assert_eq!(comparison.verdict, Verdict::Different);
/// assert_eq!(comparison.direction, Some(Direction::Worse));
/// ```
pub fn compare_noisy(
    reference: &[f64],
    arm: &[f64],
    lower_is_better: bool,
    margin: f64,
    level: f64,
) -> Comparison {
    Comparison::of(Evidence::of_blocks(reference, arm, level), lower_is_better, margin)
}

/// Compares two samples that were not taken in blocks, such as two stored runs.
pub fn compare_unpaired(
    reference: &[f64],
    arm: &[f64],
    lower_is_better: bool,
    margin: f64,
    level: f64,
) -> Comparison {
    Comparison::of(Evidence::of_samples(reference, arm, level), lower_is_better, margin)
}

/// The verdict on a ratio with this interval, for a margin given as a ratio less 1.
pub fn verdict(interval: &Interval, margin: f64) -> Verdict {
    let limit = margin.max(0.0).ln_1p();
    let (low, high) = (interval.low.ln(), interval.high.ln());
    if low > limit || high < -limit {
        Verdict::Different
    } else if -limit <= low && high <= limit && margin <= WIDEST_MARGIN {
        Verdict::Same
    } else if low > 0.0 || high < 0.0 {
        Verdict::Small
    } else {
        Verdict::CantTell
    }
}

/// The verdict on two ranges: different where every reading of one arm is beyond the margin of every reading of the
/// other, same where none is, else can't tell.
fn of_ranges(reference: &ReadingRange, arm: &ReadingRange, floor: f64, margin: f64) -> Verdict {
    let room = floor.max(reference.middle.abs() * margin);
    if arm.low - reference.high > room || reference.low - arm.high > room {
        Verdict::Different
    } else if (arm.high - reference.low).abs() <= room
        && (arm.low - reference.high).abs() <= room
        && margin <= WIDEST_MARGIN
    {
        Verdict::Same
    } else {
        Verdict::CantTell
    }
}

/// The larger of the margin `m` and the largest difference that two identical arms may have had.
///
/// That is the far end of the interval of the A/A comparison `aa`: this session cannot distinguish it from no
/// difference.
pub fn honest_margin(m: f64, aa: Option<&Comparison>) -> f64 {
    let Some(interval) = aa.and_then(Comparison::interval) else { return m };
    let seen = interval.low.ln().abs().max(interval.high.ln().abs()).exp_m1();
    if seen.is_finite() { m.max(seen) } else { m }
}

fn blocks_to_tell(evidence: &Evidence, margin: f64) -> usize {
    match evidence {
        // More nodes, or more pairs on each, would tell; more blocks alone would not.
        Evidence::Interval { of: Replicate::Nodes { .. }, .. } => 0,
        Evidence::Interval { effect, .. } if margin <= WIDEST_MARGIN => narrower(effect, margin),
        Evidence::Absent {
            why: Why::TooFew { have, need } | Why::FewProcesses { have, need } | Why::Drifting { have, need },
            ..
        } => need.saturating_sub(*have).max(1),
        _ => 0,
    }
}

/// About how many more blocks decide an undecided effect e: the half width must fall below m − |e| (same) or |e| (small
/// or different).
fn narrower(effect: &Effect, margin: f64) -> usize {
    let (e, m) = (effect.ratio.ln().abs(), margin.max(0.0).ln_1p());
    let half_width = effect.interval.map(f64::ln).half_width();
    power::more_blocks(effect.n, half_width, e.max(m - e))
}
