//! Entries of tables of comparisons.

use scruple_core::evidence::{Readings, Replicate};
use scruple_core::verdict::NoisyRow;

/// An entry of a metric that is better if lower, with readings in blocks that identical programs share exactly.
pub fn entry(reference: &[f64], arm: &[f64], margin: f64) -> NoisyRow {
    NoisyRow {
        readings: Readings {
            reference: reference.to_vec(),
            arm: arm.to_vec(),
            paired: true,
            replicate: Replicate::Block,
            resolution: 0.0,
        },
        lower_is_better: true,
        margin,
    }
}
