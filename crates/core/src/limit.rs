//! Limits on metrics, and whether readings keep them.

use crate::evidence::Evidence;
use crate::judge::Judged;
use crate::metric::{self, Metric, Quality};
use crate::stats::paired::Why;
use crate::unit;
use crate::words::words;
use serde::{Deserialize, Serialize};

/// A limit on one metric of some arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The arms that the limit applies to: a name, a prefix that ends in `*`, or `*` for all.
    pub arm: String,
    /// The key of the metric.
    pub metric: String,
    /// The limit.
    #[serde(rename = "limit")]
    pub bound: Bound,
    /// The case that a relative limit compares with; absent for the reference or the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// The text from which the limit was read, for reports.
    pub text: String,
}

/// An upper or a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The metric is at most this, in its unit.
    AtMost(f64),
    /// The metric is at least this, in its unit.
    AtLeast(f64),
    /// The ratio of the metric to that of the reference is at most this: 1.03 for `+3%`.
    AtMostTimes(f64),
    /// The ratio of the metric to that of the reference is at least this: 0.97 for `-3%`.
    AtLeastTimes(f64),
}

impl Bound {
    /// Whether the limit is relative to another arm.
    pub fn is_relative(&self) -> bool {
        matches!(self, Bound::AtMostTimes(_) | Bound::AtLeastTimes(_))
    }

    /// Whether the limit is kept, for a range of values that the readings allow.
    fn holds(&self, low: f64, high: f64) -> Kept {
        let (surely, surely_not) = match *self {
            Bound::AtMost(bound) | Bound::AtMostTimes(bound) => (high <= bound, low > bound),
            Bound::AtLeast(bound) | Bound::AtLeastTimes(bound) => (low >= bound, high < bound),
        };
        match (surely, surely_not) {
            (true, _) => Kept::Yes,
            (_, true) => Kept::No,
            _ => Kept::CantTell,
        }
    }
}

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

impl Limit {
    /// Reads a limit: `METRIC<VALUE` or `METRIC<+3%`, optionally preceded by `ARM:`. `<=` means the same as `<`: the
    /// difference matters for counts only, and a count that is equal to the limit keeps it.
    ///
    /// # Errors
    ///
    /// A sentence says which part is wrong and what is expected.
    ///
    /// ```
    /// use scruple_core::limit::Limit;
    ///
    /// let limit = Limit::parse("parser*:malloc.bytes<4MB").expect("a limit");
    /// assert_eq!((limit.metric.as_str(), limit.text.as_str()), ("malloc.bytes", "parser*:malloc.bytes<4MB"));
    /// assert!(limit.applies_to("parser new") && !limit.applies_to("printer"));
    /// assert!(Limit::parse("maloc.bytes<4MB").unwrap_err().contains("did you mean ‘malloc.bytes’"));
    /// ```
    pub fn parse(text: &str) -> Result<Limit, String> {
        Limit::parse_among(text, &[])
    }

    /// Reads a limit as [`Limit::parse`] does; `brought` are the metrics that a program declares itself.
    ///
    /// # Errors
    ///
    /// Fails as [`Limit::parse`] does.
    pub fn parse_among(text: &str, brought: &[Metric]) -> Result<Limit, String> {
        let shape = || {
            format!(
                "‘{text}’ is not a limit: expected METRIC<VALUE, such as ‘malloc.bytes<4MB’ or ‘time.cpu<+3%’"
            )
        };
        let (left, value) = text.split_once('<').ok_or_else(shape)?;
        let value = value.strip_prefix('=').unwrap_or(value).trim();
        let (arm, key) = match left.rsplit_once(':') {
            Some((arm, key)) => (arm.trim(), key.trim()),
            None => ("*", left.trim()),
        };
        let own = brought.iter().find(|metric| metric.key == key);
        let declared = metric::metric(key).or(own).ok_or_else(|| {
            format!("there is no metric ‘{key}’ in the limit ‘{text}’: {}", metric::suggestion(key, brought))
        })?;
        let bound = parse_limit(value, declared).map_err(|why| format!("in the limit ‘{text}’: {why}"))?;
        Ok(Limit { arm: arm.to_owned(), metric: key.to_owned(), bound, against: None, text: text.to_owned() })
    }

    /// Whether the limit applies to an arm with this name.
    pub fn applies_to(&self, arm: &str) -> bool {
        match self.arm.strip_suffix('*') {
            Some(prefix) => arm.starts_with(prefix),
            None => arm == self.arm,
        }
    }
}

fn parse_limit(value: &str, metric: &Metric) -> Result<Bound, String> {
    let signed = value.starts_with(['+', '-']);
    // Shares are written in per cent too, so for them only a sign marks a change.
    if let Some(percent) = value.strip_suffix('%').filter(|_| signed || metric.unit != unit::Unit::Ratio) {
        if !signed {
            return Err(format!(
                "‘{value}’ has no sign: write ‘+{value}’ for at most that much more than the reference, or an amount"
            ));
        }
        let percent =
            percent.trim().parse().ok().filter(|percent: &f64| percent.is_finite() && *percent >= -100.0);
        let percent =
            percent.ok_or_else(|| format!("‘{value}’ is not a change: write for instance ‘+3%’"))?;
        return Ok(Bound::AtMostTimes(1.0 + percent / 100.0));
    }
    if signed {
        return Err(format!(
            "‘{value}’ is a change, but no percentage: write for instance ‘+3%’, or an amount without a sign"
        ));
    }
    unit::parse_quantity(value, &metric.unit).map(Bound::AtMost)
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
                None => "there is nothing to compare with: it is the reference, or the only arm".to_owned(),
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
    let kept = bound.holds(low, high);
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
    let kept = bound.holds(low, high);
    let found = match (evidence.effect(), evidence.difference()) {
        (None, Some(difference)) => format!("+{} from nothing", unit::exact(difference, &metric.unit)),
        (None, None) => "from 0 to more than 0".to_owned(),
        (Some(effect), _) if low == high => unit::change(effect),
        (Some(effect), _) => {
            format!("{} [{}, {}]", unit::change(effect), unit::change(low), unit::change(high))
        }
    };
    (kept, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_in_the_units_of_their_metric() {
        let limit = Limit::parse("malloc.bytes<4MB").expect("a limit");
        assert_eq!(limit.bound, Bound::AtMost(4e6));
        assert!(limit.applies_to("anything"));
        let limit = Limit::parse("gzip*:time.cpu<=+3%").expect("a limit");
        assert_eq!(limit.bound, Bound::AtMostTimes(1.03));
        assert!(limit.applies_to("gzip -9") && !limit.applies_to("zstd"));
    }

    #[test]
    fn a_least_is_kept_above_and_unknown_across() {
        let least = Bound::AtLeast(5.0);
        assert_eq!(
            [least.holds(5.0, 6.0), least.holds(4.0, 6.0), least.holds(4.0, 4.9)],
            [Kept::Yes, Kept::CantTell, Kept::No]
        );
        assert!(Bound::AtLeastTimes(0.9).is_relative() && !least.is_relative());
    }

    #[test]
    fn a_program_brings_metrics_and_their_units() {
        let bytes =
            Metric::custom("zoo.bytes", unit::Unit::Bytes, metric::Quality::Exact, metric::Pass::Counting);
        let limit = Limit::parse_among("zoo.bytes<2kB", &[bytes]).expect("a limit");
        assert_eq!(limit.bound, Bound::AtMost(2000.0));
        assert!(Limit::parse("zoo.bytes<2kB").is_err());
    }

    #[test]
    fn a_share_is_limited_in_percent_and_its_change_with_a_sign() {
        let bound = |text: &str| Limit::parse(text).expect("a limit").bound;
        assert_eq!(bound("load.errors<0.1%"), Bound::AtMost(0.001));
        assert_eq!(bound("load.errors<+10%"), Bound::AtMostTimes(1.1));
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

    #[test]
    fn a_mistyped_metric_is_answered_with_its_neighbour() {
        let error = Limit::parse("maloc.bytes<4MB").expect_err("no such metric");
        assert!(error.contains("did you mean ‘malloc.bytes’"), "{error}");
        assert!(Limit::parse("malloc.bytes<4 ms").is_err());
        assert!(Limit::parse("time.cpu<103%").is_err_and(|why| why.contains("‘+103%’")));
        assert!(Limit::parse("time.wall<5").is_err_and(|why| why.contains("5s")));
        assert!(Limit::parse("malloc.bytes").is_err());
    }
}
