//! Counts the outliers among readings, and estimates how much of the variance they cause.
//!
//! Sources: Tukey, "Exploratory Data Analysis" (1977), for the fences at 1.5 and 3 interquartile ranges; the
//! variance model is that of the Haskell criterion library (after Boyer's "Robust Java benchmarking", 2008).

use serde::{Deserialize, Serialize};

use super::quantile::{quantile, sorted};
use super::summary::{mean, sd};

/// The number of readings in each of Tukey's classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outliers {
    /// Readings more than 3 interquartile ranges below the first quartile.
    pub low_severe: usize,
    /// Readings between 1.5 and 3 interquartile ranges below the first quartile.
    pub low_mild: usize,
    /// Readings between the inner fences.
    pub normal: usize,
    /// Readings between 1.5 and 3 interquartile ranges above the third quartile.
    pub high_mild: usize,
    /// Readings more than 3 interquartile ranges above the third quartile.
    pub high_severe: usize,
}

impl Outliers {
    /// The number of readings outside the inner fences.
    pub fn total(&self) -> usize {
        self.low_severe + self.low_mild + self.high_mild + self.high_severe
    }
}

/// Sorts the readings into Tukey's classes; a reading exactly on a fence is within it.
pub fn classify(readings: &[f64]) -> Outliers {
    let sorted = sorted(readings);
    let (first, third) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
    let range = third - first;
    let mut outliers = Outliers::default();
    for &reading in readings {
        let class = if reading < first - 3.0 * range {
            &mut outliers.low_severe
        } else if reading < first - 1.5 * range {
            &mut outliers.low_mild
        } else if reading > third + 3.0 * range {
            &mut outliers.high_severe
        } else if reading > third + 1.5 * range {
            &mut outliers.high_mild
        } else {
            &mut outliers.normal
        };
        *class += 1;
    }
    outliers
}

/// How much disturbances inflate the variance, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inflation {
    /// Disturbances cause less than 1 % of the variance.
    None,
    /// Disturbances cause at least 1 % and less than 10 % of the variance.
    Slight,
    /// Disturbances cause at least 10 % and less than 50 % of the variance.
    Moderate,
    /// Disturbances cause half of the variance or more.
    Severe,
}

/// The share of the variance that clean noise cannot explain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlierVariance {
    /// The share, between 0 and 1.
    pub share: f64,
    /// The size of the share, in words.
    pub effect: Inflation,
}

/// Computes criterion's outlier variance of a sample of times per iteration.
///
/// For `a` readings of mean µ and standard deviation σ, the model assumes clean noise of σ_g = min(µ/4a, σ/√a). The
/// share is the smallest ((a−c)/a)(σ² − (a−c)σ_g²)/σ² over the admissible c. `None` for fewer than two readings or a
/// mean that is not positive, where the model is undefined; readings that are all equal have share 0.
pub fn variance(readings: &[f64]) -> Option<OutlierVariance> {
    let (centre, spread) = (mean(readings), sd(readings)?);
    if !(centre > 0.0 && spread.is_finite()) {
        return None;
    }
    let share = if spread == 0.0 { 0.0 } else { share(centre, spread * spread, readings.len() as f64) };
    let effect = match share {
        s if s < 0.01 => Inflation::None,
        s if s < 0.1 => Inflation::Slight,
        s if s < 0.5 => Inflation::Moderate,
        _ => Inflation::Severe,
    };
    Some(OutlierVariance { share, effect })
}

fn share(mean: f64, variance: f64, count: f64) -> f64 {
    let per_reading = mean / count;
    let floor = per_reading / 2.0;
    let clean = (floor / 4.0).min((variance / count).sqrt()).powi(2);
    let most = |x: f64| {
        let d = (per_reading - x).powi(2);
        let (k0, k1) = (-count * count * d, variance - count * clean + count * d);
        let determinant = k1 * k1 - 4.0 * clean * k0;
        (-2.0 * k0 / (k1 + determinant.sqrt())).floor()
    };
    let explained = |c: f64| (count - c) / count * (variance - (count - c) * clean);
    let least = explained(1.0).min(explained(most(0.0).min(most(floor))));
    (least / variance).clamp(0.0, 1.0)
}
