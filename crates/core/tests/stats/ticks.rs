//! Series of values in whole ticks of a clock. A tick is at least a tenth of the values.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use scruple_core::history::find_changes;
use scruple_stats::changepoint::{SeriesOptions, noisy};
use scruple_stats::rng::Pcg;

use crate::noise::normal;
use crate::range::{range, read};

/// Ten milliseconds.
const TICK: f64 = 1e7;

/// `n` values of one or two ticks. The share `share` of the values before the middle has two, and the share `then`
/// after it.
fn two_ticks(n: usize, share: f64, then: f64, pcg: &mut Pcg) -> Vec<f64> {
    let share = |place: usize| if place * 2 < n { share } else { then };
    (0..n).map(|place| if pcg.unit() < share(place) { 2.0 * TICK } else { TICK }).collect()
}

/// The number of series that are given a change.
fn given(tries: u64, error: f64, series: impl Fn(&mut Pcg) -> Vec<f64>) -> usize {
    let options = SeriesOptions { error, ..SeriesOptions::default() };
    let changed = |number: &u64| {
        let values = series(&mut Pcg::with_stream(70, *number));
        !noisy(&values, &options).expect("enough values").changes.is_empty()
    };
    (0..tries).filter(changed).count()
}

#[test]
fn ticks_that_fall_at_random_are_seldom_a_change() {
    let tries = 400;
    for (error, n) in [(0.05, 14), (0.05, 20), (0.01, 30)] {
        let wrong = given(tries, error, |pcg| two_ticks(n, 0.5, 0.5, pcg));
        let slack = 3.0 * (error * (1.0 - error) / tries as f64).sqrt();
        assert!(wrong as f64 / tries as f64 <= error + slack, "{error}, {n}: {wrong}");
    }
}

#[test]
fn a_change_between_ticks_is_found() {
    let found = given(100, 0.01, |pcg| two_ticks(30, 0.1, 0.9, pcg));
    assert!(found >= 90, "{found}");
    // Values without any noise need no more than a change that a few of them confirm.
    assert_eq!(given(1, 0.01, |pcg| two_ticks(8, 0.0, 1.0, pcg)), 1);
}

#[test]
fn a_series_of_the_user_is_given_a_false_change_in_one_of_a_hundred() {
    let wrong = (0..300)
        .filter(|number| {
            let mut pcg = Pcg::with_stream(71, *number);
            let mut history = range(20);
            history.run.provenance.tool = Some("lines 1".to_owned());
            for version in 0..20 {
                let value = TICK * (0.02 * normal(&mut pcg)).exp();
                read(&mut history, "app", "time.cpu", version, &[value], &[version as u32]);
            }
            !find_changes(&history).series[0].changes.is_empty()
        })
        .count();
    assert!(wrong <= 8, "{wrong}");
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn ticks_at_ten_times_the_size() {
    let percent =
        |error, n, share, then| given(1000, error, |pcg| two_ticks(n, share, then, pcg)) as f64 / 10.0;
    for n in [10, 14, 20, 30, 60] {
        for share in [0.5, 0.3, 0.1] {
            let wrong = [0.01, 0.05].map(|error| percent(error, n, share, share));
            println!("{n} values, {share} of them two ticks: {wrong:?} % given a change at 0.01 and 0.05");
        }
        let found = percent(0.01, n, 0.1, 0.9);
        println!("{n} values, from 0.1 to 0.9 of them two ticks: {found} % found");
    }
}
