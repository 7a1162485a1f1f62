//! Several comparisons at once, with a bound on the probability that any of them is wrong.

use super::{Comparison, Verdict};
use crate::evidence::{Evidence, Replicate};
use crate::stats::holm::holm;

/// One row of a table of comparisons of noisy metrics.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The readings of the reference.
    pub reference: &'a [f64],
    /// The readings of the arm.
    pub arm: &'a [f64],
    /// Whether less of the metric is better.
    pub lower_is_better: bool,
    /// The margin, as a ratio less 1.
    pub margin: f64,
    /// Whether the i-th readings of both arms were taken in one block.
    pub paired: bool,
    /// What one reading stands for.
    pub replicate: Replicate,
    /// How much identical programs may differ, as a ratio less 1.
    pub resolution: f64,
}

impl Entry<'_> {
    /// The evidence of the entry at this confidence level.
    pub fn evidence(&self, level: f64) -> Evidence {
        let of_blocks = || match self.paired {
            true => Evidence::of_blocks(self.reference, self.arm, level),
            false => Evidence::of_samples(self.reference, self.arm, level),
        };
        let found = match self.replicate {
            Replicate::Block => of_blocks(),
            Replicate::Process => Evidence::of_processes(self.reference, self.arm, self.paired, level),
            Replicate::Turn => Evidence::of_turns(self.reference, self.arm, self.paired, level),
            Replicate::Nodes { nodes, of_class } => {
                Evidence::of_nodes(self.reference, self.arm, (nodes, of_class), level)
            }
            Replicate::Launch => match of_blocks() {
                Evidence::Absent { .. } => Evidence::of_handful(self.reference, self.arm, level),
                found => found,
            },
        };
        match found {
            Evidence::Interval { effect, of, .. } => {
                Evidence::Interval { effect, of, resolution: self.resolution }
            }
            found => found,
        }
    }
}

/// Compares all entries, in the order given, so that all verdicts together hold at `level`.
pub fn compare_many(entries: &[Entry<'_>], level: f64) -> Vec<Comparison> {
    hold_together(entries.len(), level, |i, level| {
        let entry = &entries[i];
        Comparison::of(entry.evidence(level), entry.lower_is_better, entry.margin)
    })
}

/// Compares `rows` rows by `at(row, level)`, so that all verdicts together hold at `level`.
///
/// Holm's step-down procedure divides the error; each interval states the level at which its verdict was reached. Rows
/// without an interval take no share of the error: exact rows cannot err, and rows without evidence have no verdict.
pub(crate) fn hold_together(
    rows: usize,
    level: f64,
    at: impl Fn(usize, f64) -> Comparison,
) -> Vec<Comparison> {
    let mut found: Vec<Comparison> = (0..rows).map(|row| at(row, level)).collect();
    let noisy: Vec<usize> = (0..rows).filter(|row| found[*row].interval().is_some()).collect();
    holm(noisy.len(), level, |i, level| {
        found[noisy[i]] = at(noisy[i], level);
        found[noisy[i]].verdict != Verdict::CantTell
    });
    found
}
