//! Checks of the metrics and limits that a command line names.

use super::limit_applies;
use crate::fault::Fault;
use scruple_core::limit::Limit;
use scruple_core::metric::{METRICS, Metric, Pass, suggestion};
use scruple_core::subject::Arm;
use scruple_core::unit::Unit;
use scruple_measure::runtimes::Runtime;

/// Checks that every requested metric exists, before anything is measured.
pub fn check_metrics(asked: &[String]) -> Result<(), Fault> {
    for pattern in asked {
        // The metrics of a runtime are only known once a program has run.
        let family = pattern.split('.').next().unwrap_or_default();
        if !METRICS.iter().any(|metric| metric.matches(pattern)) && Runtime::from_word(family).is_none() {
            return Err(Fault::usage(format!(
                "there is no metric ‘{pattern}’: {}",
                suggestion(pattern, &[])
            )));
        }
    }
    Ok(())
}

/// Parses the limits of the command line.
pub fn parse_limits(texts: &[String], brought: &[Metric]) -> Result<Vec<Limit>, Fault> {
    texts.iter().map(|text| Limit::parse_among(text, brought).map_err(Fault::usage)).collect()
}

/// Checks that every limit applies to some arm, since otherwise it would always be kept.
pub fn check_limits<'a>(limits: &[Limit], arms: impl Iterator<Item = &'a Arm> + Clone) -> Result<(), Fault> {
    match limits.iter().find(|limit| !arms.clone().any(|arm| limit_applies(limit, arm))) {
        None => Ok(()),
        Some(limit) => {
            let names: Vec<String> = arms.map(|arm| format!("‘{}’", arm.name)).collect();
            Err(Fault::usage(format!(
                "the limit ‘{}’ is for ‘{}’, but there is no such arm: there are {}",
                limit.text,
                limit.arm,
                names.join(", ")
            )))
        }
    }
}

/// Refuses a limit on a change where there is nothing to compare with, as `why` says with what to do.
pub fn refuse_changes(limits: &[Limit], why: &str) -> Result<(), Fault> {
    match limits.iter().find(|limit| limit.bound.is_relative()) {
        None => Ok(()),
        Some(Limit { text, metric, .. }) => Err(Fault::usage(format!(
            "the limit ‘{text}’ is a change, and {why}, or limit the amount ({metric}<{})",
            match scruple_core::metric::metric(metric).map(|metric| &metric.unit) {
                Some(Unit::Nanoseconds) => "20ms",
                Some(Unit::Bytes) => "1MB",
                Some(Unit::Ratio) => "1%",
                _ => "1000",
            }
        ))),
    }
}

/// Checks that no time is to be shown or limited in a run with `--count-only`, which measures none.
pub fn check_no_times(limits: &[Limit], metrics: &[String]) -> Result<(), Fault> {
    let limited = limits.iter().map(|limit| (&limit.metric, &limit.text));
    let named = metrics.iter().map(|pattern| (pattern, pattern));
    let timed = |pattern: &str| {
        let mut meant = METRICS.iter().filter(|metric| metric.matches(pattern)).peekable();
        pattern != "all" && meant.peek().is_some() && meant.all(|metric| metric.pass == Pass::Timing)
    };
    match limited.chain(named).find(|(pattern, _)| timed(pattern)) {
        None => Ok(()),
        Some((_, text)) => Err(Fault::usage(format!(
            "‘{text}’ needs launches for time, and with --count-only there are none: leave one of the two out"
        ))),
    }
}
