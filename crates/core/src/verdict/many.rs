//! Several comparisons at once, with a bound on the probability that any of them is wrong.

use super::{Comparison, Verdict};
use crate::evidence::Readings;
use scruple_stats::holm::holm;

/// One row of a table of comparisons of noisy metrics.
#[derive(Clone, Debug)]
pub struct NoisyRow {
    /// What was read of both arms.
    pub readings: Readings,
    /// Whether less of the metric is better.
    pub lower_is_better: bool,
    /// The margin, as a ratio less 1.
    pub margin: f64,
}

/// Compares all entries, in the order given, so that all verdicts together hold at `level`.
pub fn compare_many(entries: &[NoisyRow], level: f64) -> Vec<Comparison> {
    let has_interval = |_, found: &Comparison| found.interval().is_some();
    hold_together(entries.len(), level, has_interval, |i, level| {
        let entry = &entries[i];
        Comparison::of(entry.readings.evidence(level), entry.lower_is_better, entry.margin)
    })
}

/// Compares `rows` rows by `at(row, level)`, so that all verdicts together hold at `level`.
///
/// Holm's step-down procedure divides the error among the rows that `may_err`; each interval states the level at which
/// its verdict was reached. Other rows take no share of the error: exact rows cannot err, and rows without evidence have
/// no verdict.
pub(crate) fn hold_together(
    rows: usize,
    level: f64,
    may_err: impl Fn(usize, &Comparison) -> bool,
    at: impl Fn(usize, f64) -> Comparison,
) -> Vec<Comparison> {
    let mut found: Vec<Comparison> = (0..rows).map(|row| at(row, level)).collect();
    let noisy: Vec<usize> = (0..rows).filter(|row| may_err(*row, &found[*row])).collect();
    holm(noisy.len(), level, |i, level| {
        found[noisy[i]] = at(noisy[i], level);
        found[noisy[i]].verdict != Verdict::CantTell
    });
    // This comes last, because an open row has used its share of the error, however wide its interval is.
    found.into_iter().map(Comparison::without_empty_interval).collect()
}
