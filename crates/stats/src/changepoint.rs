//! Finds where in a series of versions a cost changed, by how much, and which versions may have caused the change.
//!
//! [`exact`] handles exact metrics, where every difference is a real change. [`noisy`] handles noisy metrics in four
//! steps. It fits a robust piecewise constant with a price on every cut. It estimates the noise from the residuals
//! about the levels: spread, skew, humps, outliers, and the correlation of neighbours, since drift is what most often
//! looks like a change. It cuts the series again under that noise, and keeps the cuts whose gain in likelihood would be
//! rare in noise alone, where the noise is fitted again without each cut. It judges the remaining cuts once more
//! together with slow backgrounds, such as trends and waves, which would otherwise be cut into steps.

mod alternating_levels;
mod background;
mod candidates;
mod chance_order;
mod confidence_set;
mod false_alarm;
mod fit;
mod least_step;
mod noise_level;
mod noise_shape;
mod pruning;
mod regression;
mod scaled_series;
mod selection;
mod series;
mod step_size;
mod stretches;
mod variogram;

pub use series::{Background, ChangePoint, FEW_VALUES, FoundChanges, SeriesOptions, StepSize};

use crate::paired::Why;
use crate::quantile::median;
use confidence_set::{PlacedCut, placed};
use scaled_series::{Scaled, StepScale};
use selection::SelectedCuts;
use step_size::Noise;
use stretches::SHORTEST;

/// The confidence level of the intervals of steps.
const LEVEL: f64 = 0.95;

/// Finds the changes of an exact metric: every place whose value differs from the value before it.
///
/// ```
/// use scruple_stats::changepoint::exact;
///
/// let places: Vec<usize> = exact(&[8.0, 8.0, 9.0, 9.0, 8.0]).iter().map(|change| change.at).collect();
/// assert_eq!(places, [2, 4]);
/// ```
pub fn exact(values: &[f64]) -> Vec<ChangePoint> {
    let changed = |(place, pair): (usize, &[f64])| {
        let at = place + 1;
        let step = StepSize::between(pair[0], pair[1]);
        (pair[0] != pair[1]).then_some(ChangePoint { at, first: at, last: at, step, interval: None, p: 0.0 })
    };
    values.windows(2).enumerate().filter_map(changed).collect()
}

/// Finds the changes of a noisy metric. `values` has one value for each version in order, such as the median of its
/// readings.
///
/// Steps are ratios where every value is positive, else differences. A stretch of fewer than three values is never a
/// level, so the two latest versions are never blamed.
///
/// # Errors
///
/// Fails when a value or its distance from the others is not finite, when there are errors but not one for each value,
/// or when there are fewer than six values, too few for any result.
pub fn noisy(values: &[f64], options: &SeriesOptions<'_>) -> Result<FoundChanges, Why> {
    if values.len() < 2 * SHORTEST {
        return Err(Why::TooFew { have: values.len(), need: 2 * SHORTEST });
    }
    if !options.errors.is_empty() && options.errors.len() != values.len() {
        return Err(Why::Unpaired { reference: values.len(), arm: options.errors.len() });
    }
    if values.iter().chain(options.errors).any(|v| !v.is_finite()) {
        return Err(Why::NotFinite);
    }
    let series = Scaled::new(values, options);
    if !series.is_finite() {
        return Err(Why::NotFinite);
    }
    let steps = selection::select(&series, options.error);
    let noise = Noise::estimate(&series, &steps.fit.cuts);
    if let Some(modes) = alternating_levels::modes(&noise.levels, noise.deviation) {
        return Ok(in_modes(&series, &noise, modes));
    }
    let least = if matches!(series.scale, StepScale::Ratio) { options.least } else { 0.0 };
    // Versions weighed in turns (known drift of 0) share no background with their neighbours.
    let slow = if options.drift == Some(0.0) {
        None
    } else {
        background::fit_background(&series, &steps, options.error)
    };
    let pruned = |series: &Scaled, steps| pruning::pruned(series, steps, options.error, least);
    Ok(match slow {
        Some((curve, steps)) => {
            let rest = series.less(&curve);
            let background = Some(background(series.scale, &curve));
            FoundChanges { background, ..described(&rest, &pruned(&rest, steps)) }
        }
        None => described(&series, &pruned(&series, steps)),
    })
}

fn in_modes(series: &Scaled, noise: &Noise, modes: [f64; 2]) -> FoundChanges {
    let scale = series.scale;
    FoundChanges {
        changes: Vec::new(),
        levels: vec![scale.level(median(&series.values))],
        noise: scale.deviation(noise.deviation),
        drift: noise.drift,
        modes: Some(modes.map(|mode| scale.level(mode))),
        background: None,
    }
}

fn background(scale: StepScale, curve: &[f64]) -> Background {
    let least = curve.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = curve.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Background {
        curve: curve.iter().map(|&at| scale.level(at)).collect(),
        range: scale.step(largest - least),
    }
}

fn described(series: &Scaled, steps: &SelectedCuts) -> FoundChanges {
    let noise = Noise::estimate(series, &steps.fit.cuts);
    let scale = series.scale;
    let change = |(i, &p): (usize, &f64)| {
        let PlacedCut { at, first, last, .. } = placed(series, &steps.fit, i);
        let (step, reach) = noise.step(&steps.fit.cuts, i, series.len(), LEVEL);
        let interval = Some(scale.interval(step, reach, LEVEL));
        ChangePoint { at, first, last, step: scale.step(step), interval, p }
    };
    FoundChanges {
        changes: steps.chances.iter().enumerate().map(change).collect(),
        levels: noise.levels.iter().map(|&level| scale.level(level)).collect(),
        noise: scale.deviation(noise.deviation),
        drift: noise.drift,
        modes: None,
        background: None,
    }
}
