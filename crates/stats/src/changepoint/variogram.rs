//! The part of the variance of a series that does not persist.

use crate::quantile::median;

/// Half the robust variance of differences between values `lag` apart: the variance of the noise that does not persist
/// over `lag` values.
pub(super) fn variogram(values: &[f64], lag: usize) -> f64 {
    half_variance(values.windows(lag + 1).map(|w| (w[lag] - w[0]).abs()))
}

/// Half the robust variance of differences with these absolute values.
pub(super) fn half_variance(apart: impl Iterator<Item = f64>) -> f64 {
    (1.4826 * median(&apart.collect::<Vec<f64>>())).powi(2) / 2.0
}
