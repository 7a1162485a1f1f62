//! Which cuts stand: a test of each against noise that may drift, and what may be said of those that do.
//!
//! Sources: the pruning order (weakest first, its neighbours judged anew) is that of Fleming et al., "Hunter: Using
//! Change Point Detection to Hunt for Performance Regressions" (2023), with what that leaves out: the p-value is
//! multiplied by the number of places a cut could have been, and samples count for (1 − ρ)/(1 + ρ) of their number
//! under correlation ρ. Siegmund, "Confidence Sets in Change-point Problems" (1988), for the places.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::segment::{self, BOUND, SHORTEST, loss};
use super::shape::Shape;
use super::{ChangePoint, Options, Series};
use crate::stats::normal;
use crate::stats::quantile::{Interval, median, sorted};

/// The level of intervals and of the sets of places.
const LEVEL: f64 = 0.95;

/// A cut costs this much times ln n in squared standard deviations: few true cuts are missed, false ones are many
/// and left to the test.
const PRICE: f64 = 2.0;

/// The pooled variance weighs as much as this many values when a segment's own variance is judged.
const POOLED: f64 = 10.0;

/// Up to this many values a mean has the tails of single ones.
const TAILS: f64 = 15.0;

/// From so many values on, differences of distant ones tell the drift.
const LONG: usize = 100;

/// A change is placed where it most probably came within so many versions: the single likeliest place is often an
/// accident at the edge of them, where the step is not much larger than the noise.
const NEAR: usize = 3;

/// Log values with what noise they have.
struct Log {
    values: Vec<f64>,
    /// Variance that each value has by its own readings.
    own: Vec<f64>,
    /// Least standard deviation, from the resolution.
    floor: f64,
}

pub(super) fn series(values: &[f64], options: &Options<'_>) -> Series {
    let log = Log::new(values, options);
    let scale = log.rough_scale();
    let scales: Vec<f64> = log.own.iter().map(|own| scale.max(own.sqrt())).collect();
    let price = PRICE * (values.len() as f64).ln();
    let mut cuts = segment::cuts(&log.values, &scales, price);
    drop_short(&mut cuts, &log.values);
    // The likeliest places are sought once the cuts that are easily refuted are gone, which is most of the work.
    let mut refined = false;
    loop {
        let mut noise = Noise::about(&log, &cuts, options.drift);
        if refined {
            refine(&mut cuts, &log.values, &scales, &noise);
        } else {
            settle(&mut cuts, &log.values, &scales);
        }
        noise = Noise::about(&log, &cuts, options.drift);
        let tests: Vec<Test> = (0..cuts.len()).map(|i| test(&log, &cuts, i, &noise, options)).collect();
        let weakest = (0..tests.len()).min_by(|&a, &b| tests[a].t.total_cmp(&tests[b].t));
        match weakest {
            Some(i) if tests[i].p > options.error => {
                cuts.remove(i);
            }
            Some(_) if !refined => refined = true,
            _ => return told(&log, &cuts, &tests, &noise, &scales),
        }
    }
}

impl Log {
    fn new(values: &[f64], options: &Options<'_>) -> Log {
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
        Log { values: logs, own, floor }
    }

    /// The standard deviation about the level, from differences, which a few changes of level do not inflate.
    fn rough_scale(&self) -> f64 {
        variogram(&self.values, 1).sqrt().max(self.floor)
    }
}

/// Half the robust variance of differences of values `lag` apart: the variance of what does not persist so long.
fn variogram(values: &[f64], lag: usize) -> f64 {
    let apart: Vec<f64> = values.windows(lag + 1).map(|w| (w[lag] - w[0]).abs()).collect();
    (1.4826 * median(&apart)).powi(2) / 2.0
}

/// Short stretches join the neighbour whose level is nearer.
fn drop_short(cuts: &mut Vec<usize>, values: &[f64]) {
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

/// Moves every cut to the place between its neighbours where the two levels beside it fit best.
fn settle(cuts: &mut [usize], values: &[f64], scales: &[f64]) {
    for i in 0..cuts.len() {
        let ends = bounds(cuts, values.len());
        let (from, to) = (ends[i], ends[i + 2]);
        let levels = [median(&values[from..cuts[i]]), median(&values[cuts[i]..to])];
        let excess = |place: usize| {
            let cost = |level: f64| loss((values[place] - level) / scales[place]);
            cost(levels[0]) - cost(levels[1])
        };
        let (mut cost, mut best) = (0.0, (0.0, from));
        for place in from..to {
            if cost < best.0 && place >= from + SHORTEST && place + SHORTEST <= to || place == from + SHORTEST
            {
                best = (cost, place);
            }
            cost += excess(place);
        }
        cuts[i] = best.1;
    }
}

/// Moves every cut to its likeliest place in view of the shape of the noise.
fn refine(cuts: &mut [usize], values: &[f64], scales: &[f64], noise: &Noise) {
    let shape = noise.shape(cuts, values, scales);
    for i in 0..cuts.len() {
        let ends = bounds(cuts, values.len());
        let (from, to) = (ends[i], ends[i + 2]);
        let likely = likely(&shape, i, from, to, values, scales, noise);
        let allowed = from + SHORTEST..to + 1 - SHORTEST;
        let best = allowed.max_by(|&a, &b| likely[a - from - 1].total_cmp(&likely[b - from - 1]));
        cuts[i] = best.unwrap_or(cuts[i]);
    }
}

/// The log likelihood of each place `from + 1..to` for the i-th cut.
fn likely(
    shape: &Shape,
    i: usize,
    from: usize,
    to: usize,
    values: &[f64],
    scales: &[f64],
    noise: &Noise,
) -> Vec<f64> {
    let under = |level: f64| -> Vec<f64> {
        (from..to).map(|place| (values[place] - level) / scales[place]).collect()
    };
    shape.places(&under(noise.levels[i]), &under(noise.levels[i + 1]))
}

fn bounds(cuts: &[usize], n: usize) -> Vec<usize> {
    std::iter::once(0).chain(cuts.iter().copied()).chain(std::iter::once(n)).collect()
}

/// What the residuals about the levels show.
struct Noise {
    /// Mean of each segment without its outliers' weight.
    levels: Vec<f64>,
    /// Variance within each segment, drawn towards the pooled one.
    variances: Vec<f64>,
    pooled: f64,
    drift: f64,
    /// The drift as residuals alone show it; cuts may hide some of it.
    memory: f64,
    /// Mean square of residuals below and above their level, over that of all: 1 and 1 for symmetric noise.
    tails: [f64; 2],
}

impl Noise {
    fn about(log: &Log, cuts: &[usize], known: Option<f64>) -> Noise {
        let ends = bounds(cuts, log.values.len());
        let rough = log.rough_scale();
        let mut levels = Vec::new();
        let mut residuals = Vec::new();
        let mut sums = Vec::new();
        for pair in ends.windows(2) {
            let part = &log.values[pair[0]..pair[1]];
            let centre = median(part);
            let spread: Vec<f64> = part.iter().map(|v| (v - centre).abs()).collect();
            let reach = BOUND * (1.4826 * median(&spread)).max(rough);
            let clipped: Vec<f64> = part.iter().map(|v| v.clamp(centre - reach, centre + reach)).collect();
            let level = clipped.iter().sum::<f64>() / clipped.len() as f64;
            levels.push(level);
            sums.push((clipped.iter().map(|v| (v - level).powi(2)).sum::<f64>(), clipped.len() as f64));
            residuals.push(clipped.iter().map(|v| v - level).collect::<Vec<f64>>());
        }
        let freedom = (log.values.len() - sums.len()) as f64;
        let pooled = (sums.iter().map(|s| s.0).sum::<f64>() / freedom).max(log.floor * log.floor);
        // Values cannot vary less than their own readings let expect; where they seem to, that is chance.
        let own = |pair: &[usize]| log.own[pair[0]..pair[1]].iter().sum::<f64>() / (pair[1] - pair[0]) as f64;
        let shrunk = |(&(squares, n), pair): (&(f64, f64), &[usize])| {
            ((squares + POOLED * pooled) / (n - 1.0 + POOLED)).max(own(pair))
        };
        let variances = sums.iter().zip(ends.windows(2)).map(shrunk).collect();
        let (memory, drift) = known.map_or_else(|| drift(&residuals, log), |known| (known, known));
        let [memory, drift] = [memory, drift].map(|correlation| correlation.clamp(0.0, 0.95));
        let tails = [-1.0, 1.0].map(|side| tail(&residuals, side, pooled));
        Noise { levels, variances, pooled, drift, memory, tails }
    }

    /// The variance of the mean of `count` values of segment `i` that lies to the given side of its neighbour.
    ///
    /// Few values out of the longer tail of skewed noise look like a level of their own more often than its variance
    /// lets expect; with more values the tails of their mean even out.
    fn of_mean(&self, i: usize, count: f64, above: bool) -> f64 {
        let longer = (self.tails[usize::from(above)] - 1.0).max(0.0);
        self.inflation() * self.variances[i] / count * (1.0 + longer * (TAILS / count).min(1.0))
    }

    /// The shape of the residuals about the levels between the cuts.
    fn shape(&self, cuts: &[usize], values: &[f64], scales: &[f64]) -> Shape {
        let ends = bounds(cuts, values.len());
        let about = |(pair, level): (&[usize], &f64)| {
            let level = *level;
            (pair[0]..pair[1]).map(move |place| (values[place] - level) / scales[place]).collect::<Vec<f64>>()
        };
        let residuals: Vec<f64> = ends.windows(2).zip(&self.levels).flat_map(about).collect();
        let memory = if self.memory > 2.0 / (values.len() as f64).sqrt() { self.memory } else { 0.0 };
        Shape::of(&residuals, memory)
    }

    /// How many times more values are needed than independent ones to know a mean as well.
    fn inflation(&self) -> f64 {
        (1.0 + self.drift) / (1.0 - self.drift)
    }
}

fn tail(residuals: &[Vec<f64>], side: f64, pooled: f64) -> f64 {
    let beyond = residuals.iter().flatten().filter(|&&r| r * side > 0.0);
    let (squares, count) = beyond.fold((0.0, 0.0), |(s, n), r| (s + r * r, n + 1.0));
    if count > 0.0 { squares / count / pooled } else { 1.0 }
}

/// The lag-one correlation of residuals, corrected for the levels that were fitted to them; and the largest that it may
/// be in view of cuts that follow the drift.
fn drift(residuals: &[Vec<f64>], log: &Log) -> (f64, f64) {
    let (mut products, mut squares, mut pairs, mut count) = (0.0, 0.0, 0.0, 0.0);
    for part in residuals {
        products += part.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += part.iter().map(|r| r * r).sum::<f64>();
        pairs += part.len() as f64 - 1.0;
        count += part.len() as f64;
    }
    // What is smaller than the resolution is rounding, and rounding has no drift.
    let raw = (products / pairs) / (squares / count).max(log.floor * log.floor);
    // A mean fitted to k values lowers their lag-one correlation by about (1 + 3ρ)/k.
    let length = count / residuals.len() as f64;
    let corrected = (raw + 1.0 / length) / (1.0 - 3.0 / length).max(0.25);
    // Cuts that follow the drift hide it from residuals, but not from differences further apart.
    let far = (log.values.len() / 20).clamp(2, 15);
    let (near, persistent) = (variogram(&log.values, 1), variogram(&log.values, far));
    let hidden = if persistent > 0.0 { 1.0 - near / persistent } else { 0.0 };
    (corrected, corrected.max(hidden))
}

struct Test {
    p: f64,
    step: f64,
    half_width: f64,
    /// Student's statistic, which still ranks cuts where p has become 0.
    t: f64,
}

/// What the noise of all values is without and with the i-th cut, as F statistic, with the drift estimated either time:
/// a strong drift explains a step at a price, and the test is whether the step is cheaper.
fn drifting(log: &Log, cuts: &[usize], i: usize, noise: &Noise) -> (f64, f64) {
    let ends = bounds(cuts, log.values.len());
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let merged = {
        let [left, right] =
            [i, i + 1].map(|side| (ends[side + 1] - ends[side]) as f64 / noise.variances[side]);
        (noise.levels[i] * left + noise.levels[i + 1] * right) / (left + right)
    };
    for (segment, pair) in ends.windows(2).enumerate() {
        let scale = noise.variances[segment].sqrt();
        let level = noise.levels[segment];
        let null = if segment == i || segment == i + 1 { merged } else { level };
        for value in &log.values[pair[0]..pair[1]] {
            let clipped = value.clamp(level - BOUND * scale, level + BOUND * scale);
            with.push((clipped - level) / scale);
            without.push((clipped - null) / scale);
        }
    }
    let squares = |residuals: &[f64]| {
        let lagged: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let all: f64 = residuals.iter().map(|r| r * r).sum();
        let rho = (lagged / (all - residuals[residuals.len() - 1].powi(2)).max(1e-9)).clamp(0.0, 0.95);
        let first = (1.0 - rho * rho) * residuals[0].powi(2);
        first + residuals.windows(2).map(|pair| (pair[1] - rho * pair[0]).powi(2)).sum::<f64>()
    };
    let (with, without) = (squares(&with), squares(&without));
    let freedom = (log.values.len() as f64 - cuts.len() as f64 - 2.0).max(1.0);
    ((without - with).max(0.0) / (with / freedom).max(1e-12), freedom)
}

fn test(log: &Log, cuts: &[usize], i: usize, noise: &Noise, options: &Options<'_>) -> Test {
    let ends = bounds(cuts, log.values.len());
    let (left, right) = ((ends[i + 1] - ends[i]) as f64, (ends[i + 2] - ends[i + 1]) as f64);
    let inflation = noise.inflation();
    let step = noise.levels[i + 1] - noise.levels[i];
    let variance = noise.of_mean(i, left, step < 0.0) + noise.of_mean(i + 1, right, step > 0.0);
    let freedom = ((left + right - 2.0) / inflation + POOLED.min(log.values.len() as f64 / 4.0)).max(1.0);
    let mut t = step.abs() / variance.sqrt();
    let places = log.values.len() as f64;
    let tail = |t: f64, freedom: f64| StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| student.sf(t));
    let p = |t: f64, freedom: f64| (2.0 * tail(t, freedom) * places).min(1.0);
    let mut probability = p(t, freedom);
    let long = log.values.len() >= LONG;
    if options.drift.is_none() && (!long || probability <= options.error) {
        let plain = inflation * (noise.variances[i] / left + noise.variances[i + 1] / right);
        let (f, free) = drifting(log, cuts, i, noise);
        let by_fit = (f * plain / variance).sqrt();
        let p_of_fit = p(by_fit, free);
        // Only a long series shows by its distant differences how much drift its cuts may hide.
        t = if long { t.min(by_fit) } else { by_fit };
        probability = if long { probability.max(p_of_fit) } else { p_of_fit };
    }
    let half_width = normal::student(LEVEL, freedom) * variance.sqrt();
    Test { p: probability, step, half_width, t }
}

fn told(log: &Log, cuts: &[usize], tests: &[Test], noise: &Noise, scales: &[f64]) -> Series {
    let levels: Vec<f64> = noise.levels.iter().map(|level| level.exp()).collect();
    let modes = modes(&noise.levels, noise.pooled.sqrt());
    let change = |(i, test): (usize, &Test)| {
        let (at, first, last) = places(log, cuts, i, noise, scales);
        let (low, high) = ((test.step - test.half_width).exp(), (test.step + test.half_width).exp());
        let interval = Some(Interval { low, high, level: LEVEL });
        ChangePoint { at, first, last, ratio: test.step.exp(), interval, p: test.p }
    };
    let changes = tests.iter().enumerate().map(change).collect();
    let (noise, drift) = (noise.pooled.sqrt(), noise.drift);
    match modes {
        Some(modes) => {
            let all = median(&log.values).exp();
            Series { changes: Vec::new(), levels: vec![all], noise, drift, modes: Some(modes.map(f64::exp)) }
        }
        None => Series { changes, levels, noise, drift, modes },
    }
}

/// Two levels that at least five stretches keep returning to.
fn modes(levels: &[f64], scale: f64) -> Option<[f64; 2]> {
    if levels.len() < 5 {
        return None;
    }
    let (even, odd): (Vec<_>, Vec<_>) = levels.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let [even, odd] = [even, odd].map(|side| side.into_iter().map(|(_, &level)| level).collect::<Vec<f64>>());
    let centres = [median(&even), median(&odd)];
    let apart = (centres[0] - centres[1]).abs();
    let near = |side: &[f64], centre: f64| {
        side.iter().all(|level| (level - centre).abs() < (apart / 4.0).max(scale))
    };
    let alternates = apart > 2.0 * scale && near(&even, centres[0]) && near(&odd, centres[1]);
    alternates.then(|| [centres[0].min(centres[1]), centres[0].max(centres[1])])
}

/// The most probable place of a cut, and the first and last that fit nearly as well as the likeliest: the log likelihood
/// falls by less than x, where the walk it follows on both sides of the true place exceeds x with probability
/// 1 − (1 − e⁻ˣ)².
fn places(log: &Log, cuts: &[usize], i: usize, noise: &Noise, scales: &[f64]) -> (usize, usize, usize) {
    let ends = bounds(cuts, log.values.len());
    let (from, to) = (ends[i] + 1, ends[i + 2]);
    let shape = noise.shape(cuts, &log.values, scales);
    let likely = likely(&shape, i, ends[i], to, &log.values, scales, noise);
    let chances: Vec<f64> = likely.iter().map(|log| log.exp()).collect();
    let near = |place: &usize| -> f64 {
        let i = place - from;
        let around = &chances[i.saturating_sub(NEAR)..(i + NEAR + 1).min(chances.len())];
        // Where all of it is in reach from several places, the likeliest of these is meant.
        around.iter().sum::<f64>() + 1e-3 * chances[i]
    };
    let allowed = from + SHORTEST - 1..to + 1 - SHORTEST;
    let at = allowed.max_by(|a, b| near(a).total_cmp(&near(b))).unwrap_or(cuts[i]);
    let fits = |place: &usize| likely[place - from] - likely[cuts[i] - from] >= (1.0 - LEVEL.sqrt()).ln();
    let first = (from..at).find(fits).unwrap_or(at);
    let last = (at..to).rfind(fits).unwrap_or(at);
    (at, first, last)
}
