//! Values that were taken one after another: build times, which are not judged, and the user's own series.

use scruple_core::history::{ChangeForm, Series};
use scruple_stats::changepoint::StepSize;
use scruple_stats::rng::Pcg;

use crate::histories::{CPU, building, cpu, forms, only};
use crate::noise::normal;
use crate::range::{range, read};

#[test]
fn a_step_of_the_machine_between_single_builds_is_not_attributed_to_a_version() {
    for seed in 0..20 {
        let mut history = cpu(&[1.0; 30], 12, 0.01, seed);
        let mut pcg = Pcg::new(seed);
        for version in 0..30 {
            // Other work begins after a third of the builds, and more of it after two thirds.
            let load = [1.0, 1.6, 2.4][version / 10] * (0.02 * normal(&mut pcg)).exp();
            read(&mut history, "parse", "build.time", version, &[load * 1e9], &[0]);
        }
        let series = building(&history);
        assert!(series.changes.is_empty() && series.borders.is_empty(), "{:?}", series.changes);
        assert_eq!(series.points.len(), 30);
        assert!(series.whole.as_ref().is_some_and(|whole| !whole.surely && whole.interval.is_none()));
        let why = series.cannot.as_deref().unwrap_or_default();
        assert!(why.contains("built once") && why.ends_with("use --builds 6"), "{why}");
    }
}

#[test]
fn only_a_series_of_ones_own_is_judged_by_values_that_follow_each_other() {
    let mut history = range(40);
    let mut pcg = Pcg::new(15);
    for version in 0..40 {
        let level = if version < 25 { 1.0 } else { 1.2 };
        let blocks: Vec<u32> = (0..5).map(|i| version as u32 * 5 + i).collect();
        let readings: Vec<f64> = (0..5).map(|_| CPU * level * (0.02 * normal(&mut pcg)).exp()).collect();
        read(&mut history, "parse", "time.cpu", version, &readings, &blocks);
    }
    let series = only(&history);
    assert!(series.changes.is_empty() && series.whole.is_some_and(|whole| !whole.surely));
    assert!(series.cannot.is_some_and(|why| why.contains("one after another")));
    history.run.provenance.tool = Some("CSV".to_owned());
    assert_eq!(forms(&only(&history)), [(ChangeForm::Step, 25)]);
    history.versions.truncate(5);
    history.run.arms.truncate(5);
    let series = only(&history);
    assert!(series.changes.is_empty() && series.cannot.is_some_and(|why| why.contains("values are too few")));
}

#[test]
fn a_series_that_crosses_zero_is_judged_by_differences() {
    let mut history = range(40);
    history.run.provenance.tool = Some("CSV".to_owned());
    let mut pcg = Pcg::new(23);
    for version in 0..40 {
        let level = if version < 15 { -1.0 } else { 2.0 };
        read(&mut history, "drift", "own", version, &[level + 0.2 * normal(&mut pcg)], &[version as u32]);
    }
    let series = only(&history);
    assert_eq!(forms(&series), [(ChangeForm::Step, 15)]);
    let change = &series.changes[0];
    assert!(change.ratio == f64::INFINITY && change.better == Some(false), "{change:?}");
    assert!(
        change.interval.is_some_and(|interval| interval.contains(3.0) && interval.low > 2.0),
        "{change:?}"
    );
    assert!((change.to - change.from - 3.0).abs() < 0.3);
    assert!(series.whole.is_some_and(|whole| whole.surely && whole.ratio == f64::INFINITY));
    // Scruple's own readings are not judged as a series of values in time, even if they are negative.
    history.run.provenance.tool = None;
    assert!(only(&history).changes.is_empty());
}

/// A user's own series with these values.
fn own_series(values: impl Iterator<Item = f64>) -> Series {
    let values: Vec<f64> = values.collect();
    let mut history = range(values.len());
    history.run.provenance.tool = Some("CSV".to_owned());
    for (version, value) in values.into_iter().enumerate() {
        read(&mut history, "own", "own", version, &[value], &[version as u32]);
    }
    only(&history)
}

#[test]
fn the_effect_over_the_range_includes_a_slow_drift() {
    let mut pcg = Pcg::new(5);
    let mut noisy = |version: usize, level: f64| {
        100.0 * level * (1.0 + 0.1 * version as f64 / 200.0) * (0.01 * normal(&mut pcg)).exp()
    };
    let series = own_series((0..200).map(|version| noisy(version, if version < 120 { 1.0 } else { 1.08 })));
    assert_eq!(forms(&series), [(ChangeForm::Step, 120)]);
    assert!((series.changes[0].ratio / 1.08 - 1.0).abs() < 0.01, "{:?}", series.changes);
    assert!((series.changes[0].from / 106.0 - 1.0).abs() < 0.01, "{:?}", series.changes);
    let whole = series.whole.as_ref().expect("an effect");
    assert!(
        (whole.ratio / 1.188 - 1.0).abs() < 0.01 && whole.surely && whole.interval.is_none(),
        "{whole:?}"
    );
    let [from, to] = whole.levels.expect("levels");
    assert!((to / from / whole.ratio - 1.0).abs() < 1e-9, "{whole:?}");
    assert!(series.levels.iter().all(|(first, last, _)| first == last) && series.levels.len() == 200);
    let drift = series.slow_drift.and_then(StepSize::ratio).expect("a drift");
    assert!((drift / 1.1 - 1.0).abs() < 0.015, "{drift}");

    let series = own_series((0..200).map(|version| noisy(version, 1.0)));
    let whole = series.whole.as_ref().expect("an effect");
    assert!(
        series.changes.is_empty() && series.slow_drift.is_some(),
        "{:?} {:?}",
        series.changes,
        series.slow_drift
    );
    assert!((whole.ratio / 1.1 - 1.0).abs() < 0.015 && !whole.surely, "{whole:?}");
}

#[test]
fn the_effect_over_the_range_is_that_of_the_levels_it_names() {
    let mut pcg = Pcg::new(8);
    let level = |version: usize| if (20..40).contains(&version) { 1.2 } else { 1.0 };
    let series = own_series((0..60).map(|version| 100.0 * level(version) * (0.02 * normal(&mut pcg)).exp()));
    let whole = series.whole.as_ref().expect("an effect");
    let [from, to] = whole.levels.expect("levels");
    assert!((to / from / whole.ratio - 1.0).abs() < 1e-9, "{whole:?}");
    assert_eq!([from, to], [series.levels[0].2, series.levels[2].2]);
}
