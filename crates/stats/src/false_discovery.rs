//! Several tests whose share of false discoveries is kept below a rate: Benjamini & Hochberg, "Controlling the False
//! Discovery Rate: A Practical and Powerful Approach to Multiple Testing" (1995).
//!
//! `p` are the p-values that are known, in increasing order, out of `tests` tests. Those of the others count as 1.

/// The largest p-value at which a test is a discovery at this `rate`; `rate / tests` if none of `p` is.
pub fn bound(p: &[f64], tests: usize, rate: f64) -> f64 {
    let bound = |i: usize| rate * i as f64 / tests.max(1) as f64;
    (1..=p.len()).rev().find(|&i| p[i - 1] <= bound(i)).map_or(bound(1), bound)
}

/// The adjusted p-values, in the order of `p`: the lowest rates at which each test is a discovery.
pub fn adjusted(p: &[f64], tests: usize) -> Vec<f64> {
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (i, p) in p.iter().enumerate().rev() {
        least = least.min(p * tests as f64 / (i + 1) as f64);
        adjusted[i] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper_has_four_discoveries() {
        // Section 3.2: fifteen comparisons at a rate of 0.05.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        assert_eq!(bound(&p, p.len(), 0.05), 0.05 * 4.0 / 15.0);
        let adjusted = adjusted(&p, p.len());
        assert_eq!(adjusted.iter().filter(|p| **p <= 0.05).count(), 4);
        assert!((adjusted[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
        assert_eq!(adjusted[14], 1.0);
    }

    #[test]
    fn tests_without_a_known_probability_make_the_bound_stricter() {
        assert_eq!(bound(&[0.004, 0.5], 10, 0.05), 0.005);
        assert_eq!(bound(&[0.006, 0.5], 10, 0.05), 0.005);
        assert_eq!(adjusted(&[0.004, 0.5], 10), [0.04, 1.0]);
        assert_eq!(bound(&[], 0, 0.05), 0.05);
    }
}
