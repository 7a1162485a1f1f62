//! Change points on slowly moving backgrounds, in values below zero, and where a change cannot be placed.

use std::f64::consts::TAU;

use scruple_stats::changepoint::{FoundChanges, SeriesOptions, StepSize, noisy};
use scruple_stats::rng::Pcg;

use crate::noise::normal;

/// A slowly moving background. Sizes are in standard deviations of the noise.
#[derive(Clone, Copy, Debug)]
enum Slow {
    Nothing,
    Trend(f64),
    /// A sine wave of this many periods, with an amplitude of 1.5 standard deviations.
    Wave(f64),
    Walk(f64),
}

const NOISE: f64 = 0.01;

/// A series of normal noise on the background `slow`. `steps` are places and sizes in standard deviations of the noise.
fn series(seed: u64, n: usize, slow: Slow, steps: &[(usize, f64)]) -> Vec<f64> {
    let mut pcg = Pcg::with_stream(80, seed);
    let sign = if pcg.below(2) == 0 { 1.0 } else { -1.0 };
    let start = pcg.unit();
    let mut walked = 0.0;
    let mut value = |i: usize| {
        let t = i as f64 / n as f64;
        walked += normal(&mut pcg) / (n as f64).sqrt();
        let slow = match slow {
            Slow::Nothing => 0.0,
            Slow::Trend(size) => size * t,
            Slow::Wave(periods) => 1.5 * (TAU * (periods * t + start)).sin(),
            Slow::Walk(size) => size * walked,
        };
        let step: f64 = steps.iter().filter(|(at, _)| i >= *at).map(|(_, size)| size).sum();
        100.0 * (NOISE * (normal(&mut pcg) + sign * slow + step)).exp()
    };
    (0..n).map(&mut value).collect()
}

fn found(values: &[f64]) -> FoundChanges {
    noisy(values, &SeriesOptions::default()).expect("values are finite")
}

fn places(found: &FoundChanges) -> Vec<usize> {
    found.changes.iter().map(|change| change.at).collect()
}

/// The number of changes that are named in sixty series with this background and no steps.
fn false_changes(n: usize, slow: Slow) -> usize {
    (0..60).map(|seed| found(&series(seed, n, slow, &[])).changes.len()).sum()
}

#[test]
fn a_slow_drift_is_not_cut_into_steps() {
    for (n, slow, most) in [
        (60, Slow::Trend(3.0), 50),
        (60, Slow::Trend(6.0), 40),
        (200, Slow::Trend(6.0), 3),
        (400, Slow::Trend(3.0), 3),
        (200, Slow::Wave(1.0), 3),
        (400, Slow::Wave(3.0), 3),
        (400, Slow::Walk(1.0), 10),
        (400, Slow::Walk(4.0), 20),
    ] {
        let wrong = false_changes(n, slow);
        assert!(wrong <= most, "{n} values, {slow:?}: {wrong} changes");
    }
}

#[test]
fn a_step_on_a_slow_background_is_found_and_nothing_else() {
    for (slow, least, most) in
        [(Slow::Trend(3.0), 54, 6), (Slow::Wave(2.0), 33, 6), (Slow::Walk(2.0), 42, 18)]
    {
        let (mut hits, mut others) = (0, 0);
        for seed in 0..60 {
            let named = places(&found(&series(seed, 300, slow, &[(140, 3.0)])));
            let near = named.iter().filter(|at| at.abs_diff(140) <= 3).count();
            hits += usize::from(near > 0);
            others += usize::from(named.len() > near);
        }
        assert!(hits >= least && others <= most, "{slow:?}: {hits} found, {others} with others");
    }
}

#[test]
fn staircases_are_not_taken_for_a_trend() {
    for (n, size) in [(60, 4.0), (300, 4.0), (300, 2.0)] {
        let steps: Vec<(usize, f64)> = (1..4).map(|i| (i * n / 4, size)).collect();
        let hit = |seed: &u64| {
            let named = places(&found(&series(*seed, n, Slow::Nothing, &steps)));
            steps.iter().all(|(at, _)| named.iter().any(|place| place.abs_diff(*at) <= 5))
        };
        let hits = (0..40).filter(hit).count();
        assert!(hits >= 36, "{n} values, steps of {size}: {hits} of 40");
    }
}

#[test]
fn a_step_in_the_middle_is_not_taken_for_a_line() {
    for (n, size, least) in [(1000, 1.5, 17), (60, 2.0, 17), (60, 3.0, 19)] {
        let hit = |seed: &u64| {
            let named = found(&series(*seed, n, Slow::Nothing, &[(n / 2, size)]));
            named.background.is_none() && places(&named).iter().any(|at| at.abs_diff(n / 2) <= 5)
        };
        let hits = (0..20).filter(hit).count();
        assert!(hits >= least, "{n} values, a step of {size}: {hits} of 20");
    }
}

#[test]
fn a_background_says_how_far_it_goes() {
    let values = series(3, 400, Slow::Trend(6.0), &[(200, 8.0)]);
    let named = found(&values);
    assert_eq!(places(&named), [200]);
    let background = named.background.expect("a trend");
    let range = background.range.ratio().expect("values are positive");
    assert!((range.ln() / NOISE - 6.0).abs() < 1.5, "{range}");
    let level = |i: usize| named.levels[usize::from(i >= 200)];
    let off = |i: usize| (values[i] / (level(i) * background.curve[i])).ln() / NOISE;
    let squares: f64 = (0..400).map(|i| off(i).powi(2)).sum();
    assert!((squares / 400.0).sqrt() < 1.15, "{squares}");
}

#[test]
fn versions_weighed_in_turns_have_no_background() {
    let options = SeriesOptions { drift: Some(0.0), ..SeriesOptions::default() };
    let slow = noisy(&series(3, 400, Slow::Trend(6.0), &[]), &options).expect("values are finite");
    assert!(slow.background.is_none(), "{slow:?}");
}

#[test]
fn values_below_zero_have_differences_for_steps() {
    let mut pcg = Pcg::new(81);
    let level = |i: usize| if (30..70).contains(&i) { 12.0 } else { 5.0 };
    let values: Vec<f64> = (0..100).map(|i| level(i) + normal(&mut pcg)).collect();
    let moved = |factor: f64, by: f64| -> FoundChanges {
        found(&values.iter().map(|value| factor * value + by).collect::<Vec<f64>>())
    };
    for (factor, by) in [(1.0, -8.0), (1.0, -1000.0), (-1.0, 0.0), (7.0, -70.0)] {
        let named = moved(factor, by);
        assert_eq!(places(&named), [30, 70], "{factor} {by}");
        let change = named.changes[0];
        let StepSize::Difference(step) = change.step else { panic!("a difference: {change:?}") };
        assert!((step / factor - 7.0).abs() < 1.0, "{step}");
        assert!(change.interval.is_some_and(|interval| interval.contains(7.0 * factor)), "{change:?}");
        assert!(
            ((named.levels[0] - by) / factor - 5.0).abs() < 1.0
                && (named.noise - factor.abs()).abs() < 0.4 * factor.abs()
        );
    }
}

#[test]
fn a_zero_among_values_does_not_keep_them_from_being_judged() {
    let mut values = vec![3.0; 40];
    values[20..].fill(9.0);
    values[5] = 0.0;
    let named = found(&values);
    assert_eq!(places(&named), [20]);
    let StepSize::Difference(step) = named.changes[0].step else { panic!("a difference: {named:?}") };
    assert!((step - 6.0).abs() < 0.5, "{step}");
}

#[test]
fn outliers_in_a_row_are_no_level_in_many_values() {
    let mut values = series(5, 400, Slow::Nothing, &[]);
    values[100..103].iter_mut().for_each(|value| *value *= 1.5);
    assert!(places(&found(&values)).is_empty());
    values[103..110].iter_mut().for_each(|value| *value *= 1.5);
    assert_eq!(places(&found(&values)), [100, 110]);
}

#[test]
fn steps_below_the_least_are_not_named() {
    let values = series(6, 200, Slow::Nothing, &[(60, 4.0), (120, -8.0)]);
    assert_eq!(places(&found(&values)), [60, 120]);
    let options = SeriesOptions { least: 0.05, ..SeriesOptions::default() };
    assert_eq!(places(&noisy(&values, &options).expect("values are finite")), [120]);
}

#[test]
fn modes_are_seen_although_a_stretch_is_cut_wrongly() {
    let mut pcg = Pcg::new(82);
    let mut values = Vec::new();
    for stretch in 0..14 {
        // The fifth stretch lies midway, as if half of its versions ran in either mode.
        let level = if stretch == 4 {
            1.05
        } else if stretch % 2 == 0 {
            1.0
        } else {
            1.1
        };
        values.extend((0..20).map(|_| 200.0 * level * (0.004 * normal(&mut pcg)).exp()));
    }
    let named = found(&values);
    assert!(named.changes.is_empty(), "{named:?}");
    let [low, high] = named.modes.expect("two modes");
    assert!((low - 200.0).abs() < 2.0 && (high - 220.0).abs() < 2.0, "{low} {high}");
}
