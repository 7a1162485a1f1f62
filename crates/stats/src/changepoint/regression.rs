//! Regresses a series on the terms of a background, with a separate level in each stretch between cuts.
//!
//! The levels are removed by centring the terms and values within stretches; the regression solves the scatter matrix
//! of the centred terms. Joining two stretches adds one rank-one matrix, from the difference of their means, to the
//! scatter. So inverse, coefficients and residuals follow in closed form (Sherman & Morrison, "Adjustment of an Inverse
//! Matrix Corresponding to a Change in One Element of a Given Matrix" (1950)), and every cut can be judged with the
//! background fitted again without it.

use super::stretches::bounds;

/// The smallest ridge of a coefficient per value of the series, so that nearly collinear terms can be solved for.
const LEAST: f64 = 1e-9;

/// A stretch: its number of values, the mean of each term, and the mean of the values.
#[derive(Clone)]
struct LevelStretch {
    size: f64,
    terms: Vec<f64>,
    mean: f64,
}

/// The sums over the values of a series from which regressions on its terms start.
pub(super) struct RegressionSums {
    stretches: Vec<LevelStretch>,
    cuts: Vec<usize>,
    /// Scatter of the terms within stretches. `with_values` is the scatter of terms with values, `values` that of the
    /// values.
    terms: Vec<Vec<f64>>,
    with_values: Vec<f64>,
    values: f64,
}

impl RegressionSums {
    /// Computes the sums for values cut at `cuts`; `products` are the products of the terms over the whole series.
    pub(super) fn of(
        values: &[f64],
        terms: &[Vec<f64>],
        products: &[Vec<f64>],
        cuts: &[usize],
    ) -> RegressionSums {
        let ends = bounds(cuts, values.len());
        let stretch = |pair: &[usize]| {
            let size = (pair[1] - pair[0]) as f64;
            let mean = |of: &[f64]| of[pair[0]..pair[1]].iter().sum::<f64>() / size;
            LevelStretch { size, terms: terms.iter().map(|term| mean(term)).collect(), mean: mean(values) }
        };
        let stretches: Vec<LevelStretch> = ends.windows(2).map(stretch).collect();
        let within = |i: usize, j: usize| {
            let between = |s: &LevelStretch| s.size * s.terms[i] * s.terms[j];
            products[i][j] - stretches.iter().map(between).sum::<f64>()
        };
        // Values are centred within their stretch, for precision where they are large compared with their differences.
        let mut centred = values.to_vec();
        for (pair, stretch) in ends.windows(2).zip(&stretches) {
            centred[pair[0]..pair[1]].iter_mut().for_each(|value| *value -= stretch.mean);
        }
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        RegressionSums {
            terms: (0..terms.len()).map(|i| (0..=i).map(|j| within(i, j)).collect()).collect(),
            with_values: terms.iter().map(|term| product(term, &centred)).collect(),
            values: product(&centred, &centred),
            cuts: cuts.to_vec(),
            stretches,
        }
    }
}

/// The products of each pair of terms, summed over the whole series: the lower triangle.
pub(super) fn products(terms: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    terms.iter().enumerate().map(|(i, a)| terms[..=i].iter().map(|b| product(a, b)).collect()).collect()
}

/// A fitted regression: coefficients, residual sum of squares, and what is needed to join stretches.
pub(super) struct Regression {
    pub cuts: Vec<usize>,
    pub coefficients: Vec<f64>,
    /// The sum of squared residuals plus that of squared coefficients weighted by their ridges.
    pub squares: f64,
    inverse: Vec<Vec<f64>>,
    stretches: Vec<LevelStretch>,
}

/// The effect of joining two stretches on the regression.
struct Join {
    /// The increase of the sum of squares.
    lost: f64,
    direction: Vec<f64>,
    residual: f64,
    denominator: f64,
}

impl Regression {
    /// Regresses on the first `ridges.len()` terms. Each ridge is the penalty on the square of that term's coefficient.
    pub(super) fn new(sums: &RegressionSums, ridges: &[f64]) -> Regression {
        let count = ridges.len();
        let size: f64 = sums.stretches.iter().map(|stretch| stretch.size).sum();
        let scatter = |i: usize, j: usize| {
            let own = if i == j { ridges[i] + LEAST * size } else { 0.0 };
            sums.terms[i.max(j)][i.min(j)] + own
        };
        let inverse = inverse(count, scatter);
        let coefficients: Vec<f64> = inverse.iter().map(|row| dot(row, &sums.with_values)).collect();
        let squares = sums.values - dot(&coefficients, &sums.with_values);
        let first =
            |stretch: &LevelStretch| LevelStretch { terms: stretch.terms[..count].to_vec(), ..*stretch };
        let stretches = sums.stretches.iter().map(first).collect();
        Regression {
            cuts: sums.cuts.clone(),
            coefficients,
            squares: squares.max(f64::MIN_POSITIVE),
            inverse,
            stretches,
        }
    }

    /// Removes the weakest cut as long as it gains less log likelihood than `needed`, and returns the gains of the cuts
    /// that stay. `inflation` is the factor by which the correlation of neighbours increases the variance of a mean.
    pub(super) fn remove_weak_cuts(&mut self, needed: f64, inflation: f64) -> Vec<f64> {
        loop {
            let joins: Vec<Join> = (0..self.cuts.len()).map(|i| self.join(i)).collect();
            let gain = |join: &Join| join.lost / (2.0 * inflation * self.variance());
            let weakest = (0..joins.len()).min_by(|&a, &b| joins[a].lost.total_cmp(&joins[b].lost));
            match weakest {
                Some(i) if gain(&joins[i]) < needed => self.take(i, &joins[i]),
                _ => return joins.iter().map(gain).collect(),
            }
        }
    }

    /// The level of each stretch after the background is subtracted.
    pub(super) fn levels(&self) -> Vec<f64> {
        let level = |stretch: &LevelStretch| stretch.mean - dot(&stretch.terms, &self.coefficients);
        self.stretches.iter().map(level).collect()
    }

    fn variance(&self) -> f64 {
        let size: f64 = self.stretches.iter().map(|stretch| stretch.size).sum();
        let fitted = self.coefficients.len() + self.stretches.len();
        self.squares / (size - fitted as f64).max(1.0)
    }

    fn join(&self, i: usize) -> Join {
        let [left, right] = [&self.stretches[i], &self.stretches[i + 1]];
        let difference: Vec<f64> =
            right.terms.iter().zip(&left.terms).map(|(right, left)| right - left).collect();
        let direction: Vec<f64> = self.inverse.iter().map(|row| dot(row, &difference)).collect();
        let residual = right.mean - left.mean - dot(&difference, &self.coefficients);
        let weight = left.size * right.size / (left.size + right.size);
        let denominator = weight.recip() + dot(&difference, &direction);
        Join { lost: residual * residual / denominator, direction, residual, denominator }
    }

    fn take(&mut self, i: usize, join: &Join) {
        for (row, &a) in self.inverse.iter_mut().zip(&join.direction) {
            row.iter_mut().zip(&join.direction).for_each(|(entry, b)| *entry -= a * b / join.denominator);
        }
        for (coefficient, direction) in self.coefficients.iter_mut().zip(&join.direction) {
            *coefficient += direction * join.residual / join.denominator;
        }
        self.squares += join.lost;
        self.cuts.remove(i);
        let right = self.stretches.remove(i + 1);
        let left = &mut self.stretches[i];
        let share = left.size / (left.size + right.size);
        let mean = |left: f64, right: f64| share * left + (1.0 - share) * right;
        left.terms.iter_mut().zip(&right.terms).for_each(|(left, &right)| *left = mean(*left, right));
        left.mean = mean(left.mean, right.mean);
        left.size += right.size;
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The inverse of a symmetric positive definite matrix, by its Cholesky factor.
fn inverse(size: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    let mut factor = vec![vec![0.0; size]; size];
    for i in 0..size {
        for j in 0..=i {
            let sum = entry(i, j) - dot(&factor[i][..j], &factor[j][..j]);
            factor[i][j] = if i == j { sum.max(f64::MIN_POSITIVE).sqrt() } else { sum / factor[j][j] };
        }
    }
    // The columns of the inverse L⁻¹ of the factor; the inverse of the matrix is (L⁻¹)ᵀL⁻¹.
    let mut columns = vec![vec![0.0; size]; size];
    for (j, column) in columns.iter_mut().enumerate() {
        column[j] = factor[j][j].recip();
        for i in j + 1..size {
            column[i] = -dot(&factor[i][j..i], &column[j..i]) / factor[i][i];
        }
    }
    (0..size).map(|i| (0..size).map(|j| dot(&columns[i], &columns[j])).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> (Vec<f64>, Vec<Vec<f64>>) {
        let wobble = |i: usize, by: usize| ((i * i * by + 7 * i) % 101) as f64 / 50.0 - 1.0;
        let term = |j: usize| (0..90).map(|i| (0.03 * (j + 1) as f64 * i as f64).cos()).collect::<Vec<f64>>();
        let terms: Vec<Vec<f64>> = (0..5).map(term).collect();
        let step = |i: usize| {
            if i < 30 {
                0.0
            } else if i < 55 {
                4.0
            } else {
                4.3
            }
        };
        let values = (0..90).map(|i| step(i) + 2.0 * terms[1][i] + wobble(i, 3)).collect();
        (values, terms)
    }

    fn regression(cuts: &[usize], ridges: &[f64]) -> Regression {
        let (values, terms) = series();
        Regression::new(&RegressionSums::of(&values, &terms, &products(&terms), cuts), ridges)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    #[test]
    fn joining_stretches_is_fitting_anew() {
        for ridges in [vec![0.0; 3], vec![0.5; 5]] {
            let mut joined = regression(&[10, 30, 55, 70], &ridges);
            for i in [3, 0] {
                let join = joined.join(i);
                joined.take(i, &join);
            }
            let anew = regression(&[30, 55], &ridges);
            assert!(near(joined.squares, anew.squares), "{} {}", joined.squares, anew.squares);
            assert!(joined.coefficients.iter().zip(&anew.coefficients).all(|(a, b)| near(*a, *b)));
            assert!(joined.levels().iter().zip(anew.levels()).all(|(a, b)| near(*a, b)));
        }
    }

    #[test]
    fn a_step_stays_and_what_follows_the_background_goes() {
        let mut found = regression(&[10, 30, 70], &[0.0; 3]);
        let gains = found.remove_weak_cuts(8.0, 1.0);
        assert_eq!((found.cuts.as_slice(), gains.len()), ([30].as_slice(), 1));
        assert!(near(found.variance(), found.squares / (90.0 - 3.0 - 2.0)));
    }

    #[test]
    fn more_terms_leave_less() {
        let squares: Vec<f64> = (0..=5).map(|count| regression(&[30], &vec![0.0; count]).squares).collect();
        assert!(squares.windows(2).all(|pair| pair[1] <= pair[0]), "{squares:?}");
    }

    #[test]
    fn without_terms_a_join_loses_what_two_means_explain() {
        let (values, _) = series();
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let difference = mean(&values[30..]) - mean(&values[..30]);
        let expected = difference * difference * 30.0 * 60.0 / 90.0;
        assert!(near(regression(&[30], &[]).join(0).lost, expected));
    }
}
