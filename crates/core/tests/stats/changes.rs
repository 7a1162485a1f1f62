//! Change points in series whose changes are known by construction.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use scruple_stats::changepoint::{FoundChanges, SeriesOptions, StepSize, exact, noisy};
use scruple_stats::paired::Why;
use scruple_stats::rng::Pcg;

use crate::noise::normal;

/// The kinds of noise that series of real measurements show.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NoiseKind {
    Normal,
    Skewed,
    HeavyTails,
    Spikes,
    Bimodal,
    Drifting,
}

const KINDS: [NoiseKind; 6] = [
    NoiseKind::Normal,
    NoiseKind::Skewed,
    NoiseKind::HeavyTails,
    NoiseKind::Spikes,
    NoiseKind::Bimodal,
    NoiseKind::Drifting,
];

/// Noise with a standard deviation of about 1.
fn noise(pcg: &mut Pcg, kind: NoiseKind, n: usize) -> Vec<f64> {
    let mut state = normal(pcg);
    let mut one = || match kind {
        NoiseKind::Normal => normal(pcg),
        NoiseKind::Skewed => -(1.0 - pcg.unit()).ln() - 1.0,
        NoiseKind::HeavyTails => {
            let squares: f64 = (0..3).map(|_| normal(pcg).powi(2)).sum();
            normal(pcg) / (squares / 3.0).sqrt() / 3_f64.sqrt()
        }
        NoiseKind::Spikes => normal(pcg) + if pcg.unit() < 0.03 { 5.0 + 10.0 * pcg.unit() } else { 0.0 },
        NoiseKind::Bimodal => 0.6 * normal(pcg) + if pcg.unit() < 0.3 { 1.5 } else { 0.0 },
        NoiseKind::Drifting => {
            state = 0.6 * state + 0.8 * normal(pcg);
            state
        }
    };
    (0..n).map(|_| one()).collect()
}

/// A series with `shifts` changes of `smallest` to `largest` (as log ratios), and their places.
fn series(
    pcg: &mut Pcg,
    kind: NoiseKind,
    n: usize,
    shifts: usize,
    smallest: f64,
    largest: f64,
) -> (Vec<f64>, Vec<usize>) {
    let scale = 0.01 + 0.04 * pcg.unit();
    let gap = n / 10;
    let mut places: Vec<usize> = Vec::new();
    while places.len() < shifts {
        let place = gap / 2 + pcg.below((n - gap) as u32) as usize;
        if places.iter().all(|&other| place.abs_diff(other) >= gap) {
            places.push(place);
        }
    }
    places.sort_unstable();
    let mut logs: Vec<f64> = noise(pcg, kind, n).into_iter().map(|z| scale * z).collect();
    for &place in &places {
        let size = smallest * (largest / smallest).powf(pcg.unit());
        let step = if pcg.below(2) == 0 { size } else { -size };
        logs[place..].iter_mut().for_each(|v| *v += step);
    }
    (logs.into_iter().map(|v| 100.0 * v.exp()).collect(), places)
}

#[derive(Default)]
struct Score {
    found: usize,
    hits: usize,
    truth: usize,
    quiet: usize,
    covered: usize,
}

impl Score {
    fn add(&mut self, truth: &[usize], found: &FoundChanges, tolerance: usize) {
        let mut open: Vec<usize> = truth.to_vec();
        for change in &found.changes {
            if let Some(i) = open.iter().position(|&t| change.at.abs_diff(t) <= tolerance) {
                let place = open.remove(i);
                self.hits += 1;
                self.covered += usize::from(change.first <= place && place <= change.last);
            }
        }
        self.found += found.changes.len();
        self.truth += truth.len();
        self.quiet += if truth.is_empty() { found.changes.len() } else { 0 };
    }

    fn f1(&self) -> f64 {
        2.0 * self.hits as f64 / (self.found + self.truth) as f64
    }
}

/// Scores the search on series like those on which the methods in the literature were compared: long ones with small
/// shifts and short ones with large shifts. A third of the series has no shift.
fn evaluate(seed: u64, count: u64, n: usize, range: (f64, f64), tolerance: usize) -> Score {
    let mut score = Score::default();
    for number in 0..count {
        let mut pcg = Pcg::with_stream(seed, number);
        let kind = KINDS[(number % 6) as usize];
        let shifts = if number % 3 == 2 { 0 } else { 1 + pcg.below(3) as usize };
        let (values, truth) = series(&mut pcg, kind, n, shifts, range.0, range.1);
        let found = noisy(&values, &SeriesOptions::default()).expect("values are positive");
        score.add(&truth, &found, tolerance);
    }
    score
}

fn known_series(long: u64, short: u64) {
    for (name, count, n, range, least) in
        [("long", long, 1000, (0.01, 0.2), [0.82, 0.89]), ("short", short, 60, (0.02, 0.4), [0.81, 0.82])]
    {
        for (tolerance, least) in [3, 10].into_iter().zip(least) {
            let score = evaluate(2, count, n, range, tolerance);
            let quiet = score.quiet as f64 / (count as f64 / 3.0);
            let covered = score.covered as f64 / score.hits as f64;
            println!(
                "{name} series, within {tolerance}: F1 {:.3}, {quiet:.3} false on quiet ones",
                score.f1()
            );
            println!("  the true place is in the set of {:.1} % of those found", 100.0 * covered);
            assert!(
                score.f1() >= least && quiet <= 0.06 && covered >= 0.9,
                "{name}, {tolerance}: {}",
                score.f1()
            );
        }
    }
}

#[test]
fn changes_of_known_series_are_found_where_they_are() {
    known_series(9, 120);
}

fn without_a_change(long: u64, short: u64) {
    for kind in KINDS {
        for (n, tries) in [(30, short), (60, short), (200, short / 4), (1000, long)] {
            let wrong = (0..tries)
                .filter(|&number| {
                    let (values, _) = series(&mut Pcg::with_stream(9, number), kind, n, 0, 0.1, 0.1);
                    noisy(&values, &SeriesOptions::default()).is_ok_and(|found| !found.changes.is_empty())
                })
                .count() as f64
                / tries as f64;
            println!("{kind:?} noise, {n} values without a change: one found in {:.1} %", 100.0 * wrong);
            // In few values, drift cannot be distinguished from changes. For other noise the bound is twice the stated
            // error.
            let bound = if kind == NoiseKind::Drifting && n < 100 { 0.06 } else { 0.02 };
            let slack = 3.0 * (bound * (1.0 - bound) / tries as f64).sqrt();
            assert!(wrong <= bound + slack, "{kind:?}, {n}: {wrong}");
        }
    }
}

#[test]
fn series_without_a_change_are_seldom_given_one() {
    without_a_change(2, 100);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn change_points_at_ten_times_the_size() {
    known_series(240, 1500);
    without_a_change(200, 2000);
}

/// The number of series of `n` values, among `tries`, in which a step of `size` standard deviations is found within one
/// value of its place.
fn short(n: usize, size: f64, tries: u64) -> usize {
    let hit = |number: &u64| {
        let mut pcg = Pcg::with_stream(70, *number);
        let place = 3 + pcg.below(n as u32 - 5) as usize;
        let step = |i: usize| if i < place { 0.0 } else { 0.01 * size };
        let values: Vec<f64> = (0..n).map(|i| 100.0 * (0.01 * normal(&mut pcg) + step(i)).exp()).collect();
        found(&values).changes.iter().any(|change| change.at.abs_diff(place) <= 1)
    };
    (0..tries).filter(hit).count()
}

#[test]
fn large_steps_are_found_in_a_dozen_values() {
    for (n, size, least) in [(10, 7.0, 52), (14, 5.0, 45), (20, 5.0, 53)] {
        let hits = short(n, size, 60);
        println!("{n} values, a step of {size} standard deviations: {hits} of 60 found");
        assert!(hits >= least, "{n}, {size}: {hits}");
    }
}

/// The number of series without a change, among `tries`, that are given one. Neighbouring values have the correlation
/// `memory`.
fn drifting(n: usize, memory: f64, tries: u64) -> usize {
    let given = |number: &u64| {
        let mut pcg = Pcg::with_stream(71, *number);
        let mut state = normal(&mut pcg);
        let mut next = || {
            state = memory * state + (1.0 - memory * memory).sqrt() * normal(&mut pcg);
            100.0 * (0.02 * state).exp()
        };
        let values: Vec<f64> = (0..n).map(|_| next()).collect();
        !found(&values).changes.is_empty()
    };
    (0..tries).filter(given).count()
}

#[test]
fn a_strong_drift_is_seldom_taken_for_changes() {
    let wrong = drifting(200, 0.9, 60);
    assert!(wrong <= 5, "{wrong}");
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn few_values_and_strong_drift_at_ten_times_the_size() {
    for n in [10, 14, 20, 30] {
        let row = [3.0, 4.0, 5.0, 7.0].map(|size| short(n, size, 1000) as f64 / 10.0);
        println!("{n} values, a step of 3, 4, 5 and 7 standard deviations: {row:?} % found");
        let row = [0.0, 0.3, 0.6].map(|memory| drifting(n, memory, 1000) as f64 / 10.0);
        println!("{n} values, correlated by 0, 0.3 and 0.6: {row:?} % given a change");
    }
    for n in [200, 500, 1000] {
        let row = [0.7, 0.8, 0.9].map(|memory| drifting(n, memory, 200) as f64 / 2.0);
        println!("{n} values, correlated by 0.7, 0.8 and 0.9: {row:?} % given a change");
    }
}

fn found(values: &[f64]) -> FoundChanges {
    noisy(values, &SeriesOptions::default()).expect("values are positive")
}

/// Ten values at each level, with 1 % of noise.
fn steps(levels: &[f64]) -> Vec<f64> {
    let mut pcg = Pcg::new(21);
    levels
        .iter()
        .flat_map(|&level| [level; 10])
        .map(|level| level * (0.01 * normal(&mut pcg)).exp())
        .collect()
}

#[test]
fn a_clear_step_is_named_with_its_size_and_place() {
    let series = found(&steps(&[100.0, 120.0]));
    let [change] = series.changes.as_slice() else { panic!("one change: {series:?}") };
    assert_eq!((change.at, change.first, change.last), (10, 10, 10));
    assert!(change.interval.is_some_and(|interval| interval.contains(1.2)), "{change:?}");
    assert!(change.p < 1e-6 && series.levels.len() == 2);
}

#[test]
fn an_unclear_step_has_several_places() {
    let mut pcg = Pcg::new(22);
    let level = |i: usize| if i < 50 { 100.0 } else { 102.0 };
    let values: Vec<f64> = (0..100).map(|i| level(i) * (0.015 * normal(&mut pcg)).exp()).collect();
    let series = found(&values);
    let [change] = series.changes.as_slice() else { panic!("one change: {series:?}") };
    assert!(change.first < change.last && change.first <= 50 && change.last >= 50, "{change:?}");
}

#[test]
fn one_or_two_outliers_are_not_a_level() {
    for run in [1, 2] {
        let mut values = steps(&[100.0, 100.0, 100.0]);
        values[15..15 + run].fill(300.0);
        assert_eq!(found(&values).changes, [], "{run}");
    }
}

#[test]
fn a_rise_and_a_fall_are_two_changes() {
    let places: Vec<usize> = found(&steps(&[100.0, 150.0, 100.0])).changes.iter().map(|c| c.at).collect();
    assert_eq!(places, [10, 20]);
}

#[test]
fn a_series_that_goes_back_and_forth_has_modes_and_no_changes() {
    let mut pcg = Pcg::new(23);
    let mut values = Vec::new();
    for stretch in 0..12 {
        let level = if stretch % 2 == 0 { 530.0 } else { 20_700.0 };
        values.extend((0..4 + pcg.below(9)).map(|_| level * (0.01 * normal(&mut pcg)).exp()));
    }
    let series = found(&values);
    assert_eq!(series.changes, []);
    let [low, high] = series.modes.expect("two modes");
    assert!((low - 530.0).abs() < 20.0 && (high - 20_700.0).abs() < 600.0);
}

#[test]
fn values_that_are_mostly_equal_do_not_make_every_tick_a_change() {
    let mut pcg = Pcg::new(24);
    let ticking: Vec<f64> = (0..300).map(|_| if pcg.unit() < 0.2 { 101.0 } else { 100.0 }).collect();
    assert_eq!(found(&ticking).changes, []);
    assert_eq!(found(&[5.0; 40]).changes, []);
    let mut stepped = vec![5.0; 40];
    stepped[20..].fill(6.0);
    assert_eq!(found(&stepped).changes.len(), 1);
}

#[test]
fn a_change_far_below_the_resolution_is_not_reported() {
    let mut values = [100.0; 40];
    values[20..].fill(110.0);
    let coarse = SeriesOptions { resolution: 200.0, ..SeriesOptions::default() };
    assert_eq!(noisy(&values, &coarse).map(|s| s.changes.len()), Ok(0));
    let fine = SeriesOptions { resolution: 0.1, ..SeriesOptions::default() };
    assert_eq!(noisy(&values, &fine).map(|s| s.changes.len()), Ok(1));
}

#[test]
fn versions_weighed_in_turns_show_smaller_changes() {
    let in_turns = SeriesOptions { drift: Some(0.0), ..SeriesOptions::default() };
    let (mut known, mut estimated) = (0, 0);
    for number in 0..60 {
        let mut pcg = Pcg::with_stream(31, number);
        let level = |i: usize| if i < 20 { 100.0 } else { 102.0 };
        let values: Vec<f64> = (0..40).map(|i| level(i) * (0.012 * normal(&mut pcg)).exp()).collect();
        known += noisy(&values, &in_turns).map_or(0, |series| series.changes.len());
        estimated += found(&values).changes.len();
    }
    assert!(known > estimated && known >= 40, "{known}, {estimated}");
}

#[test]
fn values_known_to_be_uncertain_are_believed_less() {
    let values = steps(&[100.0, 104.0, 104.0, 104.0]);
    let errors = [0.05; 40];
    let uncertain = SeriesOptions { errors: &errors, ..SeriesOptions::default() };
    assert_eq!(noisy(&values, &uncertain).map(|series| series.changes.len()), Ok(0));
    assert_eq!(found(&values).changes.len(), 1);
    let few = SeriesOptions { errors: &errors[1..], ..SeriesOptions::default() };
    assert_eq!(noisy(&values, &few), Err(Why::Unpaired { reference: 40, arm: 39 }));
}

#[test]
fn the_unit_of_a_series_does_not_matter() {
    let values = steps(&[100.0, 120.0, 115.0]);
    let scaled: Vec<f64> = values.iter().map(|v| v * 1e6).collect();
    let places = |series: FoundChanges| {
        series.changes.into_iter().map(|c| (c.at, c.first, c.last)).collect::<Vec<_>>()
    };
    assert_eq!(places(found(&values)), places(found(&scaled)));
}

#[test]
fn series_that_say_nothing_say_why() {
    let options = SeriesOptions::default();
    assert_eq!(noisy(&[1.0; 5], &options), Err(Why::TooFew { have: 5, need: 6 }));
    assert_eq!(noisy(&[1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0], &options), Err(Why::NotFinite));
}

#[test]
fn any_change_of_an_exact_metric_is_a_change() {
    let changes = exact(&[100.0, 100.0, 101.0, 101.0, 50.0]);
    assert_eq!(
        changes.iter().map(|c| (c.at, c.step)).collect::<Vec<_>>(),
        [(2, StepSize::Ratio(1.01)), (4, StepSize::Ratio(50.0 / 101.0))]
    );
    assert!(exact(&[]).is_empty() && exact(&[1.0]).is_empty());
}

#[test]
fn a_drift_in_few_values_is_seldom_taken_for_changes() {
    let wrong = drifting(59, 0.6, 400);
    assert!(wrong <= 5, "{wrong}");
}
