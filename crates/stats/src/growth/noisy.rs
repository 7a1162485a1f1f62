//! Growth of noisy metrics, by least squares in relative error.

use super::super::Interval;
use super::super::median_interval::median_interval;
use super::super::normal;
use super::super::quantile::median;
use super::super::ranks::mann_whitney_u;
use super::super::summary::variance_of_median;
use super::{Growth, GrowthForm, NoFit};
use crate::sorting;

/// A curve agrees with the readings if it passes the interval of each median within this share, since code layout differs
/// from size to size.
const LAYOUT: f64 = 0.02;

/// A curve may not agree with the readings, for instance because caches are full from some size on. It is named only if
/// it misses no interval by more than this share, and if every other curve is this many times as far from the medians
/// (root mean square).
const CLOSE: f64 = 0.1;
const CLOSEST: f64 = 4.0;

/// Where a size has too few readings for an interval: the largest root mean square of the distances of medians from a
/// curve that fits them.
const ROUGH: f64 = 0.25;

/// Two sizes differ where the gap between the intervals of their medians exceeds this share, since code layout alone
/// changes a loop by this much. Where a size has too few readings for an interval, its noise is unknown: the readings
/// must then rise or fall with the size ([`trend`]), and the gap between the ranges must exceed [`WIDE_SLACK`].
const SLACK: f64 = 0.05;
const WIDE_SLACK: f64 = 0.5;

/// The growth that fits the points (n, cost) best, and the forms that cannot be excluded.
///
/// Readings of one size are first reduced to their median, so that disturbed readings do not decide. Relative errors
/// are minimised, since noise is proportional to cost. Another form is possible while its sum of squares exceeds that
/// of the best form by no more than s²·F(1, ν) at `level`: the profile-likelihood set of a growth parameter that runs
/// through the forms. Here s² is the larger of the residual variance of the best curve and the variance of the readings
/// of one size. The constant is preferred wherever it is possible.
///
/// Residuals are noise only where the curve is right. Therefore the constant is possible only where the sizes do not
/// differ beyond their own intervals, and the best form is named only where its curve agrees with these intervals, or is
/// far closer than all others. Otherwise the form is [`GrowthForm::Other`]. Where there are too few readings to tell
/// whether sizes differ, it is [`GrowthForm::Unknown`].
///
/// # Errors
///
/// Fails for fewer than three sizes, for costs that are not positive or sizes below 0, and for numbers that are not
/// finite.
pub fn noisy(points: &[(f64, f64)], level: f64) -> Result<Growth, NoFit> {
    let sizes = by_size(points)?;
    let n: Vec<f64> = sizes.iter().map(|size| size.0).collect();
    let costs: Vec<f64> = sizes.iter().map(|size| median(&size.1)).collect();
    let each = 1.0 - (1.0 - level) / sizes.len() as f64;
    let intervals: Vec<Option<Interval>> = sizes.iter().map(|size| median_interval(&size.1, each)).collect();
    let known: Option<Vec<Interval>> = intervals.iter().copied().collect();
    let weights = known.as_ref().map_or(vec![1.0; n.len()], |intervals| weights(&costs, intervals));
    let mut fits: Vec<NoisyFit> =
        GrowthForm::GROWING.into_iter().filter_map(|form| grow(form, &n, &costs, &weights)).collect();
    fits.retain(|fit| fit.slope > 0.0);
    sorting::by(&mut fits, |a, b| a.squares.total_cmp(&b.squares));
    let flat = flat(&costs, &weights);
    let of = |fit: &NoisyFit, slope: Option<Interval>, others: Vec<GrowthForm>| {
        let ends = Some([(n[0], costs[0]), (n[n.len() - 1], costs[costs.len() - 1])]);
        Ok(Growth { ends, ..growth(fit, slope, others, costs.len()) })
    };
    let without_curve = |form, squares| NoisyFit { form, intercept: costs[0], squares, ..flat };
    let Some(differ) = differ(&sizes, &intervals, level) else {
        return of(&without_curve(GrowthForm::Unknown, flat.squares), None, Vec::new());
    };
    let Some(best) = fits.first() else {
        let other = NoisyFit { form: GrowthForm::Other, ..flat };
        return of(if differ { &other } else { &flat }, None, Vec::new());
    };

    let freedom = costs.len() as f64 - 2.0;
    let (left, (replicated, replicate_freedom)) = (best.squares / freedom, spread(&sizes, &weights));
    let (variance, freedom) =
        if left >= replicated { (left, freedom) } else { (replicated, replicate_freedom) };
    let limit = best.squares + variance * normal::fisher(level, 1.0, freedom);
    let within = |fit: &&NoisyFit| fit.squares <= limit;
    if !differ && within(&&flat) {
        let others = fits.iter().filter(within).map(|fit| fit.form).collect();
        return of(&flat, None, others);
    }
    let misses = |fit: &NoisyFit, share: f64| match &known {
        Some(intervals) => n.iter().zip(intervals).any(|(n, interval)| {
            let cost = fit.at(*n);
            cost < (1.0 - share) * interval.low || cost > (1.0 + share) * interval.high
        }),
        None => (fit.squares / costs.len() as f64).sqrt() > ROUGH,
    };
    let others: Vec<GrowthForm> = if !misses(best, LAYOUT) {
        let possible = |fit: &&NoisyFit| within(fit) && !misses(fit, CLOSE);
        fits[1..].iter().filter(possible).map(|fit| fit.form).collect()
    } else {
        let far = limit.max(CLOSEST * CLOSEST * best.squares);
        if misses(best, CLOSE) || fits[1..].iter().any(|fit| fit.squares <= far) {
            return of(&without_curve(GrowthForm::Other, best.squares), None, Vec::new());
        }
        Vec::new()
    };
    let half = normal::student(level, freedom) * (variance * best.slope_variance).sqrt();
    let interval = Interval { low: best.slope - half, high: best.slope + half, level };
    of(best, Some(interval), others)
}

/// Whether the intervals of the medians of any two sizes are disjoint, at this level for all of them together
/// (Bonferroni); `None` where there are too few readings to tell.
fn differ(sizes: &[(f64, Vec<f64>)], intervals: &[Option<Interval>], level: f64) -> Option<bool> {
    let (mut slack, mut few) = (SLACK, false);
    let (mut highest_low, mut lowest_high) = (f64::NEG_INFINITY, f64::INFINITY);
    for ((_, costs), interval) in sizes.iter().zip(intervals) {
        let (low, high) = match interval {
            Some(interval) => (interval.low, interval.high),
            None => {
                (slack, few) = (WIDE_SLACK, true);
                costs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), c| (l.min(*c), h.max(*c)))
            }
        };
        (highest_low, lowest_high) = (highest_low.max(low), lowest_high.min(high));
    }
    let apart = highest_low > (1.0 + slack) * lowest_high;
    (!few || trend(sizes, level)).then_some(apart)
}

/// Whether readings rise or fall with the size, by the two-sided test of Jonckheere ("A Distribution-Free k-Sample Test
/// Against Ordered Alternatives", 1954) in its normal approximation with continuity correction. Of the smallest samples
/// that can show a trend, five sizes with one reading or three with two, only a perfect order does.
fn trend(sizes: &[(f64, Vec<f64>)], level: f64) -> bool {
    let count = |costs: &[f64]| costs.len() as f64;
    let cube = |n: f64| n * n * (2.0 * n + 3.0);
    let (mut rising, mut pairs) = (0.0, 0.0);
    for (place, (_, larger)) in sizes.iter().enumerate() {
        for (_, smaller) in &sizes[..place] {
            rising += mann_whitney_u(smaller, larger);
            pairs += count(smaller) * count(larger);
        }
    }
    let all: f64 = sizes.iter().map(|(_, costs)| count(costs)).sum();
    let within: f64 = sizes.iter().map(|(_, costs)| cube(count(costs))).sum();
    let deviation = ((cube(all) - within) / 72.0).sqrt();
    (rising - pairs / 2.0).abs() - 0.5 > normal::quantile(0.5 + level / 2.0) * deviation
}

struct NoisyFit {
    form: GrowthForm,
    intercept: f64,
    slope: f64,
    /// The sum of squared relative errors.
    squares: f64,
    /// The variance of the slope for noise of unit variance.
    slope_variance: f64,
}

impl NoisyFit {
    /// The cost of size `n` on the curve.
    fn at(&self, n: f64) -> f64 {
        self.intercept + self.slope * self.form.at(n).unwrap_or(f64::NAN)
    }
}

fn growth(
    fit: &NoisyFit,
    slope_interval: Option<Interval>,
    also_possible: Vec<GrowthForm>,
    sizes: usize,
) -> Growth {
    let (form, intercept, slope) = (fit.form, fit.intercept, fit.slope);
    let residual = (fit.squares / sizes as f64).sqrt();
    Growth {
        form,
        intercept,
        slope,
        slope_interval,
        lower: Vec::new(),
        exact: false,
        also_possible,
        residual,
        ends: None,
    }
}

fn by_size(points: &[(f64, f64)]) -> Result<Vec<(f64, Vec<f64>)>, NoFit> {
    if points.iter().any(|(n, cost)| !n.is_finite() || !cost.is_finite()) {
        return Err(NoFit::NotFinite);
    }
    if points.iter().any(|&(n, cost)| n < 0.0 || cost <= 0.0) {
        return Err(NoFit::NotPositive);
    }
    let mut points = points.to_vec();
    sorting::by(&mut points, |a, b| a.0.total_cmp(&b.0));
    let mut sizes: Vec<(f64, Vec<f64>)> = Vec::new();
    for (n, cost) in points {
        match sizes.last_mut() {
            Some(last) if last.0 == n => last.1.push(cost),
            _ => sizes.push((n, vec![cost])),
        }
    }
    if sizes.len() < 3 { Err(NoFit::TooFewSizes { have: sizes.len() }) } else { Ok(sizes) }
}

/// The relative variance of a median that the readings of one size predict, with its degrees of freedom.
fn spread(sizes: &[(f64, Vec<f64>)], weights: &[f64]) -> (f64, f64) {
    let replicated: Vec<(&Vec<f64>, f64)> = sizes
        .iter()
        .map(|size| &size.1)
        .zip(weights.iter().copied())
        .filter(|one| one.0.len() >= 3)
        .collect();
    if replicated.is_empty() {
        return (0.0, 0.0);
    }
    let of_median = |(costs, weight): &(&Vec<f64>, f64)| {
        let centre = median(costs);
        weight * variance_of_median(costs, centre) / (centre * centre)
    };
    let variance = replicated.iter().map(of_median).sum::<f64>() / replicated.len() as f64;
    (variance, replicated.iter().map(|(costs, _)| costs.len() as f64 - 1.0).sum())
}

/// The weight of each median, 1 on average: a median that is known only roughly, because other work disturbed most of
/// its readings, must not move the curve away from the other medians.
fn weights(costs: &[f64], intervals: &[Interval]) -> Vec<f64> {
    let of =
        |(cost, interval): (&f64, &Interval)| 1.0 / (LAYOUT.powi(2) + (interval.half_width() / cost).powi(2));
    let weights: Vec<f64> = costs.iter().zip(intervals).map(of).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight * costs.len() as f64 / sum).collect()
}

fn flat(costs: &[f64], weights: &[f64]) -> NoisyFit {
    let each = || costs.iter().zip(weights);
    let (sum, squares) = each().fold((0.0, 0.0), |(s, q), (cost, w)| (s + w / cost, q + w / (cost * cost)));
    let intercept = sum / squares;
    let squares = each().map(|(cost, w)| w * (1.0 - intercept / cost).powi(2)).sum();
    NoisyFit { form: GrowthForm::Constant, intercept, slope: 0.0, squares, slope_variance: 0.0 }
}

/// Minimises Σ weight·(1 − (a + b·g)/cost)², with g and cost scaled to about 1 so that n³ loses no digits.
fn grow(form: GrowthForm, n: &[f64], costs: &[f64], weights: &[f64]) -> Option<NoisyFit> {
    let g: Vec<f64> = n.iter().map(|&n| form.at(n)).collect::<Option<_>>()?;
    let widest = g.iter().fold(0.0_f64, |widest, g| widest.max(g.abs()));
    let scale = median(costs);
    // Each row is multiplied by the root of its weight.
    let columns = || {
        let rows = g.iter().zip(costs).zip(weights);
        rows.map(|((g, cost), w)| (w.sqrt(), w.sqrt() * scale / cost, w.sqrt() * g / widest * scale / cost))
    };
    // Gram-Schmidt: the slope follows from the part of the second column that the first does not explain.
    let (uu, uv, u) =
        columns().fold((0.0, 0.0, 0.0), |s, (one, u, v)| (s.0 + u * u, s.1 + u * v, s.2 + one * u));
    let (rest, projected) = columns().fold((0.0, 0.0), |s, (one, u, v)| {
        let apart = v - uv / uu * u;
        (s.0 + apart * apart, s.1 + one * apart)
    });
    let slope = projected / rest;
    let intercept = (u - slope * uv) / uu;
    let squares = columns().map(|(one, u, v)| (one - intercept * u - slope * v).powi(2)).sum();
    let back = scale / widest;
    let fit = NoisyFit {
        form,
        intercept: intercept * scale,
        slope: slope * back,
        squares,
        slope_variance: back * back / rest,
    };
    (rest > 1e-24 && fit.slope.is_finite() && fit.squares.is_finite()).then_some(fit)
}
