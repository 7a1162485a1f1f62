//! Properties that hold for all readings.

use proptest::prelude::*;
use scruple_core::evidence::Evidence;
use scruple_core::verdict::{Comparison, Verdict, compare_noisy, compare_unpaired};
use scruple_stats::changepoint::{SeriesOptions, noisy};
use scruple_stats::median_interval::median_interval;
use scruple_stats::paired::Why;
use scruple_stats::quantile::{median, quantile, sorted};
use scruple_stats::ranks::{hodges_lehmann, mann_whitney, signed_rank_interval};

fn blocks() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((50.0..200.0_f64, 50.0..200.0_f64), 6..40)
}

fn arms(blocks: &[(f64, f64)]) -> (Vec<f64>, Vec<f64>) {
    blocks.iter().copied().unzip()
}

fn weigh(blocks: &[(f64, f64)], margin: f64) -> Comparison {
    let (reference, arm) = arms(blocks);
    compare_noisy(&reference, &arm, true, margin, 0.95)
}

fn effect(found: &Comparison) -> f64 {
    found.evidence.effect().expect("positive readings have a ratio")
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Whether `wide` is a possible verdict at a wider margin where `narrow` is the verdict at a narrower one.
fn weaker(narrow: Verdict, wide: Verdict) -> bool {
    use Verdict::{CantTell, Different, Same, Small};
    match narrow {
        Different => true,
        Small => matches!(wide, Small | Same),
        CantTell => matches!(wide, CantTell | Same),
        Same => wide == Same,
    }
}

proptest! {
    #[test]
    fn the_unit_of_the_metric_does_not_matter(blocks in blocks(), scale in 1e-6..1e6_f64) {
        let scaled: Vec<(f64, f64)> = blocks.iter().map(|(r, a)| (r * scale, a * scale)).collect();
        let (one, other) = (weigh(&blocks, 0.02), weigh(&scaled, 0.02));
        prop_assert!(near(effect(&one), effect(&other)));
        let (one, other) = (one.interval().expect("six or more"), other.interval().expect("six or more"));
        prop_assert!(near(one.low, other.low) && near(one.high, other.high));
    }

    #[test]
    fn a_faster_machine_in_some_blocks_does_not_matter(blocks in blocks(), speeds in prop::collection::vec(0.1..10.0_f64, 40)) {
        let moved: Vec<(f64, f64)> = blocks.iter().zip(&speeds).map(|((r, a), s)| (r * s, a * s)).collect();
        prop_assert!(near(effect(&weigh(&blocks, 0.02)), effect(&weigh(&moved, 0.02))));
    }

    #[test]
    fn a_median_is_the_quantile_in_the_middle(readings in prop::collection::vec(-1e3..1e3_f64, 1..40)) {
        prop_assert_eq!(median(&readings), quantile(&sorted(&readings), 0.5));
    }

    #[test]
    fn the_order_of_blocks_does_not_matter(mut blocks in blocks(), turn in 0..40_usize) {
        let before = weigh(&blocks, 0.02);
        let by = turn % blocks.len();
        blocks.rotate_left(by);
        blocks.reverse();
        prop_assert_eq!(before, weigh(&blocks, 0.02));
    }

    #[test]
    fn exchanging_the_arms_inverts_the_ratio(blocks in blocks()) {
        let there = weigh(&blocks, 0.02);
        let turned: Vec<(f64, f64)> = blocks.iter().map(|&(r, a)| (a, r)).collect();
        let back = weigh(&turned, 0.02);
        prop_assert!(near(effect(&there), 1.0 / effect(&back)));
        prop_assert_eq!(there.verdict, back.verdict);
    }

    #[test]
    fn same_is_never_said_of_a_wide_interval(blocks in blocks(), margin in 0.0..0.5_f64) {
        let found = weigh(&blocks, margin);
        let interval = found.interval().expect("six or more");
        if interval.high / interval.low > (1.0 + margin).powi(2) * (1.0 + 1e-12) {
            prop_assert_ne!(found.verdict, Verdict::Same);
        }
        if interval.low <= 1.0 && interval.high >= 1.0 {
            prop_assert_ne!(found.verdict, Verdict::Different);
            prop_assert_ne!(found.verdict, Verdict::Small);
        }
    }

    #[test]
    fn a_wider_margin_only_weakens_the_verdict(blocks in blocks(), margin in 0.0..0.15_f64, more in 0.0..0.1_f64) {
        let (narrow, wide) = (weigh(&blocks, margin).verdict, weigh(&blocks, margin + more).verdict);
        prop_assert!(weaker(narrow, wide), "{narrow:?} became {wide:?}");
    }

    #[test]
    fn only_undecided_comparisons_ask_for_more_blocks(blocks in blocks(), margin in 0.0..0.2_f64) {
        let found = weigh(&blocks, margin);
        prop_assert_eq!(found.more_blocks > 0, found.verdict == Verdict::CantTell);
        prop_assert_eq!(found.direction.is_some(), matches!(found.verdict, Verdict::Different | Verdict::Small));
    }

    #[test]
    fn estimates_lie_in_their_intervals(data in prop::collection::vec(-100.0..100.0_f64, 6..60), level in 0.5..0.96_f64) {
        let interval = signed_rank_interval(&data, level).expect("six or more");
        prop_assert!(interval.contains(hodges_lehmann(&data)) && interval.level >= level - 1e-9);
        let interval = median_interval(&data, level).expect("six or more");
        prop_assert!(interval.contains(median(&data)) && interval.level >= level - 1e-9);
        let shift = mann_whitney(&data, &data, level).expect("six or more");
        prop_assert!(shift.interval.contains(shift.estimate) && shift.interval.contains(0.0));
    }

    #[test]
    fn counting_finds_the_order_statistics_that_sorting_finds(data in prop::collection::vec(-5..5_i32, 1..30)) {
        let data: Vec<f64> = data.into_iter().map(|v| f64::from(v) / 3.0).collect();
        let mut walsh = Vec::new();
        for i in 0..data.len() {
            walsh.extend(data[i..].iter().map(|other| data[i] / 2.0 + other / 2.0));
        }
        prop_assert!((hodges_lehmann(&data) - median(&walsh)).abs() < 1e-15);
    }

    #[test]
    fn no_series_makes_it_panic(
        values in prop::collection::vec(any::<f64>().prop_map(f64::abs), 0..30),
        steps in prop::collection::vec(1..4_u8, 6..40),
    ) {
        let _ = noisy(&values, &SeriesOptions::default());
        let coarse: Vec<f64> = steps.into_iter().map(f64::from).collect();
        let series = noisy(&coarse, &SeriesOptions::default()).expect("six or more, all positive");
        prop_assert!(series.changes.iter().all(|c| c.first <= c.at && c.at <= c.last && c.last < coarse.len()));
        prop_assert!(series.changes.len() + 1 == series.levels.len());
    }

    #[test]
    fn no_readings_make_it_panic(
        reference in prop::collection::vec(any::<f64>(), 0..14),
        arm in prop::collection::vec(any::<f64>(), 0..14),
        margin in any::<f64>(),
        level in any::<f64>(),
    ) {
        compare_noisy(&reference, &arm, true, margin, level);
        compare_unpaired(&reference, &arm, true, margin, level);
        let counts = Evidence::of_counts(&reference, &arm, true, 0.0);
        Comparison::of(counts.unwrap_or_else(|| Evidence::of_near_counts(&reference, &arm, 0.0)), true, margin);
    }
}

#[test]
fn a_series_whose_squares_overflow_has_no_change_points() {
    let values = [0.0, 0.0, 0.0, 0.0, 0.0, 4.3e-248, 7.9e161, 8.5e-44, 7.1e213, 2.4e297];
    assert_eq!(noisy(&values, &SeriesOptions::default()).err(), Some(Why::NotFinite));
}
