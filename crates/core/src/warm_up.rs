//! Finds the end of the warm-up of a run.
//!
//! Source: White, "An effective truncation heuristic for bias reduction in simulation output" (Simulation 69, 1997),
//! the marginal standard error rule MSER: cut off the first d of n values such that the standard error of the mean of
//! the rest is smallest. If d is half of the values or more, there is no steady state and nothing is cut. The rule
//! alone also cuts plain noise, and anything unusual in the first half. So values are cut only if they look like a
//! warm-up: the first value is unusually high, and the values fall from there to the level of the rest, where the
//! warm-up ends.

use scruple_stats::quantile::median;
use scruple_stats::summary::robust_sd;

/// In series of fewer values nothing is cut.
const FEWEST: usize = 16;

/// The number of values at the start that belong to the warm-up: less than half of them, and 0 in series of fewer than
/// sixteen values.
///
/// `series` holds one value per slice of equal length; logarithms of latencies are suitable.
///
/// ```
/// use scruple_core::warm_up::cut;
///
/// let steady = |i: usize| 10.0 + 0.1 * (i % 3) as f64;
/// let decaying: Vec<f64> = (0..40).map(|i| steady(i) + 8.0 / (1 + i * i) as f64).collect();
/// assert!((1..20).contains(&cut(&decaying)));
/// let plain: Vec<f64> = (0..40).map(steady).collect();
/// assert_eq!(cut(&plain), 0);
/// ```
pub fn cut(series: &[f64]) -> usize {
    if series.len() < FEWEST || series.iter().any(|value| !value.is_finite()) {
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
    // Three robust standard deviations, and at least a tenth: smaller ones hardly bias the results.
    let unusual = (3.0 * robust_sd(rest, centre)).max(0.1);
    if !decays(taken, centre, unusual) {
        return 0;
    }
    // The warm-up ends where the values have fallen to the steady state; the rule alone may cut into its noise.
    taken.iter().position(|value| value - centre <= unusual / 3.0).unwrap_or(best.0)
}

/// Whether the values start unusually high above the centre and fall from there, apart from rises within noise.
fn decays(taken: &[f64], centre: f64, unusual: f64) -> bool {
    let Some(first) = taken.first().filter(|first| *first - centre > unusual) else { return false };
    let mut least = *first;
    taken.iter().all(|value| {
        let falls = *value <= least + unusual;
        least = least.min(*value);
        falls
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_stats::rng::Pcg;

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
            assert!((5..=7).contains(&cut), "seed {seed}: {cut}");
        }
    }

    #[test]
    fn the_cut_ends_where_the_values_have_fallen_to_the_level_of_the_rest() {
        let mut none = 0;
        for seed in 0..200 {
            let mut random = Pcg::new(seed);
            let falling = |i: usize| (0.4 * (1.0 - i as f64 / 6.0)).max(0.0);
            let series: Vec<f64> = (0..40).map(|i| 5.0 + falling(i) + (random.unit() - 0.5) * 0.05).collect();
            let cut = cut(&series);
            none += u32::from(cut == 0);
            assert!(cut == 0 || (4..=7).contains(&cut), "seed {seed}: {cut}");
        }
        // By chance the rule wants to cut half or more; then nothing is cut.
        assert!(none <= 4, "{none}");
    }

    #[test]
    fn a_course_that_does_not_fall_from_the_first_value_is_not_a_warm_up() {
        for at in 0..15 {
            for length in 1..6 {
                let mut series = noise(32, at as u64);
                series.iter_mut().skip(at).take(length).for_each(|value| *value += 2.0);
                let cut = cut(&series);
                // At the very beginning a step cannot be distinguished from a warm-up.
                assert!(cut == 0 || at == 0, "{length} high values from {at}: {cut}");
            }
            let mut quick = noise(32, 7);
            quick.iter_mut().take(at).for_each(|value| *value -= 1.0);
            assert_eq!(cut(&quick), 0, "a quick beginning");
            let mut rising = noise(32, at as u64);
            rising.iter_mut().take(6).zip(2..).for_each(|(value, more)| *value += f64::from(more));
            assert_eq!(cut(&rising), 0, "a beginning that grows slower");
        }
    }

    #[test]
    fn a_stall_at_the_end_is_no_warm_up() {
        let mut series = noise(32, 1);
        series[30] = 9.0;
        assert_eq!(cut(&series), 0);
        series.iter_mut().take(20).for_each(|value| *value += 1.0);
        assert_eq!(cut(&series), 0, "what lasts longer than half of the run is no warm-up");
        assert_eq!(cut(&series[..15]), 0);
        assert_eq!(cut(&[f64::NAN; 20]), 0);
    }
}
