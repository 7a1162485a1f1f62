//! The declaration of a metric.

use super::{Better, Pass, Quality};
use crate::unit::Unit;
use std::borrow::Cow;

/// A metric: its key, unit and meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The key: dotted lower-case words, the same on the command line, in JSON and in SQL.
    pub key: Cow<'static, str>,
    /// The unit of the readings.
    pub unit: Unit,
    /// The direction of an improvement.
    pub better: Better,
    /// The quality of the readings when nothing interferes.
    pub quality: Quality,
    /// The pass that reads the metric.
    pub pass: Pass,
    /// The head of the column in tables.
    pub title: Cow<'static, str>,
    /// The description in one line.
    pub help: Cow<'static, str>,
    /// Whether what it counts comes once in many iterations of a function, as collections do: one iteration does not
    /// show it.
    pub is_rare: bool,
}

/// The metrics of queues of which more is better, although their unit is no rate.
const MORE_IS_BETTER: [&str; 2] = ["queue.balance", "queue.parallelism"];

impl Metric {
    pub(super) const fn built_in(
        key: &'static str,
        unit: Unit,
        quality: Quality,
        pass: Pass,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric {
            key: Cow::Borrowed(key),
            unit,
            better: Better::Lower,
            quality,
            pass,
            title: Cow::Borrowed(title),
            help: Cow::Borrowed(help),
            is_rare: false,
        }
    }

    /// Declares a metric that is counted in launches of its own and repeats when nothing interferes.
    pub(super) const fn counts(
        key: &'static str,
        unit: Unit,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric::built_in(key, unit, Quality::Exact, Pass::Counting, title, help)
    }

    /// Declares that what the metric counts comes once in many iterations of a function.
    pub(super) const fn rare(mut self) -> Metric {
        self.is_rare = true;
        self
    }

    /// Declares a metric of a bench program or a runtime; lower is better unless its unit is a rate, or its key is one of
    /// those of queues of which more is better.
    pub fn custom(key: &str, unit: Unit, quality: Quality, pass: Pass) -> Metric {
        let more = unit.is_rate() || MORE_IS_BETTER.iter().any(|family| key_matches(key, family));
        let better = if more { Better::Higher } else { Better::Lower };
        Metric {
            key: key.to_owned().into(),
            unit,
            better,
            quality,
            pass,
            title: key.to_owned().into(),
            help: "a metric of the measured program's own".into(),
            is_rare: false,
        }
    }

    /// Whether `pattern` names this metric: by its key, by a family such as `malloc` or `malloc.*`, or as `all`.
    pub fn matches(&self, pattern: &str) -> bool {
        key_matches(&self.key, pattern)
    }
}

/// Whether `pattern` names the metric with this key.
pub(crate) fn key_matches(key: &str, pattern: &str) -> bool {
    let family = pattern.strip_suffix(".*").unwrap_or(pattern);
    pattern == "all" || key == family || key.strip_prefix(family).is_some_and(|rest| rest.starts_with('.'))
}
