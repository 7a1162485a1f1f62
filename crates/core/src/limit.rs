//! Limits on metrics, and how they are written.

use crate::metric::{self, Metric};
use crate::unit;
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
        // A name may contain the sign, as those of templates in C++ do; a value cannot.
        let (left, value) = text.rsplit_once('<').ok_or_else(shape)?;
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
    fn a_name_may_contain_the_signs_of_a_limit() {
        let limit = Limit::parse("map<K, v<W>>::get:time.cpu<=+3%").expect("a limit");
        assert_eq!((limit.arm.as_str(), limit.metric.as_str()), ("map<K, v<W>>::get", "time.cpu"));
        assert_eq!(limit.bound, Bound::AtMostTimes(1.03));
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
    fn a_mistyped_metric_is_answered_with_its_neighbour() {
        let error = Limit::parse("maloc.bytes<4MB").expect_err("no such metric");
        assert!(error.contains("did you mean ‘malloc.bytes’"), "{error}");
        assert!(Limit::parse("malloc.bytes<4 ms").is_err());
        assert!(Limit::parse("time.cpu<103%").is_err_and(|why| why.contains("‘+103%’")));
        assert!(Limit::parse("time.wall<5").is_err_and(|why| why.contains("5s")));
        assert!(Limit::parse("malloc.bytes").is_err());
    }
}
