//! Change points in series with a quiet and a noisy part, such as a count that was zero for months.

use scruple_stats::changepoint::{ChangePoint, SeriesOptions, StepSize, noisy};
use scruple_stats::rng::Pcg;

use crate::noise::normal;

/// The changes that are found in sixty series, whose values at each place `value` draws.
fn changes(n: usize, value: impl Fn(&mut Pcg, usize) -> f64) -> Vec<ChangePoint> {
    let found = |seed: u64| {
        let mut pcg = Pcg::with_stream(91, seed);
        let values: Vec<f64> = (0..n).map(|place| value(&mut pcg, place)).collect();
        noisy(&values, &SeriesOptions::default()).expect("values are finite").changes
    };
    (0..60).flat_map(found).collect()
}

/// Normal noise about a level, with a relative standard deviation.
fn about(pcg: &mut Pcg, level: f64, deviation: f64) -> f64 {
    level * (1.0 + deviation * normal(pcg))
}

fn at(changes: &[ChangePoint], place: usize) -> usize {
    changes.iter().filter(|change| change.at == place).count()
}

/// The number of series, among 200, that are given a change although only their noise grows by `factor`, after the `share`
/// of the `n` values.
fn given_a_change(n: usize, factor: f64, share: f64) -> usize {
    let given = |seed: &u64| {
        let mut pcg = Pcg::with_stream(92, *seed);
        let deviation = |place: usize| if (place as f64) < share * n as f64 { 0.03 / factor } else { 0.03 };
        let values: Vec<f64> = (0..n).map(|place| about(&mut pcg, 100.0, deviation(place))).collect();
        !noisy(&values, &SeriesOptions::default()).expect("values are finite").changes.is_empty()
    };
    (0..200).filter(given).count()
}

#[test]
fn a_noisy_part_beside_a_quiet_one_is_not_cut_into_steps() {
    // Without parts of their own noise, 15 to 30 of the 200 series are.
    for (n, factor, share) in
        [(30, 3.0, 0.5), (30, 10.0, 0.5), (60, 3.0, 0.5), (60, 3.0, 0.75), (100, 3.0, 0.75)]
    {
        let wrong = given_a_change(n, factor, share);
        assert!(wrong <= 10, "{n} values, {factor} times: {wrong}");
    }
    for factor in [3.0, 10.0, 30.0] {
        let wrong = given_a_change(300, factor, 0.5);
        assert!(wrong <= 6, "{factor} times: {wrong}");
    }
}

#[test]
fn a_step_into_noise_is_found_at_its_place() {
    for (before, deviation) in [(0.0, 0.01), (0.0, 0.1), (4.5, 0.01)] {
        let found = changes(50, |pcg, place| if place < 25 { before } else { about(pcg, 5.0, deviation) });
        let hits = at(&found, 25);
        assert!(hits >= 57 && found.len() - hits <= 6, "{before}: {hits} of {}", found.len());
        // The same backwards.
        let found = changes(50, |pcg, place| if place >= 25 { before } else { about(pcg, 5.0, deviation) });
        let hits = at(&found, 25);
        assert!(hits >= 57 && found.len() - hits <= 6, "{before}, after: {hits} of {}", found.len());
    }
    for [one, other] in [[0.001, 0.03], [0.03, 0.003]] {
        let found = changes(100, |pcg, place| match place < 50 {
            true => about(pcg, 100.0, one),
            false => about(pcg, 120.0, other),
        });
        let hits = at(&found, 50);
        assert!(hits >= 55 && found.len() - hits <= 6, "{one}: {hits} of {}", found.len());
    }
}

#[test]
fn every_named_step_has_a_direction() {
    let found = changes(50, |pcg, place| if place < 25 { 0.0 } else { 5.0 + 0.1 * pcg.unit() });
    let known = |change: &&ChangePoint| {
        let nothing = if matches!(change.step, StepSize::Ratio(_)) { 1.0 } else { 0.0 };
        change.interval.is_some_and(|interval| !interval.contains(nothing))
    };
    assert_eq!(found.iter().filter(known).count(), found.len());
}
