//! What is said of a metric that does not exist.

use super::{METRICS, Metric};
use crate::nearest_word::nearest;

/// Returns the end of an error message about an unknown metric: the most similar key, or where the keys are listed.
/// `brought` are the metrics that a program declares itself.
pub fn suggestion(key: &str, brought: &[Metric]) -> String {
    match nearest(key, brought.iter().chain(METRICS.iter()).map(|metric| &*metric.key)) {
        Some(nearest) => format!("did you mean ‘{nearest}’?"),
        None => "`scruple inspect metrics` lists them".to_owned(),
    }
}
