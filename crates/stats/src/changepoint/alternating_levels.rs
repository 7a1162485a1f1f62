//! Detects series that alternate between two levels.
//!
//! Caches, processor frequencies and memory placement have states that last for some versions. A version that happened
//! to be read in the other state changed nothing.

use crate::quantile::{median, sorted};

/// A series with fewer changes of level than this may consist of real changes.
const FEWEST: usize = 4;

/// The least share of changes that lead from one mode to the other; the rest are errors of the cuts.
const SWITCHES: f64 = 0.8;

/// The largest spread of the levels within the modes, relative to the distance between the modes.
const SPREAD: f64 = 0.25;

/// The two levels to which nearly all stretches of a series return, if there are two; `noise` is the standard deviation
/// of single values.
pub(super) fn modes(levels: &[f64], noise: f64) -> Option<[f64; 2]> {
    if levels.len() <= FEWEST {
        return None;
    }
    let sorted = sorted(levels);
    let halves = |place: &usize| sorted.split_at(*place);
    let squares = |(low, high): (&[f64], &[f64])| about_mean(low) + about_mean(high);
    let split = (1..sorted.len()).min_by(|a, b| squares(halves(a)).total_cmp(&squares(halves(b))))?;
    let (low, high) = halves(&split);
    let centres = [median(low), median(high)];
    let apart = centres[1] - centres[0];
    let spread = (squares((low, high)) / levels.len() as f64).sqrt();
    let is_high = |level: f64| level >= high[0];
    let switches = levels.windows(2).filter(|pair| is_high(pair[0]) != is_high(pair[1])).count() as f64;
    let alternates = switches >= SWITCHES * (levels.len() - 1) as f64;
    (alternates && apart > 2.0 * noise && spread < (SPREAD * apart).max(noise / 2.0)).then_some(centres)
}

/// The sum of squared deviations from the mean.
fn about_mean(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}
