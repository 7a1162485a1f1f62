//! How many readings are outliers, and how much of the variance they cause.
//!
//! Sources: Tukey, "Exploratory Data Analysis" (1977), for the fences at 1.5 and 3 interquartile ranges; the
//! variance model is that of the Haskell criterion library (after Boyer's "Robust Java benchmarking", 2008).

use serde::{Deserialize, Serialize};

use super::quantile::{quantile, sorted};
use super::summary::{mean, sd};

/// How many readings fall in each of Tukey's classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outliers {
    /// More than 3 interquartile ranges below the first quartile.
    pub low_severe: usize,
    /// Between 1.5 and 3 interquartile ranges below the first quartile.
    pub low_mild: usize,
    /// Between the inner fences.
    pub normal: usize,
    /// Between 1.5 and 3 interquartile ranges above the third quartile.
    pub high_mild: usize,
    /// More than 3 interquartile ranges above the third quartile.
    pub high_severe: usize,
}

impl Outliers {
    /// How many readings lie outside the inner fences.
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

/// How far disturbances have inflated the variance, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Inflation {
    /// Less than 1 %.
    None,
    /// Less than 10 %.
    Slight,
    /// Less than 50 %.
    Moderate,
    /// Half or more.
    Severe,
}

/// The share of the variance that clean noise cannot explain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutlierVariance {
    /// Between 0 and 1.
    pub share: f64,
    /// The same in words.
    pub effect: Inflation,
}

/// Criterion's outlier variance of a sample of times per iteration.
///
/// With a readings of mean µ and standard deviation σ, clean noise of σ_g = min(µ/4a, σ/√a) is assumed; the share is
/// the smallest ((a−c)/a)(σ² − (a−c)σ_g²)/σ² over the admissible c. `None` below two readings or for a mean that is not
/// positive, where the model is undefined; equal readings have share 0.
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
