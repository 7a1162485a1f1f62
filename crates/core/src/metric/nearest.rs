//! Suggests a key for a mistyped one.

use super::{METRICS, Metric};
use std::borrow::Cow;

/// The known key that is nearest to a mistyped one, for error messages.
pub fn nearest(key: &str) -> &'static str {
    let distance = |metric: &&Metric| edit_distance(key, &metric.key).min(edit_distance(key, &metric.title));
    METRICS.iter().min_by_key(distance).map_or("time.wall", |metric| match &metric.key {
        Cow::Borrowed(key) => key,
        Cow::Owned(_) => "time.wall",
    })
}

/// The number of single-character insertions, deletions and substitutions between two words (Levenshtein 1966).
pub fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
