//! Determines which results of a search are unknown because the generator was late.

use super::{CLOSE, Knee, KneeInterval, Measure, Measurement, RateLimit, RateOutcome, Slo};

/// The share of requests with which a generator may be late, where no limit on a quantile says it.
const MOST_LATE: f64 = 0.01;

/// A search ends after this many measurements near its two ends in which the generator was late. It does not end after
/// the first, because other work on the machine may end meanwhile.
const MANY_LATE: usize = 6;

/// The share of requests with which the generator may be late: what the strictest limit on a quantile allows.
pub(super) fn most_late(slo: &Slo) -> f64 {
    let of_quantile = |limit: &RateLimit| match limit.of {
        Measure::Quantile(_) => limit.allowed(),
        Measure::Mean | Measure::Max | Measure::Errors => None,
    };
    slo.limits.iter().filter_map(of_quantile).min_by(f64::total_cmp).unwrap_or(MOST_LATE)
}

impl Knee {
    /// Withdraws the upper end of the interval if a late generator leaves it unknown which rate is too high for the
    /// server.
    pub(super) fn unless_late(&self, found: KneeInterval) -> KneeInterval {
        let reached_the_most = found.low.is_some_and(|low| low >= self.search.most);
        let Some(late) = self.late().filter(|_| !reached_the_most) else { return found };
        let mostly_good = self.tallies.iter().rev().find(|tally| tally.good > tally.bad);
        let low = mostly_good.map(|tally| tally.rate);
        KneeInterval { estimate: None, low, high: None, settled: false, late: Some(late), ..found }
    }

    /// Whether further measurements would add nothing: the ends are close to each other, and the generator was late in
    /// most measurements near them that were not good. The upper end then stays unknown.
    pub(super) fn is_hopeless(&self) -> bool {
        let (Some(good), Some(bad)) = self.ends() else { return false };
        let near =
            |m: &&Measurement| m.rate >= good && m.rate < bad * CLOSE && m.outcome != RateOutcome::Good;
        let late = self.measurements.iter().filter(near).filter(|m| m.late > self.most_late).count();
        bad / good <= CLOSE && late >= MANY_LATE && self.late().is_some()
    }

    /// The share of requests with which the generator was late in measurements that were not good, if it is more than
    /// the limits allow: the generator, which needs its core only for moments, would not keep them either.
    fn late(&self) -> Option<f64> {
        let not_good = || self.measurements.iter().filter(|m| m.outcome != RateOutcome::Good);
        let late = not_good().map(|m| m.late).sum::<f64>() / not_good().count() as f64;
        (late > self.most_late).then_some(late)
    }
}
