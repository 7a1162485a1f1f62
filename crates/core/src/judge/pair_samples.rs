//! The readings of a pair that are compared, and what each of them represents.

use super::{Pair, bench_cases, undisturbed_blocks};
use crate::evidence::Replicate;
use crate::metric::Pass;
use crate::sample::Sample;
use crate::subject::Subject;

/// The replicates of the reference and of the arm, side by side, and what each of them represents.
pub(super) type Replicates = (Vec<f64>, Vec<f64>, Replicate);

/// The samples of a pair to compare; for cases, their readings in the blocks that count.
pub(super) fn samples_of(pair: &Pair<'_>, key: &str) -> Option<(Sample, Sample)> {
    let (reference, arm) = (pair.reference.sample(key)?, pair.arm.sample(key)?);
    Some(match pair.tares {
        Some((left, right)) if matches!(pair.arm.subject, Subject::Case { .. }) => {
            (undisturbed_blocks::counted(reference, left), undisturbed_blocks::counted(arm, right))
        }
        _ => (reference.clone(), arm.clone()),
    })
}

/// The replicates of the effect on a noisy metric, of each arm, and what each of them represents.
pub(super) fn replicates_of(pair: &Pair<'_>, reference: &Sample, arm: &Sample) -> Replicates {
    let timed = matches!(arm.pass, Pass::Timing | Pass::Build);
    let (left, right) = match pair.paired {
        true => reference.paired(arm),
        false => (reference.readings.clone(), arm.readings.clone()),
    };
    match (&pair.arm.subject, timed) {
        // Readings of one process say little about the next process, whichever tool took them.
        (Subject::Case { .. }, true) if pair.tares.is_some() || !pair.paired => {
            bench_cases::by_process(reference, arm, pair.paired)
        }
        (Subject::Request { .. }, true) => bench_cases::by_turn(reference, arm, pair.paired),
        (_, true) => (left, right, Replicate::Block),
        (_, false) => (left, right, Replicate::Launch),
    }
}
