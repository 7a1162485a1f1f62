//! Sums over blocks of memory that are known from a sample.
//!
//! Every byte that is requested is chosen with the same small probability, independently of all others (a Poisson
//! process over the bytes with a mean distance), and a block is in the sample if one of its bytes is chosen. A block of
//! `s` bytes thus is in the sample with probability `1 - exp(-s / mean)`, and stands for the reciprocal of that many
//! blocks (Horvitz and Thompson, "A generalization of sampling without replacement from a finite universe", Journal of
//! the American Statistical Association 47, 1952; the same as Go's `runtime/pprof` and tcmalloc's heap profiles do).

use super::Interval;
use super::normal::fisher;
use std::ops::AddAssign;

/// The probability that a block of this size is in the sample: `1 - exp(-size / mean)`. It is 1 if every block is
/// recorded, for a mean of 1 byte. Else a block of no bytes is never in the sample, and its probability is that of one
/// of one byte.
pub fn probability(size: u64, mean: u64) -> f64 {
    if mean <= 1 { 1.0 } else { -(-(size.max(1) as f64) / mean as f64).exp_m1() }
}

/// An estimate of the bytes of some blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledBytes {
    /// The number of blocks in the sample.
    pub samples: u64,
    /// The estimated sum in bytes.
    pub sum: f64,
    /// The estimated variance of `sum`, in bytes².
    pub variance: f64,
}

impl SampledBytes {
    /// Adds a block of the sample, with its [`probability`].
    pub fn add(&mut self, size: u64, probability: f64) {
        let stands_for = size as f64 / probability;
        self.samples += 1;
        self.sum += stands_for;
        self.variance += stands_for * stands_for * (1.0 - probability);
    }
}

impl AddAssign for SampledBytes {
    fn add_assign(&mut self, other: SampledBytes) {
        self.samples += other.samples;
        self.sum += other.sum;
        self.variance += other.variance;
    }
}

/// The interval for the share that the blocks of `part` have in the bytes of `part` and `rest` together; `mean` is that
/// of the sampling. If all blocks were recorded, the share is known.
///
/// Each of the two sums is taken as gamma-distributed with its mean and variance; at the end where a sum must be taken
/// as large, the mean grows by one unseen block of the weight `mean`, the most that a small block can vary (Fay and
/// Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma distribution", Statistics
/// in Medicine 16, 1997). The quotient of two such sums has an F distribution. Where all blocks are small, this is the
/// exact interval of Clopper and Pearson for the share of the samples.
pub fn share(part: SampledBytes, rest: SampledBytes, mean: u64, level: f64) -> Interval {
    if mean <= 1 {
        let all = part.sum + rest.sum;
        let share = if all > 0.0 { part.sum / all } else { 0.0 };
        return Interval { low: share, high: share, level: 1.0 };
    }
    let tail = (1.0 - level) / 2.0;
    let low = least_share(part, rest, mean as f64, tail);
    let high = 1.0 - least_share(rest, part, mean as f64, tail);
    Interval { low, high, level }
}

fn least_share(part: SampledBytes, rest: SampledBytes, unit: f64, tail: f64) -> f64 {
    if part.sum <= 0.0 {
        return 0.0;
    }
    // Degrees of freedom: twice the shape of the gamma distribution. A sum without variance is almost constant.
    let freedom = |sum: f64, variance: f64| (2.0 * sum * sum / variance.max(sum * sum * 1e-9)).max(1e-3);
    let (more, spread) = (rest.sum + unit, rest.variance + unit * unit);
    let quotient = fisher(tail, freedom(part.sum, part.variance), freedom(more, spread));
    let odds = part.sum / more * quotient;
    odds / (1.0 + odds)
}
