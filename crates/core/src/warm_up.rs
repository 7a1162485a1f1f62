//! Where the warm-up of a run ends.
//!
//! Source: White, "An effective truncation heuristic for bias reduction in simulation output" (Simulation 69, 1997), the
//! marginal standard error rule MSER: cut off the first d of n values such that the standard error of the mean of the
//! rest is smallest; where that is half of them or more, there is no steady state and nothing is cut. A cut that takes off
//! nothing unusual is undone as well, since the rule alone also trims plain noise.

use crate::stats::quantile::median;

/// How many of the first values are warm-up; less than half of them, and none where there are fewer than eight.
///
/// `series` holds one value per slice of equal length; logarithms of latencies suit it well.
pub fn cut(series: &[f64]) -> usize {
    if series.len() < 8 || series.iter().any(|value| !value.is_finite()) {
        return 0;
    }
    let error = |d: usize| {
        let rest = &series[d..];
        let n = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / n;
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n * n)
    };
    let mut best = (0, error(0));
    for d in 1..=series.len() / 2 {
        let e = error(d);
        if e < best.1 {
            best = (d, e);
        }
    }
    if best.0 == series.len() / 2 {
        return 0;
    }
    let (taken, rest) = series.split_at(best.0);
    let centre = median(rest);
    let deviations: Vec<f64> = rest.iter().map(|value| (value - centre).abs()).collect();
    // Three robust standard deviations, and at least 2 %: less does not bias what is reported.
    let unusual = (3.0 * 1.4826 * median(&deviations)).max(0.02);
    if taken.iter().any(|value| (value - centre).abs() > unusual) { best.0 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::rng::Pcg;

    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut random = Pcg::new(seed);
        (0..n).map(|_| 5.0 + (random.unit() - 0.5) * 0.02).collect()
    }

    #[test]
    fn a_slow_beginning_is_cut_and_plain_noise_is_not() {
        for seed in 0..50 {
            let mut series = noise(32, seed);
            assert_eq!(cut(&series), 0, "seed {seed}");
            for (i, value) in series.iter_mut().take(6).enumerate() {
                *value += 1.0 / (i + 1) as f64;
            }
            let cut = cut(&series);
            assert!((6..=12).contains(&cut), "seed {seed}: {cut}");
        }
    }

    #[test]
    fn a_stall_at_the_end_is_no_warm_up() {
        let mut series = noise(32, 1);
        series[30] = 9.0;
        assert_eq!(cut(&series), 0);
        series.iter_mut().take(20).for_each(|value| *value += 1.0);
        assert_eq!(cut(&series), 0, "what lasts longer than half of the run is no warm-up");
        assert_eq!(cut(&series[..7]), 0);
        assert_eq!(cut(&[f64::NAN; 10]), 0);
    }
}
