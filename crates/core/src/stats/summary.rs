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

/// The standard deviation with divisor n − 1; `None` for fewer than two readings.
pub fn sd(readings: &[f64]) -> Option<f64> {
    if readings.len() < 2 {
        return None;
    }
    let centre = mean(readings);
    let squares: f64 = readings.iter().map(|r| (r - centre).powi(2)).sum();
    Some((squares / (readings.len() - 1) as f64).sqrt())
}
