//! A table of comparisons, of which it is to be improbable that even one is wrong.

use super::{Comparison, Verdict, compare_noisy, compare_processes, compare_unpaired};
use crate::stats::power::holm;

/// One row of a table of comparisons of noisy metrics.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Readings of the reference.
    pub reference: &'a [f64],
    /// Readings of the arm.
    pub arm: &'a [f64],
    /// Whether less of the metric is better.
    pub lower_is_better: bool,
    /// The margin as a ratio less 1.
    pub margin: f64,
    /// Whether the i-th readings of both were taken in one block.
    pub paired: bool,
    /// Whether each reading stands for a whole process, so that few of them still tell.
    pub processes: bool,
}

/// Compares every entry, in the order given, so that all verdicts together hold at `level`.
///
/// Holm's step-down shares the error: each interval has the level at which its verdict fell, which it states. Exact
/// comparisons cannot err and do not belong in here; they would only take error from the others.
pub fn compare_many(entries: &[Entry<'_>], level: f64) -> Vec<Comparison> {
    let at = |entry: &Entry<'_>, level: f64| {
        let compare = if entry.paired { compare_noisy } else { compare_unpaired };
        let found = compare(entry.reference, entry.arm, entry.lower_is_better, entry.margin, level);
        match entry.processes && found.interval.is_none() {
            true => compare_processes(entry, level),
            false => found,
        }
    };
    let mut found: Vec<Comparison> = entries.iter().map(|entry| at(entry, level)).collect();
    holm(entries.len(), level, |i, level| {
        found[i] = at(&entries[i], level);
        found[i].verdict != Verdict::DontKnow
    });
    found
}
