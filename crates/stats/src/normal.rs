//! Probabilities and quantiles of the normal, t and F distributions, defined for every argument.

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// Φ(z), the probability that a standard normal variable lies below `z`.
pub fn cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The quantile of the standard normal distribution; infinite at 0 and 1.
pub fn quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p.clamp(0.0, 1.0))
}

/// The two-sided critical value of Student's t at `level`; the normal one for very many degrees of freedom or none.
pub fn student(level: f64, freedom: f64) -> f64 {
    let p = 0.5 + level / 2.0;
    StudentsT::new(0.0, 1.0, freedom).map_or_else(|_| quantile(p), |t| t.inverse_cdf(p))
}

/// The probability that a variable of Student's t lies above `t`; 1 where the distribution does not exist.
pub fn student_tail(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |student| student.sf(t))
}

/// The degrees of freedom from which on a variance is taken as known in [`fisher`]: the search for the exact quantile
/// may not end for much larger numbers.
const MANY: f64 = 10_000.0;

/// The `p`-quantile of Fisher's F; infinite where the distribution does not exist, so that nothing is rejected. With
/// very many degrees of freedom it is that of the limiting distribution: chi-squared, or log-normal if both are many.
pub fn fisher(p: f64, numerator: f64, denominator: f64) -> f64 {
    let chi = |p: f64, freedom: f64| {
        ChiSquared::new(freedom).map_or(f64::INFINITY, |chi| chi.inverse_cdf(p) / freedom)
    };
    match (numerator > MANY, denominator > MANY) {
        (true, true) => (quantile(p) * (2.0 / numerator + 2.0 / denominator).sqrt()).exp(),
        (true, false) => 1.0 / chi(1.0 - p, denominator),
        (false, true) => chi(p, numerator),
        (false, false) => {
            FisherSnedecor::new(numerator, denominator).map_or(f64::INFINITY, |f| f.inverse_cdf(p))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_agree_with_scipy() {
        let reference: serde_json::Value =
            serde_json::from_str(include_str!("../tests/reference/statistics.json")).expect("it is JSON");
        let rows = |name: &str| -> Vec<Vec<f64>> {
            serde_json::from_value(reference["critical_values"][name].clone()).expect("rows of numbers")
        };
        for row in rows("student") {
            assert!((student(row[0], row[1]) / row[2] - 1.0).abs() < 1e-8, "{row:?}");
        }
        for row in rows("fisher") {
            assert!((fisher(row[0], row[1], row[2]) / row[3] - 1.0).abs() < 1e-8, "{row:?}");
        }
    }

    #[test]
    fn the_quantile_of_fishers_f_is_continuous_towards_any_number_of_degrees_of_freedom() {
        let many = [MANY * 0.999, MANY * 1.001];
        for p in [0.005, 0.025, 0.5, 0.975, 0.995] {
            for few in [2.0, 7.0, 60.0, 900.0, 9000.0] {
                for of in [&|freedom| fisher(p, few, freedom), &|freedom| fisher(p, freedom, few)]
                    as [&dyn Fn(f64) -> f64; 2]
                {
                    let (below, above) = (of(many[0]), of(many[1]));
                    // The variance that is left out has a standard deviation of 1.4 %.
                    let tolerance = if few > 1000.0 { 0.03 } else { 0.01 };
                    assert!((below / above - 1.0).abs() < tolerance, "{p} {few}: {below}, {above}");
                    assert!(of(1e12).is_finite() && of(1e12) > 0.0, "{p} {few}");
                }
            }
            assert!((fisher(p, 1e9, 1e12) - 1.0).abs() < 1e-3, "{p}");
        }
    }
}
