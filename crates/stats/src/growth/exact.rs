//! Growth of exact metrics, in whole numbers and fractions.

use crate::sorting::{self, SortedMap};

use super::{Growth, GrowthForm, NoFit};

/// The growth that every point (n, cost) satisfies exactly, such as 32 bytes for each step plus 16.
///
/// First a + b·g(n) is tried for every form whose g is a whole number at all sizes. Then full polynomials of degree 2
/// and 3 are tried; they need one size more than they have coefficients, so that at least one point remains as a check.
///
/// # Errors
///
/// Fails with [`NoFit::TooFewSizes`] for fewer than three sizes, and with [`NoFit::NoForm`] when no form is exact, when
/// one size has two costs, or when numbers are too large.
///
/// ```
/// use scruple_stats::growth::{GrowthForm, exact};
///
/// let growth = exact(&[(1, 48), (10, 336), (100, 3216)]).expect("a line");
/// assert_eq!((growth.form, growth.intercept, growth.slope), (GrowthForm::Linear, 16.0, 32.0));
/// ```
pub fn exact(points: &[(u64, u64)]) -> Result<Growth, NoFit> {
    let mut costs = SortedMap::new();
    let agree = points.iter().all(|&(n, cost)| *costs.entry(n).or_insert(cost) == cost);
    if costs.len() < 3 {
        return Err(NoFit::TooFewSizes { have: costs.len() });
    }
    if !agree {
        return Err(NoFit::NoForm);
    }
    let points: Vec<(i128, i128)> = costs.into_iter().map(|(n, cost)| (n.into(), cost.into())).collect();
    let simple = || GrowthForm::GROWING.into_iter().find_map(|form| two_terms(&points, form));
    constant(&points).or_else(simple).or_else(|| polynomial(&points)).ok_or(NoFit::NoForm)
}

fn found(form: GrowthForm, intercept: f64, slope: f64, lower: Vec<f64>) -> Growth {
    let exact = true;
    Growth {
        form,
        intercept,
        slope,
        slope_interval: None,
        lower,
        exact,
        also_possible: Vec::new(),
        residual: 0.0,
        ends: None,
    }
}

fn constant(points: &[(i128, i128)]) -> Option<Growth> {
    let cost = points[0].1;
    points.iter().all(|p| p.1 == cost).then(|| found(GrowthForm::Constant, cost as f64, 0.0, Vec::new()))
}

fn two_terms(points: &[(i128, i128)], form: GrowthForm) -> Option<Growth> {
    let g: Vec<i128> = points.iter().map(|&(n, _)| exact_value(form, n)).collect::<Option<_>>()?;
    let (rise, run) = (points[1].1 - points[0].1, g[1] - g[0]);
    let on_line = |(&(_, cost), g_n): (&(i128, i128), &i128)| {
        Some((cost - points[0].1).checked_mul(run)? == (g_n - g[0]).checked_mul(rise)?)
    };
    let all = points.iter().zip(&g).all(|point| on_line(point) == Some(true));
    // A slope that is not positive, or two sizes with the same g, exclude this form.
    (all && run > 0 && rise > 0).then(|| {
        let at_first = Fraction::new(rise, run).and_then(|slope| slope.times(Fraction::from_integer(g[0])));
        let intercept = at_first.and_then(|part| Fraction::from_integer(points[0].1).minus(part));
        let slope = rise as f64 / run as f64;
        let rounded = points[0].1 as f64 - slope * g[0] as f64;
        found(form, intercept.map_or(rounded, Fraction::value), slope, Vec::new())
    })
}

/// The value g(n) where it is a whole number, so that nothing is lost to rounding.
fn exact_value(form: GrowthForm, n: i128) -> Option<i128> {
    let log = || u64::try_from(n).ok().filter(|n| n.is_power_of_two()).map(|n| i128::from(n.ilog2()));
    match form {
        GrowthForm::Constant => Some(0),
        GrowthForm::Logarithmic => log(),
        GrowthForm::Linear => Some(n),
        GrowthForm::Linearithmic => Some(n * log()?),
        GrowthForm::Quadratic => n.checked_mul(n),
        GrowthForm::Cubic => n.checked_mul(n)?.checked_mul(n),
        GrowthForm::Exponential => (n < 100).then(|| 1 << n),
        GrowthForm::Other | GrowthForm::Unknown => None,
    }
}

/// A polynomial of degree 2 or 3 through all points, by Newton's divided differences in exact fractions.
fn polynomial(points: &[(i128, i128)]) -> Option<Growth> {
    let mut column: Vec<Fraction> = points.iter().map(|p| Fraction::from_integer(p.1)).collect();
    let mut newton = vec![column[0]];
    while newton.len() <= 3 && points.len() >= newton.len() + 2 {
        let order = newton.len();
        column = (0..column.len() - 1)
            .map(|i| column[i + 1].minus(column[i])?.over(points[i + order].0 - points[i].0))
            .collect::<Option<_>>()?;
        newton.push(column[0]);
        if order >= 2 && column.iter().all(|difference| *difference == column[0]) {
            return expand(points, &newton);
        }
    }
    None
}

/// Converts Newton's form to the coefficients of the powers of n.
fn expand(points: &[(i128, i128)], newton: &[Fraction]) -> Option<Growth> {
    let mut powers = vec![Fraction::from_integer(0); newton.len()];
    for (order, &coefficient) in newton.iter().enumerate().rev() {
        // Horner's scheme: multiply the polynomial so far by (n − nᵢ) and add the coefficient.
        let root = Fraction::from_integer(points[order].0);
        for power in (0..powers.len()).rev() {
            let shifted = if power > 0 { powers[power - 1] } else { Fraction::from_integer(0) };
            powers[power] = shifted.minus(powers[power].times(root)?)?;
        }
        powers[0] = powers[0].plus(coefficient)?;
    }
    let slope = powers.pop()?.value();
    let form = if powers.len() == 2 { GrowthForm::Quadratic } else { GrowthForm::Cubic };
    let lower = powers[1..].iter().map(|p| p.value()).collect();
    (slope > 0.0).then(|| found(form, powers[0].value(), slope, lower))
}

/// A fraction in lowest terms with a positive denominator. Operations that would overflow return `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Option<Fraction> {
        let (mut a, mut b) = (over.checked_abs()?, under.checked_abs()?);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = a.checked_mul(under.signum()).filter(|d| *d != 0)?;
        Some(Fraction { over: over / divisor, under: under / divisor })
    }

    fn from_integer(over: i128) -> Fraction {
        Fraction { over, under: 1 }
    }

    fn plus(self, other: Fraction) -> Option<Fraction> {
        let left = self.over.checked_mul(other.under)?;
        let right = other.over.checked_mul(self.under)?;
        Fraction::new(left.checked_add(right)?, self.under.checked_mul(other.under)?)
    }

    fn minus(self, other: Fraction) -> Option<Fraction> {
        self.plus(Fraction { over: other.over.checked_neg()?, ..other })
    }

    fn times(self, other: Fraction) -> Option<Fraction> {
        Fraction::new(self.over.checked_mul(other.over)?, self.under.checked_mul(other.under)?)
    }

    fn over(self, divisor: i128) -> Option<Fraction> {
        Fraction::new(self.over, self.under.checked_mul(divisor)?)
    }

    fn value(self) -> f64 {
        self.over as f64 / self.under as f64
    }
}

/// The growth from which no point is further than `tolerance` units, for exact metrics with a few stray bytes.
///
/// For each form, the line with the smallest largest distance is found (Chebyshev's line, parallel to an edge of the
/// convex hull). The constant is preferred where it suffices, else the closest form; the other forms within the
/// tolerance are listed as possible.
///
/// # Errors
///
/// Fails with [`NoFit::TooFewSizes`] for fewer than three sizes, and with [`NoFit::NoForm`] when no form is close
/// enough.
pub fn within(points: &[(u64, u64)], tolerance: f64) -> Result<Growth, NoFit> {
    let sizes: std::collections::BTreeSet<u64> = points.iter().map(|p| p.0).collect();
    if sizes.len() < 3 {
        return Err(NoFit::TooFewSizes { have: sizes.len() });
    }
    let constant = closest(points, GrowthForm::Constant);
    let growing = GrowthForm::GROWING.into_iter().filter_map(|form| closest(points, form));
    let mut fits: Vec<Growth> =
        constant.into_iter().chain(growing).filter(|g| g.residual <= tolerance).collect();
    if fits.first().is_none_or(|first| first.form != GrowthForm::Constant) {
        sorting::by(&mut fits, |a, b| a.residual.total_cmp(&b.residual));
    }
    let mut fits = fits.into_iter();
    let best = fits.next().ok_or(NoFit::NoForm)?;
    Ok(Growth { also_possible: fits.map(|other| other.form).collect(), ..best })
}

fn closest(points: &[(u64, u64)], form: GrowthForm) -> Option<Growth> {
    let mut places: Vec<(f64, f64)> =
        points.iter().map(|&(n, cost)| Some((form.at(n as f64)?, cost as f64))).collect::<Option<_>>()?;
    sorting::by(&mut places, |a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let range = |slope: f64| {
        let offsets = places.iter().map(|(g, cost)| cost - slope * g);
        offsets.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), o| (low.min(o), high.max(o)))
    };
    let slopes = if form == GrowthForm::Constant { vec![0.0] } else { hull_slopes(&places) };
    let width = |slope: &f64| range(*slope).1 - range(*slope).0;
    let slope = slopes.into_iter().min_by(|a, b| width(a).total_cmp(&width(b)))?;
    let (low, high) = range(slope);
    let grows = form == GrowthForm::Constant || slope > 0.0;
    let growth = found(form, low + (high - low) / 2.0, slope, Vec::new());
    grows.then_some(Growth { exact: high == low, residual: (high - low) / 2.0, ..growth })
}

/// The slopes of the edges of the upper and lower convex hulls of points sorted by size.
fn hull_slopes(places: &[(f64, f64)]) -> Vec<f64> {
    let mut slopes = Vec::new();
    for side in [1.0, -1.0] {
        let mut hull: Vec<(f64, f64)> = Vec::new();
        for &point in places {
            let turns = |hull: &[(f64, f64)]| match hull {
                [.., a, b] => side * ((b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0)) <= 0.0,
                _ => false,
            };
            while turns(&hull) {
                hull.pop();
            }
            hull.push(point);
        }
        let edges = hull.windows(2).filter(|edge| edge[1].0 > edge[0].0);
        slopes.extend(edges.map(|edge| (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0)));
    }
    slopes
}
