//! Finds steps on a slow background.
//!
//! A search for steps cuts a trend, a wave or a random walk into a staircase, and each of these cuts looks as likely as
//! a true one. So the cuts are judged once more together with smooth backgrounds, which are sums of cosines. Their
//! coefficients are either free (for trends) or drawn from the spectrum of a random walk, so that one parameter sets
//! the smoothness. Cuts that the background explains are removed. The background is kept if series, cuts and background
//! together are more likely after its penalty.
//!
//! Source: Rasmussen & Williams, "Gaussian Processes for Machine Learning" (2006), §2.7 and §5.4, for free terms beside
//! a process, and for the penalty on the freedom of a process.

use super::false_alarm::{chance, gain};
use super::fit::LevelFit;
use super::regression::{Regression, RegressionSums, products};
use super::scaled_series::Scaled;
use super::selection::SelectedCuts;
use super::stretches::bounds;
use crate::sorting;

/// No background is searched in series of fewer values: there a trend cannot be distinguished from two steps in one
/// direction, and steps are more common.
const FEWEST: usize = 40;

/// The number of values that each term of a background needs at least.
const VALUES: usize = 12;

/// The largest number of terms of a background.
const TERMS: usize = 24;

/// The numbers of free terms of the trends that are tried.
const TRENDS: [usize; 3] = [1, 2, 3];

/// The sizes of the random walks that are tried: the prior variance of the first coefficient, relative to
/// [`Trial::noise`].
const WALKS: [f64; 7] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// The penalty for choosing among the sizes of a walk, in log likelihood.
const CHOICE: f64 = 2.0;

/// In a series of at most this many values, a background must gain as much log likelihood as a cut, since steps are
/// more common. In longer series, which distinguish the two better, this penalty falls with the square of the length.
const FULL_PENALTY_UP_TO: f64 = 60.0;

/// How many backgrounds, the best by least squares, are fitted again with the estimated distribution of the noise.
const CLOSE: usize = 3;

/// A value is clamped to this many standard deviations from its level plus the background before the background is
/// fitted.
const REACH: f64 = 3.0;

/// A form of background that is tried.
struct BackgroundForm {
    /// The prior variance of each coefficient; `None` where the coefficient is free.
    variances: Vec<Option<f64>>,
    /// The penalty in log likelihood, besides that on the squares of the coefficients.
    price: f64,
}

/// The fit of one form of background together with cuts, with the gain of each remaining cut.
struct BackgroundFit {
    regression: Regression,
    gains: Vec<f64>,
    curve: Vec<f64>,
}

/// The data on which every form of background is tried.
struct Trial<'a> {
    series: &'a Scaled,
    terms: Vec<Vec<f64>>,
    products: Vec<Vec<f64>>,
    /// The log likelihood that a cut must gain to be kept.
    needed: f64,
    inflation: f64,
}

/// Finds the slow curve that explains a series best together with cuts, and the cuts that are still needed then. `None`
/// where the cuts alone are more likely.
pub(super) fn fit_background(
    series: &Scaled,
    steps: &SelectedCuts,
    error: f64,
) -> Option<(Vec<f64>, SelectedCuts)> {
    let n = series.len();
    if steps.fit.cuts.is_empty() || n < FEWEST {
        return None;
    }
    let memory = steps.fit.shape.memory;
    let inflation = (1.0 + memory) / (1.0 - memory);
    let needed = gain(error, n);
    let terms = cosines(n, (n / VALUES).min(TERMS));
    let trial = Trial { series, products: products(&terms), terms, needed, inflation };
    let flat = vec![0.0; n];
    let start = trial.sums(&steps.fit.cuts, &steps.fit.levels, &flat);
    let mut kinds: Vec<(f64, BackgroundForm, Regression)> = trial
        .kinds()
        .into_iter()
        .map(|kind| {
            let mut regression = Regression::new(&start, &trial.ridges(&kind));
            regression.remove_weak_cuts(needed, inflation);
            let likelihood = -0.5 * n as f64 * regression.squares.ln() / inflation;
            (likelihood - needed * regression.cuts.len() as f64 - kind.price, kind, regression)
        })
        .collect();
    sorting::by(&mut kinds, |a, b| b.0.total_cmp(&a.0));
    let score = |fit: &LevelFit| fit.likelihood - needed * fit.cuts.len() as f64;
    let mut best = (score(&steps.fit), None);
    for (_, kind, rough) in kinds.into_iter().take(CLOSE) {
        let found = trial.refit(&kind, &rough);
        let fit = LevelFit::of(&series.less(&found.curve), found.regression.cuts.clone());
        let now = score(&fit) - kind.price - kind.prior_penalty(&found.regression.coefficients);
        if now > best.0 {
            let chances = found.gains.iter().map(|&gain| chance(gain, n)).collect();
            best = (now, Some((found.curve, SelectedCuts { fit, chances })));
        }
    }
    best.1
}

impl BackgroundForm {
    /// The loss of log likelihood from the prior of these coefficients.
    fn prior_penalty(&self, coefficients: &[f64]) -> f64 {
        let one =
            |(c, variance): (&f64, &Option<f64>)| variance.map_or(0.0, |variance| 0.5 * c * c / variance);
        coefficients.iter().zip(&self.variances).map(one).sum()
    }
}

impl Trial<'_> {
    /// The long-run variance of a value: n times the variance that noise gives a coefficient fitted to n values.
    fn noise(&self) -> f64 {
        let squares: f64 = self.series.scales.iter().map(|scale| scale * scale).sum();
        squares / self.series.len() as f64 * self.inflation
    }

    fn kinds(&self) -> Vec<BackgroundForm> {
        let n = self.series.len() as f64;
        let penalty = self.needed * (FULL_PENALTY_UP_TO / n).powi(2).min(1.0);
        let trend = |&count: &usize| BackgroundForm {
            variances: vec![None; count],
            price: penalty + 0.5 * count as f64 * n.ln(),
        };
        let walk = |size: &f64| {
            let share = |j: usize| size / (j.max(1) as f64).powi(2);
            let freedom = |j: usize| 0.5 * (n * share(j)).ln_1p();
            let all = 0..self.terms.len();
            BackgroundForm {
                variances: all.clone().map(|j| Some(share(j) * self.noise())).collect(),
                price: penalty + CHOICE + all.map(freedom).sum::<f64>(),
            }
        };
        TRENDS
            .iter()
            .filter(|&&count| count <= self.terms.len())
            .map(trend)
            .chain(WALKS.iter().map(walk))
            .collect()
    }

    fn ridges(&self, kind: &BackgroundForm) -> Vec<f64> {
        kind.variances
            .iter()
            .map(|variance| variance.map_or(0.0, |variance| self.noise() / variance))
            .collect()
    }

    /// Sums over the values, with outliers clamped to a distance of [`REACH`] from their level plus the curve.
    fn sums(&self, cuts: &[usize], levels: &[f64], curve: &[f64]) -> RegressionSums {
        let series = self.series;
        let mut values = series.values.clone();
        for (pair, level) in bounds(cuts, series.len()).windows(2).zip(levels) {
            for place in pair[0]..pair[1] {
                let (middle, reach) = (level + curve[place], REACH * series.scales[place]);
                values[place] = values[place].clamp(middle - reach, middle + reach);
            }
        }
        RegressionSums::of(&values, &self.terms, &self.products, cuts)
    }

    /// Fits the background again, with outliers measured from the first fit instead of from the flat levels.
    fn refit(&self, kind: &BackgroundForm, rough: &Regression) -> BackgroundFit {
        let sums = self.sums(&rough.cuts, &rough.levels(), &self.curve(&rough.coefficients));
        let mut regression = Regression::new(&sums, &self.ridges(kind));
        let gains = regression.remove_weak_cuts(self.needed, self.inflation);
        let curve = self.curve(&regression.coefficients);
        BackgroundFit { regression, gains, curve }
    }

    fn curve(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut curve = vec![0.0; self.series.len()];
        for (term, coefficient) in self.terms.iter().zip(coefficients) {
            curve.iter_mut().zip(term).for_each(|(sum, value)| *sum += coefficient * value);
        }
        curve
    }
}

/// A line, followed by cosines of increasing frequency. Each has mean 0 and mean square 1 over `n` values.
fn cosines(n: usize, count: usize) -> Vec<Vec<f64>> {
    let at = |i: usize| (i as f64 + 0.5) / n as f64;
    let first: Vec<f64> = (0..n).map(|i| (std::f64::consts::PI * at(i)).cos()).collect();
    let mut terms = vec![(0..n).map(|i| 3_f64.sqrt() * (2.0 * at(i) - 1.0)).collect()];
    let [mut last, mut now] =
        [vec![std::f64::consts::SQRT_2; n], scaled_by(&first, std::f64::consts::SQRT_2)];
    while terms.len() < count {
        // cos((j + 1)x) = 2 cos x cos jx − cos((j − 1)x)
        let next = first.iter().zip(&now).zip(&last).map(|((x, now), last)| 2.0 * x * now - last).collect();
        terms.push(std::mem::replace(&mut now, next));
        last.clone_from(&terms[terms.len() - 1]);
    }
    terms
}

fn scaled_by(values: &[f64], factor: f64) -> Vec<f64> {
    values.iter().map(|value| factor * value).collect()
}
