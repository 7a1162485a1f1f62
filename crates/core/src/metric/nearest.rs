//! Suggests a known word for a mistyped one.

use super::{METRICS, Metric};

/// Returns the end of an error message about an unknown metric: the most similar key, or where the keys are listed.
/// `brought` are the metrics that a program declares itself.
pub fn suggestion(key: &str, brought: &[Metric]) -> String {
    match nearest(key, brought.iter().chain(METRICS.iter()).map(|metric| &*metric.key)) {
        Some(nearest) => format!("did you mean ‘{nearest}’?"),
        None => "`scruple inspect metrics` lists them".to_owned(),
    }
}

/// Returns the known word that a mistyped one probably stands for: one that contains it, or the one that differs from
/// it in the fewest characters, if these are at most half of them.
///
/// ```
/// use scruple_core::metric::nearest;
/// assert_eq!(nearest("maloc.bytes", ["malloc.bytes", "time.cpu"]), Some("malloc.bytes"));
/// assert_eq!(nearest("cpu", ["malloc.bytes", "time.cpu"]), Some("time.cpu"));
/// assert_eq!(nearest("foo", ["malloc.bytes", "time.cpu"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let length = word.chars().count();
    let holds = |known: &&str| length > 2 && known.contains(word);
    let near = || {
        let near = known.clone().into_iter().min_by_key(|known| edit_distance(word, known))?;
        (edit_distance(word, near) <= length / 2).then_some(near)
    };
    known.clone().into_iter().find(holds).or_else(near)
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
