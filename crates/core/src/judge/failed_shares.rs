//! Compares the shares of requests that failed at two servers.
//!
//! They are compared by their difference, because a server without failures gives no ratio. The interval of the
//! difference is Student's over turns, with the smallest degrees of freedom that Welch's formula can give, and never
//! narrower than the intervals of both shares make it. Where no request of a server failed, its turns do not vary, and
//! those of the other one decide.
//!
//! A limit that allows ten times as many failures asks whether the arm's share, less ten times the reference's share,
//! is below 0. The uncertainty of the reference then counts ten times. So the range of the arm's share holds each
//! multiple of the reference's share that these intervals allow (Fieller 1954). It excludes the reference's share where
//! the interval of the difference excludes 0.

use super::{Pair, pooled};
use crate::evidence::{Evidence, ReadingRange};
use crate::metric::metric;
use crate::sample::Sample;
use crate::unit::Unit;
use scruple_stats::normal;
use scruple_stats::paired::Why;
use scruple_stats::pooled::Pooled;
use scruple_stats::processes::FEWEST;
use scruple_stats::summary::{mean, sd};

/// The shares of both arms of a pair.
pub(super) struct FailedShares {
    reference: Pooled,
    arm: Pooled,
    /// The confidence level of the intervals of the shares.
    level: f64,
    /// The share in each turn of the reference and of the arm.
    turns: (Vec<f64>, Vec<f64>),
}

impl FailedShares {
    /// The shares whose intervals have this level. `None` for other metrics, and where no request of either arm failed.
    pub(super) fn of(
        key: &str,
        pair: &Pair<'_>,
        (before, after): (&Sample, &Sample),
        level: f64,
    ) -> Option<FailedShares> {
        let of = |arm| pooled::of(arm, key).filter(|_| metric(key).is_some_and(|m| m.unit == Unit::Ratio));
        let (reference, arm) = (of(pair.reference)?, of(pair.arm)?);
        let by_turn = |sample: &Sample| sample.by_turn().iter().map(|windows| mean(windows)).collect();
        let any = reference.value > 0.0 || arm.value > 0.0;
        any.then(|| FailedShares { reference, arm, level, turns: (by_turn(before), by_turn(after)) })
    }

    /// The evidence on the difference at `level`.
    pub(super) fn evidence(&self, level: f64) -> Evidence {
        let (left, right) = &self.turns;
        let n = left.len().min(right.len());
        if n < FEWEST {
            return Evidence::undecided(Why::TooFew { have: n, need: FEWEST }, left, right);
        }
        let student = normal::student(level, n as f64 - 1.0);
        let normal = |level: f64| normal::quantile(0.5 + level / 2.0);
        let half = |share: &Pooled, turns: &[f64]| {
            let within = (share.high.unwrap_or(1.0) - share.low) / 2.0 * normal(level) / normal(self.level);
            within.max(student * sd(turns).unwrap_or(0.0) / (turns.len() as f64).sqrt())
        };
        let known = (self.reference.value, half(&self.reference, left));
        let share = (self.arm.value, half(&self.arm, right));
        let (low, high) = match known.0 > 0.0 {
            true => multiples(known, share),
            false => (share.0 - share.1, share.0 + share.1),
        };
        let (known, share) = (known.0, share.0);
        Evidence::Ranges {
            reference: ReadingRange { low: known, middle: known, high: known },
            arm: ReadingRange { low: low.max(0.0), middle: share, high },
            floor: 0.0,
            readings: n,
        }
    }
}

/// The smallest and the largest multiple of `known` that may be `share`, times `known`. Both are values with half of
/// their intervals.
fn multiples(known: (f64, f64), share: (f64, f64)) -> (f64, f64) {
    let of_known = known.0.powi(2) - known.1.powi(2);
    let of_share = share.0.powi(2) - share.1.powi(2);
    let both = known.0 * share.0;
    let sum = both + (both.powi(2) - of_known * of_share).max(0.0).sqrt();
    // If the reference's interval reaches 0, any multiple may be the share.
    let most = if of_known > 0.0 { sum / of_known } else { f64::INFINITY };
    let least = if of_share > 0.0 { of_share / sum } else { 0.0 };
    (least * known.0, most * known.0)
}
