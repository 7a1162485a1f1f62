//! Fits the levels between given cuts, and the noise about them, by maximum likelihood.

use super::noise_shape::NoiseShape;
use super::scaled_series::Scaled;
use super::stretches::bounds;
use crate::quantile::median;

/// How many times the levels and the shape of the noise are fitted in turn.
const ROUNDS: usize = 2;

/// Step sizes, in standard errors, of the search for a more likely level on either side of the best one so far.
const STEPS: [f64; 2] = [1.2, 0.4];

/// A value beyond this many standard deviations from the median of its stretch is clamped before the mean is taken.
const BOUND: f64 = 3.0;

/// A series cut into levels, with the shape of the noise about them.
pub(super) struct LevelFit {
    pub cuts: Vec<usize>,
    pub levels: Vec<f64>,
    pub shape: NoiseShape,
    /// The log likelihood of the whole series.
    pub likelihood: f64,
}

impl LevelFit {
    pub(super) fn of(series: &Scaled, cuts: Vec<usize>) -> LevelFit {
        let ends = bounds(&cuts, series.len());
        let mut levels: Vec<f64> = ends.windows(2).map(|pair| centre(series, pair[0], pair[1])).collect();
        let mut shape = shape(series, &ends, &levels);
        for _ in 0..ROUNDS {
            for (level, pair) in levels.iter_mut().zip(ends.windows(2)) {
                *level = likeliest(series, &shape, pair[0], pair[1], *level);
            }
            shape = self::shape(series, &ends, &levels);
        }
        LevelFit::with_shape(series, cuts, levels, shape)
    }

    fn with_shape(series: &Scaled, cuts: Vec<usize>, levels: Vec<f64>, shape: NoiseShape) -> LevelFit {
        let ends = bounds(&cuts, series.len());
        let before = |i: usize| i.checked_sub(1).map(|i| levels[i]);
        let of =
            |(i, pair): (usize, &[usize])| stretch(series, &shape, pair[0], pair[1], levels[i], before(i));
        let likelihood = ends.windows(2).enumerate().map(of).sum();
        LevelFit { cuts, levels, shape, likelihood }
    }

    /// The fit without the i-th cut. The level of the joined stretch and the noise are estimated again.
    pub(super) fn without_cut(&self, series: &Scaled, i: usize) -> LevelFit {
        let mut cuts = self.cuts.clone();
        cuts.remove(i);
        let ends = bounds(&cuts, series.len());
        let mut levels = self.levels.clone();
        levels.remove(i);
        levels[i] = likeliest(series, &self.shape, ends[i], ends[i + 1], self.between(series, i));
        let shape = shape(series, &ends, &levels);
        LevelFit::with_shape(series, cuts, levels, shape)
    }

    /// The approximate loss of log likelihood if the i-th cut is removed and the noise stays the same.
    pub(super) fn loss(&self, series: &Scaled, i: usize) -> f64 {
        let ends = bounds(&self.cuts, series.len());
        let before = i.checked_sub(1).map(|i| self.levels[i]);
        let (from, at, to) = (ends[i], ends[i + 1], ends[i + 2]);
        let [left, right] = [self.levels[i], self.levels[i + 1]];
        let with = stretch(series, &self.shape, from, at, left, before)
            + stretch(series, &self.shape, at, to, right, Some(left));
        with - stretch(series, &self.shape, from, to, self.between(series, i), before)
    }

    /// The mean of the levels on both sides of the i-th cut, weighted by the lengths of their stretches.
    fn between(&self, series: &Scaled, i: usize) -> f64 {
        let ends = bounds(&self.cuts, series.len());
        let weight = (ends[i + 1] - ends[i]) as f64 / (ends[i + 2] - ends[i]) as f64;
        self.levels[i] * weight + self.levels[i + 1] * (1.0 - weight)
    }
}

/// The robust mean of the values `from..to`: the mean with outliers clamped.
fn centre(series: &Scaled, from: usize, to: usize) -> f64 {
    let middle = median(&series.values[from..to]);
    let near = |place: usize| {
        let reach = BOUND * series.scales[place];
        series.values[place].clamp(middle - reach, middle + reach)
    };
    (from..to).map(near).sum::<f64>() / (to - from) as f64
}

fn shape(series: &Scaled, ends: &[usize], levels: &[f64]) -> NoiseShape {
    let about = |(pair, &level): (&[usize], &f64)| (pair[0]..pair[1]).map(move |place| (place, level));
    let all = ends.windows(2).zip(levels).flat_map(about);
    // Beside a part that varies, the residuals of a constant part would make the noise seem to have long tails.
    let residuals: Vec<f64> = all
        .filter(|(place, _)| !series.partly_constant || series.scales[*place] > series.floor)
        .map(|(place, level)| series.residual(place, level))
        .collect();
    NoiseShape::of(&residuals, series.least, series.known)
}

/// The most likely level of the values `from..to`, searched near `start`.
fn likeliest(series: &Scaled, shape: &NoiseShape, from: usize, to: usize, start: f64) -> f64 {
    let mut best = (start, stretch(series, shape, from, to, start, None));
    let error = shape.error(to - from) * series.scales[from];
    for step in STEPS {
        let middle = best.0;
        for steps in [-2.0, -1.0, 1.0, 2.0] {
            let level = middle + steps * step * error;
            let likelihood = stretch(series, shape, from, to, level, None);
            if likelihood > best.1 {
                best = (level, likelihood);
            }
        }
    }
    best.0
}

/// The log likelihood of the values `from..to` about `level`. `before` is the level of the value before them, if there
/// is one.
fn stretch(
    series: &Scaled,
    shape: &NoiseShape,
    from: usize,
    to: usize,
    level: f64,
    before: Option<f64>,
) -> f64 {
    let mut last = series.residual(from, level);
    let mut sum = match before {
        Some(before) => shape.log_density(last - shape.carried_over(series.residual(from - 1, before))),
        None => shape.first(last),
    };
    for place in from + 1..to {
        let now = series.residual(place, level);
        sum += shape.log_density(now - shape.carried_over(last));
        last = now;
    }
    sum
}
