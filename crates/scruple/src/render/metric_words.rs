//! A metric in words: its title, its verdicts, its effects.

use scruple_core::evidence::Evidence;
use scruple_core::metric::{Better, Metric, metric};
use scruple_core::unit::{Unit, change, change_between, exact, relative_spread};
use scruple_core::verdict::{Comparison, Direction, Verdict};
use std::borrow::Cow;

/// Returns Scruple's declaration of a metric. For a key that Scruple does not declare, all but the key is a placeholder.
pub fn declared(key: &str) -> Metric {
    use scruple_core::metric::{Pass, Quality};
    metric(key).cloned().unwrap_or_else(|| Metric::custom(key, Unit::Count, Quality::Noisy, Pass::Timing))
}

/// Returns the heading of a metric's column.
pub fn title(key: &str) -> String {
    declared(key).title.into_owned()
}

/// Returns the name of a metric, as a noun in a sentence.
pub(crate) fn measure(key: &str) -> &str {
    match key {
        "time.wall" => "wall time",
        "time.cpu" => "cpu time",
        // The titles of these are adjectives, and one is a moment.
        "alloc.bytes" => "allocated memory",
        "memory.private_dirty" => "private dirty memory",
        "memory.pss" => "proportional memory",
        "memory.uss" => "unique memory",
        "gc.pause_max" => "time in the longest pause",
        "load.rate" => "requests per second",
        "load.p50" => "median response time",
        "load.p90" => "p90 response time",
        "load.p99" => "p99 response time",
        "load.p999" => "p99.9 response time",
        "load.max" => "time for the longest response",
        "load.mean" => "mean response time",
        "load.service.p50" => "median service time",
        "load.service.p99" => "p99 service time",
        key => metric(key).map_or(key, |metric| metric.title.as_ref()),
    }
}

/// Returns a verdict in words that fit the metric.
pub fn verdict_words(key: &str, comparison: &Comparison) -> Cow<'static, str> {
    let metric = declared(key);
    let time = metric.unit == Unit::Nanoseconds && (key.starts_with("time.") || key.starts_with("load."));
    let higher = metric.better == Better::Higher;
    // If identical programs differ in a metric, its margin may be far above the requested one, and an interval that
    // excludes equality may give no verdict.
    let (resolution, certain) = match &comparison.evidence {
        Evidence::Interval { effect, resolution, .. } => (*resolution, !effect.interval.contains(1.0)),
        Evidence::Ranges { floor, .. } => (*floor, false),
        Evidence::Exact { .. } | Evidence::Absent { .. } => (0.0, false),
    };
    let word = match (comparison.verdict, comparison.direction) {
        (Verdict::Same, _) if resolution > 0.0 => {
            return format!("same within {}", relative_spread(comparison.margin)).into();
        }
        (Verdict::CantTell, _) if resolution > 0.0 && certain => {
            return format!("can’t tell within {}", relative_spread(comparison.margin)).into();
        }
        (Verdict::Same, _) => "same",
        (Verdict::CantTell, _) => "can’t tell",
        (Verdict::Different, Some(Direction::Better)) if time => "faster",
        (Verdict::Different, Some(Direction::Worse)) if time => "slower",
        (Verdict::Different, Some(Direction::Better)) if !higher => "less",
        (Verdict::Different, Some(Direction::Worse)) if higher => "less",
        (Verdict::Different, _) => "more",
        (Verdict::Small, Some(Direction::Better)) if time => "slightly faster",
        (Verdict::Small, Some(Direction::Worse)) if time => "slightly slower",
        (Verdict::Small, Some(Direction::Better)) if !higher => "slightly less",
        (Verdict::Small, Some(Direction::Worse)) if higher => "slightly less",
        (Verdict::Small, _) => "slightly more",
    };
    word.into()
}

/// Writes the effect of a comparison with its interval, as tables show it.
pub fn effect_text(key: &str, comparison: &Comparison) -> String {
    let evidence = &comparison.evidence;
    let signed = |difference: f64| {
        let sign = if difference > 0.0 { "+" } else { "" };
        format!("{sign}{}", exact(difference, &declared(key).unit))
    };
    match (evidence, evidence.effect()) {
        (Evidence::Exact { reference, arm, .. }, _) if reference == arm => "±0".to_owned(),
        (Evidence::Exact { reference, arm, .. }, Some(effect)) if effect != 0.0 => {
            format!("{} ({})", change(effect), signed(arm - reference))
        }
        (Evidence::Exact { reference, arm, .. }, _) => signed(arm - reference),
        (Evidence::Interval { effect, .. }, _) => {
            change_between(effect.ratio, effect.interval.low, effect.interval.high)
        }
        (Evidence::Ranges { reference, arm, .. }, None) => signed(arm.middle - reference.middle),
        (Evidence::Ranges { .. }, Some(1.0)) => "±0".to_owned(),
        (Evidence::Ranges { .. } | Evidence::Absent { .. }, Some(effect)) => change(effect),
        (Evidence::Absent { .. }, None) => String::new(),
    }
}
