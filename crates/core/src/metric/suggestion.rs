//! The advice for a metric that does not exist.

use super::{METRICS, Metric};
use crate::nearest_word::nearest;

/// Returns the end of an error message about an unknown metric: the key with this title, else the most similar key,
/// else the command that lists the keys. `brought` are the metrics that a program declares itself.
pub fn suggestion(key: &str, brought: &[Metric]) -> String {
    let known = || brought.iter().chain(METRICS.iter());
    let titled = known().find(|metric| metric.title.eq_ignore_ascii_case(key)).map(|metric| &*metric.key);
    match titled.or_else(|| nearest(key, known().map(|metric| &*metric.key))) {
        Some(nearest) => format!("did you mean ‘{nearest}’?"),
        None => "`scruple inspect metrics` lists them".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_a_row_is_answered_with_its_key() {
        for (title, key) in [("mallocs", "malloc.count"), ("peak memory", "memory.peak"), ("CPU", "time.cpu")]
        {
            assert_eq!(suggestion(title, &[]), format!("did you mean ‘{key}’?"));
        }
    }
}
