//! A series on a scale on which steps are additive, with the uncertainty of each value.

use super::least_step::least_step;
use super::noise_level;
use super::series::{SeriesOptions, StepSize};
use super::variogram::{half_variance, variogram};
use crate::Interval;
use crate::quantile::median;

/// The scale on which the steps of a series are additive.
#[derive(Clone, Copy)]
pub(super) enum StepScale {
    /// Steps are factors: the scale is the logarithm of the values.
    Ratio,
    /// Steps are differences, since some value is not positive: the scale is the value divided by this unit.
    Difference(f64),
}

/// The unit of a scale of differences, in standard deviations of the noise of single values.
const UNIT: f64 = 100.0;

impl StepScale {
    fn of(values: &[f64]) -> StepScale {
        if values.iter().all(|&value| value > 0.0) {
            return StepScale::Ratio;
        }
        let noise = variogram(values, 1).sqrt();
        let unit = UNIT * if noise > 0.0 { noise } else { least_step(values, 0.0) };
        StepScale::Difference(if unit > 0.0 && unit.is_finite() { unit } else { 1.0 })
    }

    fn place(self, value: f64) -> f64 {
        match self {
            StepScale::Ratio => value.ln(),
            StepScale::Difference(unit) => value / unit,
        }
    }

    /// Converts a position on the scale to the unit of the metric.
    pub(super) fn level(self, place: f64) -> f64 {
        match self {
            StepScale::Ratio => place.exp(),
            StepScale::Difference(unit) => place * unit,
        }
    }

    /// Converts a distance on the scale to a step.
    pub(super) fn step(self, distance: f64) -> StepSize {
        match self {
            StepScale::Ratio => StepSize::Ratio(self.level(distance)),
            StepScale::Difference(_) => StepSize::Difference(self.level(distance)),
        }
    }

    /// The interval of a step, from `reach` below `distance` to `reach` above it.
    pub(super) fn interval(self, distance: f64, reach: f64, level: f64) -> Interval {
        Interval { low: distance - reach, high: distance + reach, level }.map(|end| self.level(end))
    }

    /// Converts a standard deviation on the scale: it stays relative, or is put in the unit of the metric.
    pub(super) fn deviation(self, deviation: f64) -> f64 {
        match self {
            StepScale::Ratio => deviation,
            StepScale::Difference(unit) => deviation * unit,
        }
    }

    /// Converts a standard error or a resolution to the scale; `typical` is a value of the series.
    fn resolution(self, of: f64, typical: f64) -> f64 {
        match self {
            StepScale::Ratio => of / typical,
            StepScale::Difference(unit) => of / unit,
        }
    }
}

/// The values of a series on its scale, and their noise.
pub(super) struct Scaled {
    pub scale: StepScale,
    pub values: Vec<f64>,
    /// The variance of each value that its own readings account for.
    pub own: Vec<f64>,
    /// The smallest possible standard deviation of a value, from the resolution of the metric.
    pub floor: f64,
    /// The approximate standard deviation of each value about its level.
    pub scales: Vec<f64>,
    /// The reciprocal of each standard deviation in `scales`.
    precisions: Vec<f64>,
    /// The mean share of `scales` that readings and resolution account for.
    pub least: f64,
    /// The correlation of neighbours where it is known.
    pub known: Option<f64>,
    /// Whether parts of the series differ in their noise.
    pub uneven: bool,
    /// Whether a part of the series is constant while another part varies.
    pub partly_constant: bool,
}

impl Scaled {
    pub(super) fn new(values: &[f64], options: &SeriesOptions<'_>) -> Scaled {
        let scale = StepScale::of(values);
        let places: Vec<f64> = values.iter().map(|&value| scale.place(value)).collect();
        // The errors of ratios are relative already, so their typical value is 1.
        let own = if options.errors.is_empty() {
            vec![0.0; values.len()]
        } else {
            options.errors.iter().map(|&error| scale.resolution(error, 1.0).powi(2)).collect()
        };
        let resolution = scale.resolution(options.resolution, median(values));
        let floor = least_step(&places, options.error).max(resolution).max(1e-9) / 12_f64.sqrt();
        // A few changes of level hardly affect differences of neighbours.
        let rough = noise_level::deviations(&places, floor);
        let scales: Vec<f64> = own.iter().zip(&rough).map(|(own, rough)| rough.max(own.sqrt())).collect();
        let uneven = rough.windows(2).any(|pair| pair[0] != pair[1]);
        let explained = own.iter().zip(&scales).map(|(own, scale)| own.sqrt().max(floor) / scale);
        let least = explained.sum::<f64>() / places.len() as f64;
        let precisions = scales.iter().map(|scale| scale.recip()).collect();
        let varying = scales.iter().filter(|scale| **scale > floor).count();
        let partly_constant = varying >= noise_level::SHORTEST && varying < scales.len();
        Scaled {
            scale,
            values: places,
            own,
            floor,
            scales,
            precisions,
            least,
            known: options.drift,
            uneven,
            partly_constant,
        }
    }

    /// Whether the fourth powers of values, standard deviations and variances are finite on this scale.
    pub(super) fn is_finite(&self) -> bool {
        let mut all = self.values.iter().chain(&self.scales).chain(&self.own);
        all.all(|value| value.powi(4).is_finite())
    }

    /// The series minus a curve, with the same noise.
    pub(super) fn less(&self, curve: &[f64]) -> Scaled {
        let values = self.values.iter().zip(curve).map(|(value, curve)| value - curve).collect();
        Scaled {
            values,
            own: self.own.clone(),
            scales: self.scales.clone(),
            precisions: self.precisions.clone(),
            ..*self
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The distance of the value at `place` from a level, in standard deviations.
    pub(super) fn residual(&self, place: usize, level: f64) -> f64 {
        (self.values[place] - level) * self.precisions[place]
    }

    /// Half the robust variance of differences between values `lag` apart, each in standard deviations.
    pub(super) fn variogram(&self, lag: usize) -> f64 {
        let apart = |place: usize| {
            let scale = self.scales[place].max(self.scales[place + lag]);
            ((self.values[place + lag] - self.values[place]) / scale).abs()
        };
        half_variance((0..self.len() - lag).map(apart))
    }
}
