//! The limits that a server has to keep, and whether a measurement kept them.

use super::RateOutcome;
use crate::unit::{Unit, parse_quantity};
use serde::{Deserialize, Serialize};

/// The limits that a server has to keep, all at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// The limits, in the order given; at least one.
    pub limits: Vec<RateLimit>,
}

/// A limit on the responses or the failures of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateLimit {
    /// The measure that is limited.
    pub of: Measure,
    /// The bound, which the measure must stay below: nanoseconds, or a share from 0 to 1 for failures.
    pub below: f64,
    /// The limit as it was written.
    pub text: String,
}

/// A measure that can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The response that this share of requests, from 0 to 1, does not exceed.
    Quantile(f64),
    /// The mean response.
    Mean,
    /// The longest response.
    Max,
    /// The share of requests that fail.
    Errors,
}

/// The figures of one measurement that limits are applied to.
pub struct RateFigures<'a> {
    /// The response at a quantile, in nanoseconds; `None` when no request was answered.
    pub quantile: &'a dyn Fn(f64) -> Option<f64>,
    /// The mean response, in nanoseconds; absent when no request was answered.
    pub mean: Option<f64>,
    /// The share of requests that failed, from 0 to 1.
    pub errors: f64,
    /// How far the answers were behind the requests at the end, as a share of the time in which requests were due.
    pub behind: f64,
}

impl RateFigures<'_> {
    /// Whether the server answered at the rate at which requests were due.
    pub fn kept_up(&self) -> bool {
        self.behind < BEHIND
    }
}

/// A server is behind when its answers took longer than the time in which requests were due by this share of that time.
pub const BEHIND: f64 = 0.02;

/// The lateness of the generator that a part of a measurement may have, as a share of the shortest limit.
const LATE: f64 = 0.25;

impl RateLimit {
    /// The share of requests that may be beyond the limit; 1 for the mean; `None` where none may be beyond it.
    pub fn allowed(&self) -> Option<f64> {
        match self.of {
            Measure::Quantile(q) => Some(1.0 - q),
            Measure::Mean => Some(1.0),
            Measure::Errors => Some(self.below).filter(|share| *share > 0.0),
            Measure::Max => None,
        }
    }
}

impl Slo {
    /// Reads limits such as `p99<20ms,errors<0.1%`: `pN`, `median`, `mean` or `max` with a duration, `errors` with a
    /// share.
    ///
    /// # Errors
    /// A sentence says which part is wrong and what is expected.
    pub fn parse(text: &str) -> Result<Slo, String> {
        let limits: Vec<RateLimit> = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(limit)
            .collect::<Result<_, _>>()?;
        if limits.is_empty() {
            return Err("no limit is given: write for instance p99<20ms,errors<0.1%".to_owned());
        }
        Ok(Slo { limits })
    }

    /// The limits that were not kept. If there is no answer at all, no limit on responses is kept.
    pub fn broken(&self, seen: &RateFigures<'_>) -> Vec<&RateLimit> {
        let value = |limit: &RateLimit| match limit.of {
            Measure::Quantile(q) => (seen.quantile)(q),
            Measure::Mean => seen.mean,
            Measure::Max => (seen.quantile)(1.0),
            Measure::Errors => Some(seen.errors),
        };
        // A limit of no errors can only be met exactly, so a share of 0 keeps it.
        let kept =
            |limit: &RateLimit, value: f64| value < limit.below || (limit.below == 0.0 && value == 0.0);
        self.limits.iter().filter(|limit| !value(limit).is_some_and(|value| kept(limit, value))).collect()
    }

    /// The outcome of a measurement. A rate that the server does not keep up with is not sustained, whatever the
    /// limits: its backlog would break any of them in time. A generator that was late makes every measurement void,
    /// good or bad: if only bad ones were void, the highest rate would seem higher than it is.
    pub fn outcome(&self, seen: &RateFigures<'_>, generator_at_fault: bool) -> RateOutcome {
        match (generator_at_fault, self.broken(seen).is_empty() && seen.kept_up()) {
            (true, _) => RateOutcome::Void,
            (false, true) => RateOutcome::Good,
            (false, false) => RateOutcome::Bad,
        }
    }

    /// How late the generator may be in a part of a measurement that counts, in nanoseconds. Smaller delays are
    /// distinguished request by request. A larger one changes so many responses that the part says little about the
    /// server. The limit does not depend on responses, so that no part is left out because of its result.
    pub fn most_lateness(&self) -> f64 {
        self.shortest().map_or(f64::INFINITY, |limit| limit * LATE)
    }

    /// The shortest bound on responses, in nanoseconds; `None` where only failures are limited.
    pub fn shortest(&self) -> Option<f64> {
        let responses = self.limits.iter().filter(|limit| limit.of != Measure::Errors);
        responses.map(|limit| limit.below).min_by(f64::total_cmp)
    }
}

fn limit(part: &str) -> Result<RateLimit, String> {
    let expected = "write for instance p99<20ms, mean<5ms, max<1s or errors<0.1%";
    let (name, bound) = part.split_once('<').ok_or_else(|| format!("‘{part}’ is not a limit: {expected}"))?;
    let (name, bound) = (name.trim(), bound.strip_prefix('=').unwrap_or(bound).trim());
    let of = match name {
        "errors" => Measure::Errors,
        "mean" => Measure::Mean,
        "max" => Measure::Max,
        "median" => Measure::Quantile(0.5),
        _ => {
            let percent: Option<f64> = name.strip_prefix('p').and_then(|number| number.parse().ok());
            let percent = percent.filter(|p| (0.0..100.0).contains(p));
            Measure::Quantile(
                percent.ok_or_else(|| format!("‘{name}’ cannot be limited: {expected}"))? / 100.0,
            )
        }
    };
    let unit = if of == Measure::Errors { Unit::Ratio } else { Unit::Nanoseconds };
    let below = parse_quantity(bound, &unit).map_err(|why| format!("in the limit ‘{part}’: {why}"))?;
    if below < 0.0 || (of != Measure::Errors && below == 0.0) {
        return Err(format!("‘{part}’ can never be kept: {expected}"));
    }
    Ok(RateLimit { of, below, text: part.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_judged() {
        let slo = Slo::parse("p99.9 < 20ms, errors<0.1%,mean<=1 s").expect("valid");
        assert_eq!((slo.limits[0].below, slo.shortest()), (20e6, Some(20e6)));
        let allowed: Vec<_> = slo.limits.iter().map(RateLimit::allowed).collect();
        assert!(allowed[0].is_some_and(|share| (share - 0.001).abs() < 1e-12), "{allowed:?}");
        assert_eq!(&allowed[1..], [Some(0.001), Some(1.0)]);
        let seen = |p: f64, errors| {
            let quantile = move |_: f64| Some(p);
            let texts: Vec<String> = slo
                .broken(&RateFigures { quantile: &quantile, mean: Some(p), errors, behind: 0.0 })
                .into_iter()
                .map(|limit| limit.text.clone())
                .collect();
            texts
        };
        assert!(seen(19e6, 0.0).is_empty());
        assert_eq!(seen(20e6, 0.001), ["p99.9 < 20ms", "errors<0.1%"]);
        let none = Slo::parse("errors<0%,max<1s").expect("valid");
        let nothing = |_: f64| None;
        assert_eq!(
            none.broken(&RateFigures { quantile: &nothing, mean: None, errors: 0.0, behind: 0.0 }).len(),
            1
        );
        assert!(none.limits.iter().all(|limit| limit.allowed().is_none()));
    }

    #[test]
    fn a_generator_at_fault_makes_good_measurements_void_as_well_as_bad_ones() {
        let slo = Slo::parse("errors<1%").expect("valid");
        let fast = |_: f64| Some(1e6);
        let seen = |behind| RateFigures { quantile: &fast, mean: Some(1e6), errors: 0.0, behind };
        assert_eq!(slo.outcome(&seen(0.0), false), RateOutcome::Good);
        assert_eq!(slo.outcome(&seen(3.1), false), RateOutcome::Bad, "it did not keep up");
        assert_eq!(slo.outcome(&seen(0.0), true), RateOutcome::Void);
        assert_eq!(slo.outcome(&seen(3.1), true), RateOutcome::Void);
        assert!(slo.broken(&seen(3.1)).is_empty());
    }

    #[test]
    fn mistakes_in_limits_are_named() {
        for (text, part) in
            [("p99", "p99"), ("p100<1s", "p100"), ("speed<3", "speed"), ("p50<3apples", "‘p50<3apples’")]
        {
            let message = Slo::parse(text).expect_err("must be refused");
            assert!(message.contains(part), "{message}");
        }
        assert!(Slo::parse(" , ").is_err() && Slo::parse("p50<0ms").is_err());
    }
}
