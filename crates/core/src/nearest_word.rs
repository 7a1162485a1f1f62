//! Suggests a known word for a mistyped one.

/// Returns the known word that a mistyped one probably stands for: one that contains it, or the one that differs from
/// it in the fewest characters, if these are at most half of its own, or two of at least four of the known word. Two
/// neighbours that changed places count as one (Damerau, 1964).
///
/// ```
/// use scruple_core::nearest_word::nearest;
/// assert_eq!(nearest("maloc.bytes", ["malloc.bytes", "time.cpu"]), Some("malloc.bytes"));
/// assert_eq!(nearest("cpu", ["malloc.bytes", "time.cpu"]), Some("time.cpu"));
/// assert_eq!(nearest("chk", ["run", "check"]), Some("check"));
/// assert_eq!(nearest("rnu", ["trend", "run"]), Some("run"));
/// assert_eq!(nearest("foo", ["malloc.bytes", "time.cpu"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let length = word.chars().count();
    let holds = |known: &&str| length > 2 && known.contains(word);
    let near = || {
        let edits = known.clone().into_iter().map(|known| (strsim::osa_distance(word, known), known));
        let (edits, near) = edits.min_by_key(|(edits, _)| *edits)?;
        (edits <= length / 2 || edits <= 2 && edits * 2 <= near.chars().count()).then_some(near)
    };
    known.clone().into_iter().find(holds).or_else(near)
}

/// Whether one word is probably the other, mistyped or shortened.
///
/// ```
/// use scruple_core::nearest_word::is_nearly;
/// assert!(is_nearly("--bugdet", "--budget") && is_nearly("--clean-up", "--cleanup"));
/// assert!(!is_nearly("--latency", "--patience"));
/// ```
pub fn is_nearly(word: &str, known: &str) -> bool {
    known.starts_with(word) || word.starts_with(known) || strsim::osa_distance(word, known) <= 2
}
