//! A series as it is judged: the logarithms of its values, with how far each may be from its level.

use super::{Options, segment::SHORTEST};
use crate::stats::quantile::{median, sorted};

/// Log values with what noise they have.
pub(super) struct Log {
    pub values: Vec<f64>,
    /// Variance that each value has by its own readings.
    pub own: Vec<f64>,
    /// Least standard deviation, from the resolution.
    pub floor: f64,
    /// The standard deviation of each value about its level, roughly.
    pub scales: Vec<f64>,
    /// Their reciprocals.
    precisions: Vec<f64>,
    /// What of it readings and resolution explain, as a share.
    pub least: f64,
    /// The correlation of neighbours where it is known.
    pub known: Option<f64>,
}

impl Log {
    pub(super) fn new(values: &[f64], options: &Options<'_>) -> Log {
        let centre = median(values);
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        let own = if options.errors.is_empty() {
            vec![0.0; values.len()]
        } else {
            options.errors.iter().map(|e| e * e).collect()
        };
        // Where most values are equal, differences show no noise; the step between distinct values then bounds it.
        let mut distinct = sorted(&logs);
        distinct.dedup();
        let step = distinct.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let step = if step.is_finite() { step } else { 0.0 };
        let floor = step.max(options.resolution / centre).max(1e-9) / 12_f64.sqrt();
        // Differences of neighbours are hardly inflated by a few changes of level.
        let rough = variogram(&logs, 1).sqrt().max(floor);
        let scales: Vec<f64> = own.iter().map(|own: &f64| rough.max(own.sqrt())).collect();
        let explained = own.iter().zip(&scales).map(|(own, scale)| own.sqrt().max(floor) / scale);
        let least = explained.sum::<f64>() / logs.len() as f64;
        let precisions = scales.iter().map(|scale| scale.recip()).collect();
        Log { values: logs, own, floor, scales, precisions, least, known: options.drift }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// How far a value is from a level, in its standard deviations.
    pub(super) fn residual(&self, place: usize, level: f64) -> f64 {
        (self.values[place] - level) * self.precisions[place]
    }
}

/// Half the robust variance of differences of values `lag` apart: the variance of what does not persist so long.
pub(super) fn variogram(values: &[f64], lag: usize) -> f64 {
    let apart: Vec<f64> = values.windows(lag + 1).map(|w| (w[lag] - w[0]).abs()).collect();
    (1.4826 * median(&apart)).powi(2) / 2.0
}

/// The start of every stretch between cuts, and the end of the last.
pub(super) fn bounds(cuts: &[usize], n: usize) -> Vec<usize> {
    std::iter::once(0).chain(cuts.iter().copied()).chain(std::iter::once(n)).collect()
}

/// Short stretches join the neighbour whose level is nearer.
pub(super) fn drop_short(cuts: &mut Vec<usize>, values: &[f64]) {
    loop {
        let ends = bounds(cuts, values.len());
        let Some(short) = ends.windows(2).position(|pair| pair[1] - pair[0] < SHORTEST) else { return };
        let level = |stretch: usize| median(&values[ends[stretch]..ends[stretch + 1]]);
        let away = |stretch: usize| (level(stretch) - level(short)).abs();
        let last = ends.len() - 2;
        let joins_next = short == 0 || (short < last && away(short + 1) < away(short - 1));
        cuts.remove(if joins_next { short } else { short - 1 });
    }
}
