//! Probabilities and quantiles of the normal, t and F distributions, defined for every argument.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// Φ(z), the probability that a standard normal variable lies below `z`.
pub(crate) fn cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The quantile of the standard normal distribution; infinite at 0 and 1.
pub(crate) fn quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p.clamp(0.0, 1.0))
}

/// The two-sided critical value of Student's t at `level`; the normal one for very many degrees of freedom or none.
pub(crate) fn student(level: f64, freedom: f64) -> f64 {
    let p = 0.5 + level / 2.0;
    StudentsT::new(0.0, 1.0, freedom).map_or_else(|_| quantile(p), |t| t.inverse_cdf(p))
}

/// The `p`-quantile of Fisher's F; infinite where the distribution does not exist, so that nothing is rejected.
pub(crate) fn fisher(p: f64, numerator: f64, denominator: f64) -> f64 {
    FisherSnedecor::new(numerator, denominator).map_or(f64::INFINITY, |f| f.inverse_cdf(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_agree_with_scipy() {
        let reference: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/reference/statistics.json")).expect("it is JSON");
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
}
