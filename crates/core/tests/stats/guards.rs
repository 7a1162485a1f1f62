//! Single constants and corrections, each with a case in which it decides.

use scruple_core::history::find_changes;
use scruple_core::judge::limits::{self, Kept, LimitedValue};
use scruple_core::judge::{Pair, compare_pairs};
use scruple_core::limit::Limit;
use scruple_core::metric::metric;
use scruple_core::run::Terms;
use scruple_core::verdict::Verdict;
use scruple_stats::median_interval::median_interval;
use scruple_stats::paired;
use scruple_stats::rng::Pcg;

use crate::noise::normal;
use crate::range::{range, read, same};

#[test]
fn with_fewer_than_ten_blocks_the_interval_needs_no_symmetry() {
    let arm: Vec<f64> = (0..12).map(|i| 100.0 * (0.01 * f64::from(i)).exp()).collect();
    for n in 6..=9 {
        let found = paired::effect(&[100.0; 9][..n], &arm[..n], 0.95).expect("enough blocks");
        let logs: Vec<f64> = arm[..n].iter().map(|reading| (reading / 100.0).ln()).collect();
        let order = median_interval(&logs, 0.95).expect("enough blocks");
        assert!((found.interval.low.ln() - order.low).abs() < 1e-12, "{n}: {found:?}");
        assert!((found.interval.high.ln() - order.high).abs() < 1e-12, "{n}: {found:?}");
    }
    let found = paired::effect(&[100.0; 12], &arm, 0.95).expect("enough blocks");
    assert!(found.method.contains("signed ranks"), "{found:?}");
}

#[test]
fn several_looks_are_judged_at_the_level_of_one_look() {
    let mut history = range(2);
    let mut pcg = Pcg::new(3);
    for version in 0..2 {
        let readings: Vec<f64> = (0..40).map(|_| 1e6 * (0.01 * normal(&mut pcg)).exp()).collect();
        read(&mut history, "app", "time.cpu", version, &readings, &(0..40).collect::<Vec<u32>>());
    }
    let level = |looks: u32| {
        let terms = Terms { looks, ..Terms::default() };
        let [reference, arm] = &history.run.arms[..] else { panic!("two versions") };
        let pair = Pair::new(reference, arm, true);
        let judged = compare_pairs(&[pair], &terms);
        judged[0].comparison.interval().expect("forty blocks").level
    };
    assert!((0.95..0.96).contains(&level(1)), "{}", level(1));
    assert!((0.99..0.995).contains(&level(5)), "{}", level(5));
}

#[test]
fn looks_that_end_the_timing_pass_do_not_widen_intervals_of_peak_memory() {
    let mut history = range(2);
    for (version, peaks) in [[1.565e6, 1.614e6, 1.671e6], [2.310e6, 2.445e6, 2.454e6]].iter().enumerate() {
        read(&mut history, "app", "memory.peak", version, peaks, &[0, 1, 2]);
    }
    let [reference, arm] = &history.run.arms[..] else { panic!("two versions") };
    let pair = Pair::new(reference, arm, true);
    let judged = compare_pairs(&[pair], &Terms { looks: 9, ..Terms::default() });
    assert_eq!(judged[0].comparison.verdict, Verdict::Different, "{judged:?}");
}

#[test]
fn versions_are_not_given_a_change_of_peak_memory_that_identical_programs_have() {
    let peaks =
        |more: f64| -> Vec<f64> { (0..6).map(|page| 2e6 + more + 4096.0 * f64::from(page)).collect() };
    let found = |more: f64| {
        let mut history = range(6);
        for version in 0..6 {
            let own = if version < 3 { 0.0 } else { more };
            read(&mut history, "app", "memory.peak", version, &peaks(own), &(0..6).collect::<Vec<u32>>());
        }
        find_changes(&history).series.remove(0)
    };
    let near = found(250_000.0);
    assert!(near.changes.is_empty() && near.cannot.is_none(), "{near:?}");
    assert!(!near.whole.as_ref().expect("two ends").surely, "{near:?}");
    let far = found(900_000.0);
    assert_eq!(far.changes.iter().map(|change| change.at).collect::<Vec<usize>>(), [3], "{far:?}");
    assert!(far.whole.as_ref().expect("two ends").surely, "{far:?}");
}

#[test]
fn a_limit_across_which_the_interval_lies_is_neither_kept_nor_exceeded() {
    let limit = Limit::parse("time.cpu<5ms").expect("a limit");
    let held = |low: f64, high: f64| {
        let amount = LimitedValue { value: (low + high) / 2.0, bounds: Ok((low * 1e6, high * 1e6)) };
        limits::check(&limit, "app", metric("time.cpu").expect("declared"), Some(amount), None, None).kept
    };
    assert_eq!([held(4.0, 5.0), held(4.0, 6.0), held(5.1, 6.0)], [Kept::Yes, Kept::CantTell, Kept::No]);
}

#[test]
fn a_percentage_without_a_sign_is_no_limit() {
    assert!(Limit::parse("time.cpu<103%").is_err_and(|why| why.contains("no sign")));
    assert!(Limit::parse("time.cpu<+3%").is_ok());
}

#[test]
fn peak_memory_that_differs_by_less_than_page_faults_move_it_is_not_different() {
    let mut history = range(2);
    let blocks: Vec<u32> = (0..4).collect();
    read(
        &mut history,
        "app",
        "memory.peak",
        0,
        &[8_000_000.0, 8_004_096.0, 8_000_000.0, 8_004_096.0],
        &blocks,
    );
    read(
        &mut history,
        "app",
        "memory.peak",
        1,
        &[8_200_704.0, 8_204_800.0, 8_204_800.0, 8_200_704.0],
        &blocks,
    );
    let [reference, arm] = &history.run.arms[..] else { panic!("two versions") };
    let pair = Pair::new(reference, arm, true);
    let judged = compare_pairs(&[pair], &Terms { margin: 0.01, ..Terms::default() });
    assert_eq!(judged[0].comparison.verdict, Verdict::Same, "{judged:?}");
    assert!(judged[0].comparison.margin > 0.03, "{judged:?}");
}

#[test]
fn readings_of_the_same_binary_in_one_block_are_averaged() {
    let blocks: Vec<u32> = (0..12).collect();
    let mut pcg = Pcg::new(5);
    let mut readings = |level: f64| -> Vec<f64> {
        (0..12).map(|_| level * 1e8 * (0.001 * normal(&mut pcg)).exp()).collect()
    };
    let (low, high) = (readings(1.0), readings(1.2));
    let mut history = range(3);
    read(&mut history, "app", "time.cpu", 0, &low, &blocks);
    read(&mut history, "app", "time.cpu", 1, &high, &blocks);
    same(&mut history, 1, 0);
    read(&mut history, "app", "time.cpu", 2, &readings(2.0), &blocks);
    let series = find_changes(&history).series.remove(0);
    let [change] = series.changes.as_slice() else { panic!("{:?}", series.changes) };
    // The level of the two versions is about 1.1, so the ratio is about 1.82. Against the first alone it would be 2.
    assert!((1.75..1.9).contains(&change.ratio), "{change:?}");
}

#[test]
fn a_version_with_the_artefacts_of_the_one_before_it_is_not_blamed_though_neither_was_weighed() {
    let mut history = range(4);
    read(&mut history, "app", "malloc.bytes", 0, &[1e6, 1e6], &[0, 1]);
    read(&mut history, "app", "malloc.bytes", 3, &[2e6, 2e6], &[0, 1]);
    same(&mut history, 2, 1);
    let series = find_changes(&history).series.remove(0);
    let [change] = series.changes.as_slice() else { panic!("{:?}", series.changes) };
    assert_eq!(change.set, [1, 3], "{change:?}");
}
