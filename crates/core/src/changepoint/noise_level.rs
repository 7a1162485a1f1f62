//! Estimates how much single values vary, separately for the parts of a series whose noise clearly differs.
//!
//! With one standard deviation for all values, those of a noisy part look like steps beside a quiet part, such as a
//! count that was zero for months. The parts are found by binary segmentation (Scott & Knott, "A Cluster Analysis Method
//! for Grouping Means in the Analysis of Variance" (1974)) of the logarithms of differences between neighbours, on which
//! a step or an outlier has little influence.

use super::scaled::variogram;

/// Each part has at least this many values.
pub(super) const SHORTEST: usize = 8;

/// The mean logarithms of two parts differ by at least this many standard errors. Noise of one size (normal, skewed, with
/// outliers, with two humps, correlated by up to 0.9) exceeds this in 1 % of the series of 20 to 1000 values or fewer.
const SURE: f64 = 4.5;

/// The standard deviations of two parts differ by at least this factor; below it, a single one does little harm.
const FACTOR: f64 = 2.0;

/// The values beside a noisy part that count as part of it, since its place is known to a few values only.
const BESIDE: usize = 2;

/// Returns the approximate standard deviation of each value about its level, at least `floor`.
pub(super) fn deviations(values: &[f64], floor: f64) -> Vec<f64> {
    let logs: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs().max(floor).ln()).collect();
    let mut starts = vec![0];
    split(&logs, 0, &mut starts);
    let ends = starts.iter().skip(1).copied().chain([values.len()]);
    let mut all = vec![floor; values.len()];
    for (start, end) in starts.iter().copied().zip(ends) {
        let deviation = variogram(&values[start..end], 1).sqrt().max(floor);
        let reach = if deviation.is_finite() { BESIDE } else { 0 };
        let near = start.saturating_sub(reach)..(end + reach).min(values.len());
        all[near].iter_mut().for_each(|own| *own = own.max(deviation));
    }
    all
}

/// Adds to `starts`, in order, where parts of `logs` begin whose means clearly differ. `first` is the place of `logs` in
/// the series.
fn split(logs: &[f64], first: usize, starts: &mut Vec<usize>) {
    if let Some(at) = border(logs) {
        split(&logs[..at], first, starts);
        starts.push(first + at);
        split(&logs[at..], first + at, starts);
    }
}

/// The place that divides `logs` best, if its sides clearly differ.
fn border(logs: &[f64]) -> Option<usize> {
    let n = logs.len();
    let (sum, squares) = logs.iter().fold((0.0, 0.0), |(sum, squares), log| (sum + log, squares + log * log));
    let (mut left, mut best) = (0.0, (0, 0.0, 0.0));
    for (at, log) in logs.iter().enumerate() {
        let (before, after) = (at as f64, (n - at) as f64);
        if at >= SHORTEST && n - at >= SHORTEST {
            let apart: f64 = (sum - left) / after - left / before;
            let between = apart * apart * before * after / n as f64;
            if between > best.1 {
                best = (at, between, apart.abs());
            }
        }
        left += log;
    }
    let (at, between, apart) = best;
    let within = (squares - sum * sum / n as f64 - between).max(0.0) / (n as f64 - 2.0);
    (apart >= FACTOR.ln() && between > SURE * SURE * within).then_some(at)
}
