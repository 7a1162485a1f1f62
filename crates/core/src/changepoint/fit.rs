//! The levels between cuts and the noise about them that together make a series likeliest.

use super::log::{Log, bounds};
use super::segment::BOUND;
use super::shape::Shape;
use crate::stats::quantile::median;

/// How often levels and the shape of the noise are fitted in turn.
const ROUNDS: usize = 2;

/// Steps, in standard errors, by which a likelier level is sought to either side of the best one so far.
const STEPS: [f64; 2] = [1.2, 0.4];

/// A series cut into levels, with its noise.
pub(super) struct Fit {
    pub cuts: Vec<usize>,
    pub levels: Vec<f64>,
    pub shape: Shape,
    /// Logarithm of the likelihood of the whole series.
    pub likelihood: f64,
}

impl Fit {
    pub(super) fn of(log: &Log, cuts: Vec<usize>) -> Fit {
        let ends = bounds(&cuts, log.len());
        let mut levels: Vec<f64> = ends.windows(2).map(|pair| centre(log, pair[0], pair[1])).collect();
        let mut shape = shape(log, &ends, &levels);
        for _ in 0..ROUNDS {
            for (level, pair) in levels.iter_mut().zip(ends.windows(2)) {
                *level = likeliest(log, &shape, pair[0], pair[1], *level);
            }
            shape = self::shape(log, &ends, &levels);
        }
        Fit::about(log, cuts, levels, shape)
    }

    fn about(log: &Log, cuts: Vec<usize>, levels: Vec<f64>, shape: Shape) -> Fit {
        let ends = bounds(&cuts, log.len());
        let before = |i: usize| i.checked_sub(1).map(|i| levels[i]);
        let of = |(i, pair): (usize, &[usize])| stretch(log, &shape, pair[0], pair[1], levels[i], before(i));
        let likelihood = ends.windows(2).enumerate().map(of).sum();
        Fit { cuts, levels, shape, likelihood }
    }

    /// The series without the i-th cut, with the noise that is seen then.
    pub(super) fn without(&self, log: &Log, i: usize) -> Fit {
        let mut cuts = self.cuts.clone();
        cuts.remove(i);
        let ends = bounds(&cuts, log.len());
        let mut levels = self.levels.clone();
        levels.remove(i);
        levels[i] = likeliest(log, &self.shape, ends[i], ends[i + 1], self.between(log, i));
        let shape = shape(log, &ends, &levels);
        Fit::about(log, cuts, levels, shape)
    }

    /// What the log likelihood roughly loses without the i-th cut, if the noise is what it was.
    pub(super) fn loss(&self, log: &Log, i: usize) -> f64 {
        let ends = bounds(&self.cuts, log.len());
        let before = i.checked_sub(1).map(|i| self.levels[i]);
        let (from, at, to) = (ends[i], ends[i + 1], ends[i + 2]);
        let [left, right] = [self.levels[i], self.levels[i + 1]];
        let with = stretch(log, &self.shape, from, at, left, before)
            + stretch(log, &self.shape, at, to, right, Some(left));
        with - stretch(log, &self.shape, from, to, self.between(log, i), before)
    }

    /// The mean of the levels beside the i-th cut.
    fn between(&self, log: &Log, i: usize) -> f64 {
        let ends = bounds(&self.cuts, log.len());
        let weight = (ends[i + 1] - ends[i]) as f64 / (ends[i + 2] - ends[i]) as f64;
        self.levels[i] * weight + self.levels[i + 1] * (1.0 - weight)
    }
}

/// A mean from which outliers are not far away.
fn centre(log: &Log, from: usize, to: usize) -> f64 {
    let middle = median(&log.values[from..to]);
    let near = |place: usize| {
        let reach = BOUND * log.scales[place];
        log.values[place].clamp(middle - reach, middle + reach)
    };
    (from..to).map(near).sum::<f64>() / (to - from) as f64
}

fn shape(log: &Log, ends: &[usize], levels: &[f64]) -> Shape {
    let about =
        |(pair, &level): (&[usize], &f64)| (pair[0]..pair[1]).map(move |place| log.residual(place, level));
    let residuals: Vec<f64> = ends.windows(2).zip(levels).flat_map(about).collect();
    Shape::of(&residuals, log.least, log.known)
}

/// The level of a stretch that is likeliest near `start`.
fn likeliest(log: &Log, shape: &Shape, from: usize, to: usize, start: f64) -> f64 {
    let mut best = (start, stretch(log, shape, from, to, start, None));
    let error = shape.error(to - from) * log.scales[from];
    for step in STEPS {
        let middle = best.0;
        for steps in [-2.0, -1.0, 1.0, 2.0] {
            let level = middle + steps * step * error;
            let likelihood = stretch(log, shape, from, to, level, None);
            if likelihood > best.1 {
                best = (level, likelihood);
            }
        }
    }
    best.0
}

/// The log likelihood of values `from..to` about a level, in view of the one before them and its level.
fn stretch(log: &Log, shape: &Shape, from: usize, to: usize, level: f64, before: Option<f64>) -> f64 {
    let mut last = log.residual(from, level);
    let mut sum = match before {
        Some(before) => shape.log_density(last - shape.carried(log.residual(from - 1, before))),
        None => shape.first(last),
    };
    for place in from + 1..to {
        let now = log.residual(place, level);
        sum += shape.log_density(now - shape.carried(last));
        last = now;
    }
    sum
}
