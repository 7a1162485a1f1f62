//! Judges whether readings keep the limits on them.

use super::Judged;
use crate::evidence::Evidence;
use crate::limit::{Bound, Limit};
use crate::metric::{Metric, Quality};
use crate::unit;
use crate::words::words;
use scruple_stats::paired::Why;
use serde::Serialize;

words! {
    /// Whether a limit was kept.
    pub enum Kept {
        /// All values that the readings allow keep the limit.
        Yes = "kept",
        /// All values that the readings allow exceed the limit.
        No = "exceeded",
        /// The readings do not decide.
        CantTell = "can't tell",
    }
}

/// The result of applying a limit to one arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The text of the limit.
    pub limit: String,
    /// The name of the arm.
    pub arm: String,
    /// Whether the arm keeps the limit.
    #[serde(rename = "result")]
    pub kept: Kept,
    /// The value or the change that was found, in words.
    pub found: String,
}

/// The value that an absolute limit is compared with, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitedValue {
    /// The estimate, in the unit of the metric.
    pub value: f64,
    /// The smallest and the largest value that the readings allow, or why there are none.
    pub bounds: Result<(f64, f64), Why>,
}

/// Compares an amount with an absolute limit, or a comparison with a relative one.
///
/// `amount` is that of the arm, `judged` its comparison with the reference. Where the required one is absent, the
/// result is *can't tell*, with the reason from `absent`.
pub fn check(
    limit: &Limit,
    arm: &str,
    metric: &Metric,
    amount: Option<LimitedValue>,
    judged: Option<&Judged>,
    absent: Option<&str>,
) -> Checked {
    let (kept, found) = match (&limit.bound, amount, judged) {
        (bound, Some(amount), _) if !bound.is_relative() => check_absolute(bound, metric, amount),
        (bound, _, Some(judged)) if bound.is_relative() => {
            check_relative(bound, metric, &judged.comparison.evidence)
        }
        (bound, Some(_), None) if bound.is_relative() => (
            Kept::CantTell,
            match &limit.against {
                Some(case) => format!("there is no case ‘{case}’ with this metric to compare with"),
                None => "there is nothing to compare with: it is the reference, or no other side has it"
                    .to_owned(),
            },
        ),
        _ => (Kept::CantTell, format!("{} was not weighed: {}", metric.key, absent.unwrap_or("no reading"))),
    };
    Checked { limit: limit.text.clone(), arm: arm.to_owned(), kept, found }
}

fn check_absolute(bound: &Bound, metric: &Metric, amount: LimitedValue) -> (Kept, String) {
    let (low, high) = match amount.bounds {
        Ok(bounds) => bounds,
        Err(why) => {
            return (Kept::CantTell, format!("{}: {why}", unit::quantity(amount.value, &metric.unit)));
        }
    };
    let kept = holds(*bound, low, high);
    let text = |value: f64| unit::quantity(value, &metric.unit);
    let (value, least) = (text(amount.value), text(low));
    let same = low == high || metric.quality == Quality::Noisy && least == text(high);
    let found = match same {
        // A noisy figure that is known exactly, such as the longest response, has digits without meaning.
        true if metric.quality == Quality::Noisy => value,
        true => unit::exact(amount.value, &metric.unit),
        false if high == f64::INFINITY => format!("{value}, and at least {least}: {}", Why::Unbounded),
        false => format!("{value} [{least}, {}]", text(high)),
    };
    (kept, found)
}

fn check_relative(bound: &Bound, metric: &Metric, evidence: &Evidence) -> (Kept, String) {
    let (low, high) = match evidence.ratio_bounds() {
        Ok(bounds) => bounds,
        Err(why) => return (Kept::CantTell, why.to_string()),
    };
    let kept = holds(*bound, low, high);
    let found = match (evidence.effect(), evidence.difference()) {
        (None, Some(difference)) => format!("+{} from nothing", unit::exact(difference, &metric.unit)),
        (None, None) => "from 0 to more than 0".to_owned(),
        (Some(effect), _) if low == high => unit::change(effect),
        (Some(effect), _) if high == f64::INFINITY => {
            format!("{}, and at least {}", unit::change(effect), unit::change(low))
        }
        (Some(effect), _) => {
            format!("{} [{}, {}]", unit::change(effect), unit::change(low), unit::change(high))
        }
    };
    (kept, found)
}

/// Whether a limit is kept, for a range of values that the readings allow.
fn holds(bound: Bound, low: f64, high: f64) -> Kept {
    let (surely, surely_not) = match bound {
        Bound::AtMost(bound) | Bound::AtMostTimes(bound) => (high <= bound, low > bound),
        Bound::AtLeast(bound) | Bound::AtLeastTimes(bound) => (low >= bound, high < bound),
    };
    match (surely, surely_not) {
        (true, _) => Kept::Yes,
        (_, true) => Kept::No,
        _ => Kept::CantTell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;

    #[test]
    fn a_least_is_kept_above_and_unknown_across() {
        let least = Bound::AtLeast(5.0);
        assert_eq!(
            [holds(least, 5.0, 6.0), holds(least, 4.0, 6.0), holds(least, 4.0, 4.9)],
            [Kept::Yes, Kept::CantTell, Kept::No]
        );
        assert!(Bound::AtLeastTimes(0.9).is_relative() && !least.is_relative());
    }

    #[test]
    fn a_value_without_an_upper_end_is_at_least_its_lower_end() {
        let found = |text: &str, low: f64, high: f64| {
            let limit = Limit::parse(text).expect("a limit");
            let metric = metric::metric(&limit.metric).expect("declared");
            let amount = LimitedValue { value: 3e7, bounds: Ok((low, high)) };
            let checked = check(&limit, "app", metric, Some(amount), None, None);
            (checked.kept, checked.found)
        };
        let (kept, words) = found("load.p99<2s", 2e7, f64::INFINITY);
        assert_eq!(kept, Kept::CantTell);
        assert!(words.starts_with("30.0 ms, and at least 20.0 ms: there are too few requests"), "{words}");
        assert_eq!(found("load.p99<10ms", 2e7, f64::INFINITY).0, Kept::No);
        assert_eq!(found("load.max<1s", 3e7, 3e7), (Kept::Yes, "30.0 ms".to_owned()));
    }
}
