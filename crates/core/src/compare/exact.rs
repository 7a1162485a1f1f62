//! Exact metrics: two arms are the same, or differ by exactly so much.

use super::{Comparison, Verdict, compare_noisy, direction};
use crate::stats::paired::Why;

/// Compares readings of an exact metric, such as allocations; one reading of each arm suffices, two show that they
/// repeat.
///
/// Readings that disagree among themselves are not exact: the comparison falls back to [`compare_noisy`], and `why`
/// says [`Why::NotExact`], or whatever keeps even that from a verdict. The margin is carried but plays no part
/// unless it comes to that: one byte more is a difference.
pub fn compare_exact(
    reference: &[f64],
    arm: &[f64],
    lower_is_better: bool,
    margin: f64,
    level: f64,
) -> Comparison {
    let (Some(was), Some(is)) = (the_one(reference), the_one(arm)) else {
        let fallback = compare_noisy(reference, arm, lower_is_better, margin, level);
        let why = fallback.why.or(Some(Why::NotExact));
        return Comparison { why, ..fallback };
    };
    let same = was == is;
    Comparison {
        effect: if same { 1.0 } else { is / was },
        interval: None,
        margin,
        verdict: if same { Verdict::Same } else { Verdict::Different },
        direction: (!same).then(|| direction(is > was, lower_is_better)),
        blocks: reference.len().min(arm.len()),
        more_blocks: 0,
        difference: Some(is - was),
        method: "exact",
        why: None,
    }
}

/// The reading that all readings are, if there is one and it is finite.
fn the_one(readings: &[f64]) -> Option<f64> {
    let first = *readings.first()?;
    (first.is_finite() && readings.iter().all(|&r| r == first)).then_some(first)
}
