//! Summary statistics of a sample.

use serde::{Deserialize, Serialize};

use super::quantile::{median, quantile, sorted};

/// The usual figures of one sample, all but `n` in the unit of its readings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of readings.
    pub n: usize,
    /// Arithmetic mean. It is shown but never compared, since on a busy machine it follows the disturbances.
    pub mean: f64,
    /// Standard deviation with divisor n − 1; absent for a single reading.
    pub sd: Option<f64>,
    /// The smallest reading.
    pub min: f64,
    /// The largest reading.
    pub max: f64,
    /// 10th percentile: the cost without disturbances, more stable than the minimum.
    pub p10: f64,
    /// The median.
    pub median: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// Median of the absolute deviations from the median, not scaled to a standard deviation.
    pub mad: f64,
}

impl Summary {
    /// The summary of readings in any order; `None` when there are no readings or one of them is not finite.
    pub fn of(readings: &[f64]) -> Option<Summary> {
        if readings.is_empty() || readings.iter().any(|r| !r.is_finite()) {
            return None;
        }
        let sorted = sorted(readings);
        let centre = quantile(&sorted, 0.5);
        let deviations: Vec<f64> = readings.iter().map(|r| (r - centre).abs()).collect();
        Some(Summary {
            n: readings.len(),
            mean: mean(readings),
            sd: sd(readings),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            p10: quantile(&sorted, 0.1),
            median: centre,
            p90: quantile(&sorted, 0.9),
            mad: median(&deviations),
        })
    }
}

/// The arithmetic mean; NaN when there are no readings.
pub fn mean(readings: &[f64]) -> f64 {
    readings.iter().sum::<f64>() / readings.len() as f64
}

/// The standard deviation that normal readings would have with this median absolute deviation from `centre`, which a few
/// disturbed readings do not inflate (Hampel, "The Influence Curve and Its Role in Robust Estimation", 1974).
pub fn robust_sd(readings: &[f64], centre: f64) -> f64 {
    let deviations: Vec<f64> = readings.iter().map(|r| (r - centre).abs()).collect();
    1.4826 * median(&deviations)
}

/// The median of normal readings varies by up to this many times the variance of their mean.
pub(super) const OF_MEDIAN: f64 = std::f64::consts::FRAC_PI_2;

/// The variance of a median that the noise of these readings explains: π/2·s²/n, where s is their [`robust_sd`].
pub(super) fn variance_of_median(readings: &[f64], centre: f64) -> f64 {
    OF_MEDIAN * robust_sd(readings, centre).powi(2) / readings.len() as f64
}

/// The standard deviation with divisor n − 1; `None` for fewer than two readings.
pub fn sd(readings: &[f64]) -> Option<f64> {
    if readings.len() < 2 {
        return None;
    }
    let centre = mean(readings);
    let squares: f64 = readings.iter().map(|r| (r - centre).powi(2)).sum();
    Some((squares / (readings.len() - 1) as f64).sqrt())
}
