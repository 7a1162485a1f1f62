//! Growth of noisy metrics, by least squares in relative error.

use super::super::Interval;
use super::super::median_interval::median_interval;
use super::super::normal;
use super::super::quantile::median;
use super::super::ranks::mann_whitney_u;
use super::{Growth, GrowthForm, NoFit};
use crate::sorting;

/// The largest root mean square of the relative distances of medians from a curve at which the curve still fits them.
const CLOSE: f64 = 0.25;

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
/// differ beyond their own intervals; where they do and no curve comes close, the form is [`GrowthForm::Other`]. Where
/// there are too few readings to tell whether sizes differ, it is [`GrowthForm::Unknown`].
///
/// # Errors
///
/// Fails for fewer than three sizes, for costs that are not positive or sizes below 0, and for numbers that are not
/// finite.
pub fn noisy(points: &[(f64, f64)], level: f64) -> Result<Growth, NoFit> {
    let sizes = by_size(points)?;
    let n: Vec<f64> = sizes.iter().map(|size| size.0).collect();
    let costs: Vec<f64> = sizes.iter().map(|size| median(&size.1)).collect();
    let mut fits: Vec<NoisyFit> =
        GrowthForm::GROWING.into_iter().filter_map(|form| grow(form, &n, &costs)).collect();
    fits.retain(|fit| fit.slope > 0.0);
    sorting::by(&mut fits, |a, b| a.squares.total_cmp(&b.squares));
    let flat = flat(&costs);
    let of = |fit: &NoisyFit, slope: Option<Interval>, others: Vec<GrowthForm>| {
        let ends = Some([(n[0], costs[0]), (n[n.len() - 1], costs[costs.len() - 1])]);
        Ok(Growth { ends, ..growth(fit, slope, others, costs.len()) })
    };
    let without_curve = |form, squares| NoisyFit { form, intercept: costs[0], squares, ..flat };
    let Some(differ) = differ(&sizes, level) else {
        return of(&without_curve(GrowthForm::Unknown, flat.squares), None, Vec::new());
    };
    let Some(best) = fits.first() else {
        let other = NoisyFit { form: GrowthForm::Other, ..flat };
        return of(if differ { &other } else { &flat }, None, Vec::new());
    };

    let freedom = costs.len() as f64 - 2.0;
    let (left, (replicated, replicate_freedom)) = (best.squares / freedom, spread(&sizes));
    let (variance, freedom) =
        if left >= replicated { (left, freedom) } else { (replicated, replicate_freedom) };
    let limit = best.squares + variance * normal::fisher(level, 1.0, freedom);
    let close = |fit: &&NoisyFit| !differ || (fit.squares / costs.len() as f64).sqrt() <= CLOSE;
    let possible = |fit: &&NoisyFit| fit.squares <= limit && close(fit);
    if !differ && possible(&&flat) {
        let others = fits.iter().filter(possible).map(|fit| fit.form).collect();
        return of(&flat, None, others);
    }
    if !close(&best) {
        return of(&without_curve(GrowthForm::Other, best.squares), None, Vec::new());
    }
    let others = fits[1..].iter().filter(possible).map(|fit| fit.form).collect();
    let half = normal::student(level, freedom) * (variance * best.slope_variance).sqrt();
    let interval = Interval { low: best.slope - half, high: best.slope + half, level };
    of(best, Some(interval), others)
}

/// Whether the intervals of the medians of any two sizes are disjoint, at this level for all of them together
/// (Bonferroni); `None` where there are too few readings to tell.
fn differ(sizes: &[(f64, Vec<f64>)], level: f64) -> Option<bool> {
    let each = 1.0 - (1.0 - level) / sizes.len() as f64;
    let (mut slack, mut few) = (SLACK, false);
    let (mut highest_low, mut lowest_high) = (f64::NEG_INFINITY, f64::INFINITY);
    for (_, costs) in sizes {
        let (low, high) = match median_interval(costs, each) {
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
fn spread(sizes: &[(f64, Vec<f64>)]) -> (f64, f64) {
    let replicated: Vec<&Vec<f64>> =
        sizes.iter().map(|size| &size.1).filter(|costs| costs.len() >= 3).collect();
    if replicated.is_empty() {
        return (0.0, 0.0);
    }
    let of_median = |costs: &&Vec<f64>| {
        let centre = median(costs);
        let deviations: Vec<f64> = costs.iter().map(|cost| (cost / centre - 1.0).abs()).collect();
        std::f64::consts::FRAC_PI_2 * (1.4826 * median(&deviations)).powi(2) / costs.len() as f64
    };
    let variance = replicated.iter().map(of_median).sum::<f64>() / replicated.len() as f64;
    (variance, replicated.iter().map(|costs| costs.len() as f64 - 1.0).sum())
}

fn flat(costs: &[f64]) -> NoisyFit {
    let (sum, squares) =
        costs.iter().fold((0.0, 0.0), |(s, q), cost| (s + 1.0 / cost, q + 1.0 / (cost * cost)));
    let intercept = sum / squares;
    let squares = costs.iter().map(|cost| (1.0 - intercept / cost).powi(2)).sum();
    NoisyFit { form: GrowthForm::Constant, intercept, slope: 0.0, squares, slope_variance: 0.0 }
}

/// Minimises Σ (1 − (a + b·g)/cost)², with g and cost scaled to about 1 so that n³ loses no digits.
fn grow(form: GrowthForm, n: &[f64], costs: &[f64]) -> Option<NoisyFit> {
    let g: Vec<f64> = n.iter().map(|&n| form.at(n)).collect::<Option<_>>()?;
    let widest = g.iter().fold(0.0_f64, |widest, g| widest.max(g.abs()));
    let scale = median(costs);
    let columns = || g.iter().zip(costs).map(|(g, cost)| (scale / cost, g / widest * scale / cost));
    // Gram-Schmidt: the slope follows from the part of the second column that the first does not explain.
    let (uu, uv, u) = columns().fold((0.0, 0.0, 0.0), |s, (u, v)| (s.0 + u * u, s.1 + u * v, s.2 + u));
    let (rest, projected) = columns().fold((0.0, 0.0), |s, (u, v)| {
        let apart = v - uv / uu * u;
        (s.0 + apart * apart, s.1 + apart)
    });
    let slope = projected / rest;
    let intercept = (u - slope * uv) / uu;
    let squares = columns().map(|(u, v)| (1.0 - intercept * u - slope * v).powi(2)).sum();
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
