//! Compares the shares of requests that failed at two servers.
//!
//! They are compared by their difference, because a server without failures gives no ratio. The interval of the
//! difference is Student's over turns, with the smallest degrees of freedom that Welch's formula can give, and never
//! narrower than the intervals of both shares make it. Where no request of a server failed, its turns do not vary, and
//! those of the other one decide.

use super::{Pair, pooled};
use crate::evidence::{Evidence, ReadingRange};
use crate::metric::metric;
use crate::sample::Sample;
use crate::stats::normal;
use crate::stats::paired::Why;
use crate::stats::pooled::Pooled;
use crate::stats::processes::FEWEST;
use crate::stats::summary::{mean, sd};
use crate::unit::Unit;

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
        let of_turns = |turns: &[f64]| sd(turns).unwrap_or(0.0).powi(2) / turns.len() as f64;
        let between = normal::student(level, n as f64 - 1.0) * (of_turns(left) + of_turns(right)).sqrt();
        let normal = |level: f64| normal::quantile(0.5 + level / 2.0);
        let half = |share: &Pooled| (share.high.unwrap_or(1.0) - share.low) / 2.0;
        let within = half(&self.reference).hypot(half(&self.arm)) * normal(level) / normal(self.level);
        let half = between.max(within);
        let (known, share) = (self.reference.value, self.arm.value);
        Evidence::Ranges {
            reference: ReadingRange { low: known, middle: known, high: known },
            arm: ReadingRange { low: (share - half).max(0.0), middle: share, high: share + half },
            floor: 0.0,
            readings: n,
        }
    }
}
