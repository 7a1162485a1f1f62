//! Verdicts, margins, and the reasons for which no verdict is given.

use crate::entries::entry;
use scruple_core::evidence::{Evidence, Replicate};
use scruple_core::judge::{Judged, headline};
use scruple_core::verdict::{
    Comparison, Direction, Verdict, compare_many, compare_noisy, compare_unpaired, honest_margin,
};
use scruple_stats::paired::{self, Why};
use scruple_stats::rng::Pcg;
use scruple_stats::{power, tare};

/// Pairs whose log ratios are `centre` plus the given offsets.
fn pairs(centre: f64, offsets: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let reference = vec![100.0; offsets.len()];
    (reference, offsets.iter().map(|o| 100.0 * (centre + o).exp()).collect())
}

fn spread(n: usize, width: f64) -> Vec<f64> {
    (0..n).map(|i| width * (2.0 * i as f64 / (n - 1) as f64 - 1.0)).collect()
}

fn weigh(centre: f64, width: f64, n: usize) -> Comparison {
    let (reference, arm) = pairs(centre, &spread(n, width));
    compare_noisy(&reference, &arm, true, 0.02, 0.95)
}

#[test]
fn an_interval_outside_the_margin_is_different() {
    let slower = weigh(0.05, 0.01, 20);
    assert_eq!((slower.verdict, slower.direction), (Verdict::Different, Some(Direction::Worse)));
    let faster = weigh(-0.05, 0.01, 20);
    assert_eq!((faster.verdict, faster.direction), (Verdict::Different, Some(Direction::Better)));
}

#[test]
fn more_is_better_where_the_metric_says_so() {
    let (reference, arm) = pairs(0.05, &spread(20, 0.01));
    let more = compare_noisy(&reference, &arm, false, 0.02, 0.95);
    assert_eq!(more.direction, Some(Direction::Better));
}

#[test]
fn an_interval_inside_the_margin_is_the_same_even_when_it_excludes_none() {
    let same = weigh(0.01, 0.002, 20);
    assert_eq!((same.verdict, same.direction), (Verdict::Same, None));
    assert!(same.interval().is_some_and(|interval| interval.low > 1.0));
}

#[test]
fn an_interval_that_excludes_none_and_crosses_the_margin_is_small() {
    let small = weigh(0.02, 0.02, 20);
    assert_eq!((small.verdict, small.direction), (Verdict::Small, Some(Direction::Worse)));
}

#[test]
fn a_wide_interval_asks_for_about_the_blocks_that_would_tell() {
    let unsure = weigh(0.0, 0.2, 20);
    assert_eq!(unsure.verdict, Verdict::CantTell);
    let half_width =
        unsure.interval().map(|i| (i.high.ln() - i.low.ln()) / 2.0).expect("twenty blocks suffice");
    let expected = 20.0 * (half_width / 0.02_f64.ln_1p()).powi(2) - 20.0;
    assert!((unsure.more_blocks as f64 - expected).abs() <= 1.0, "{unsure:?}, {expected}");
}

#[test]
fn five_blocks_never_have_a_verdict() {
    let few = weigh(1.0, 0.001, 5);
    assert_eq!(few.verdict, Verdict::CantTell);
    assert_eq!((few.interval(), few.more_blocks), (None, 1));
    assert_eq!(few.evidence.why(), Some(Why::TooFew { have: 5, need: 6 }));
    assert!((few.evidence.effect().expect("it points") / std::f64::consts::E - 1.0).abs() < 0.01);
    assert_eq!(weigh(1.0, 0.001, 6).verdict, Verdict::Different);
}

#[test]
fn a_strict_level_asks_for_the_blocks_it_needs() {
    let (reference, arm) = pairs(1.0, &spread(7, 0.001));
    let strict = compare_noisy(&reference, &arm, true, 0.02, 0.999);
    assert_eq!(strict.evidence.why(), Some(Why::TooFew { have: 7, need: 11 }));
    let (reference, arm) = pairs(1.0, &spread(11, 0.001));
    assert_eq!(compare_noisy(&reference, &arm, true, 0.02, 0.999).verdict, Verdict::Different);
}

#[test]
fn readings_without_a_ratio_are_named_and_do_not_panic() {
    let ten = [1.0; 10];
    let with = |value: f64| {
        let mut readings = ten;
        readings[3] = value;
        compare_noisy(&ten, &readings, true, 0.02, 0.95)
    };
    assert_eq!(with(0.0).evidence.why(), Some(Why::NotPositive));
    assert_eq!(with(-1.0).evidence.why(), Some(Why::NotPositive));
    assert_eq!(with(f64::NAN).evidence.why(), Some(Why::NotFinite));
    assert_eq!(with(f64::INFINITY).evidence.why(), Some(Why::NotFinite));
    assert_eq!(with(0.0).verdict, Verdict::CantTell);
    let uneven = compare_noisy(&ten, &ten[..9], true, 0.02, 0.95);
    assert_eq!(uneven.evidence.why(), Some(Why::Unpaired { reference: 10, arm: 9 }));
    assert_eq!(
        compare_noisy(&[], &[], true, 0.02, 0.95).evidence.why(),
        Some(Why::TooFew { have: 0, need: 6 })
    );
    assert_eq!(compare_noisy(&ten, &ten, true, 0.02, 1.0).evidence.why(), Some(Why::NoSuchLevel));
}

#[test]
fn a_metric_that_showed_nothing_anywhere_is_the_same() {
    let zeros = compare_noisy(&[0.0; 8], &[0.0; 8], true, 0.02, 0.95);
    assert_eq!((zeros.verdict, zeros.evidence.difference()), (Verdict::Same, Some(0.0)));
}

fn counted(reference: &[f64], arm: &[f64]) -> Comparison {
    let evidence = Evidence::of_counts(reference, arm, true, 0.0).expect("counts that repeat");
    Comparison::of(evidence, true, 0.02)
}

#[test]
fn exact_metrics_differ_by_exactly_so_much() {
    let more = counted(&[268_000.0; 3], &[268_032.0; 3]);
    assert_eq!((more.verdict, more.direction), (Verdict::Different, Some(Direction::Worse)));
    assert_eq!((more.evidence.difference(), more.interval()), (Some(32.0), None));
    let same = counted(&[5.0; 2], &[5.0; 2]);
    assert_eq!((same.verdict, same.evidence.effect()), (Verdict::Same, Some(1.0)));
    let none = counted(&[0.0; 2], &[0.0; 2]);
    assert_eq!((none.verdict, none.evidence.effect()), (Verdict::Same, Some(1.0)));
    let from_none = counted(&[0.0; 3], &[3.0; 3]);
    assert_eq!((from_none.verdict, from_none.evidence.effect()), (Verdict::Different, None));
}

#[test]
fn an_aa_arm_widens_the_margin_to_what_it_showed() {
    let aa = weigh(0.0, 0.3, 40);
    let wide = honest_margin(0.02, Some(&aa));
    assert!(wide > 0.02);
    let interval = aa.interval().expect("forty blocks suffice");
    assert!((1.0 + wide - interval.high.max(1.0 / interval.low)).abs() < 1e-12);
    assert_eq!(honest_margin(0.02, None), 0.02);
    assert_eq!(honest_margin(0.02, Some(&weigh(0.0, 0.001, 40))), 0.02);
}

#[test]
fn the_spread_of_identical_programs_is_not_a_small_difference() {
    let (reference, arm) = pairs(0.05, &spread(20, 0.04));
    let found = |resolution: f64| {
        let mut entry = entry(&reference, &arm, 0.02);
        entry.readings.resolution = resolution;
        let found = compare_many(&[entry], 0.95).remove(0);
        let bounds = found.evidence.ratio_bounds().expect("twenty blocks suffice");
        (found.verdict, bounds.0 > 1.0)
    };
    assert_eq!(found(0.0), (Verdict::Different, true));
    assert_eq!(found(0.04), (Verdict::CantTell, false));
}

#[test]
fn a_table_is_read_at_stricter_levels_until_others_are_decided() {
    let (reference, clear) = pairs(0.5, &spread(40, 0.01));
    let (_, unsure) = pairs(0.0, &spread(40, 0.5));
    let entry = |arm: &[f64]| entry(&reference, arm, 0.02);
    let table = [entry(clear.as_slice()), entry(&unsure), entry(&clear), entry(&clear)];
    let found = compare_many(&table, 0.95);
    let levels: Vec<f64> = found.iter().filter_map(|c| c.interval().map(|i| i.level)).collect();
    assert!(levels[0] >= 0.9875 && levels[2] >= 0.9875, "decided at a quarter of the error: {levels:?}");
    assert!(levels[1] >= 0.95 && levels[1] < 0.97, "the rest is left with all of it: {levels:?}");
    assert_eq!(found[1].verdict, Verdict::CantTell);
    assert!(compare_many(&[], 0.95).is_empty());
}

#[test]
fn unpaired_samples_have_a_ratio_too() {
    let mut pcg = Pcg::new(3);
    let mut draw =
        |base: f64, n: usize| -> Vec<f64> { (0..n).map(|_| base * (1.0 + 0.01 * pcg.unit())).collect() };
    let (reference, arm) = (draw(100.0, 30), draw(110.0, 25));
    let found = compare_unpaired(&reference, &arm, true, 0.02, 0.95);
    assert_eq!((found.verdict, found.evidence.readings()), (Verdict::Different, 25));
    assert!((found.evidence.effect().expect("a ratio") - 1.1).abs() < 0.005);
    let few = compare_unpaired(&reference[..3], &arm, true, 0.02, 0.95);
    assert_eq!(few.evidence.why(), Some(Why::TooFew { have: 3, need: 4 }));
}

#[test]
fn two_runs_with_two_levels_in_other_shares_are_not_the_same() {
    let mut pcg = Pcg::new(5);
    let mut draw = |slow: usize| -> Vec<f64> {
        let level = |i: usize| if i * 7 % 40 < slow { 200.0 } else { 100.0 };
        (0..40).map(|i| level(i) * (1.0 + 0.01 * pcg.unit())).collect()
    };
    let (reference, arm) = (draw(16), draw(24));
    let found = compare_unpaired(&reference, &arm, true, 0.02, 0.95);
    let interval = found.interval().expect("an interval");
    assert!(interval.contains(1.0) && interval.high > 1.9, "{interval:?}");
    assert_eq!(found.verdict, Verdict::CantTell);
    let alike = compare_unpaired(&draw(8), &draw(8), true, 0.02, 0.95);
    assert_eq!(alike.verdict, Verdict::Same);
}

#[test]
fn verdicts_are_spelt_as_people_say_them() {
    let spelt = [Verdict::Different, Verdict::Same, Verdict::Small, Verdict::CantTell]
        .map(|verdict| serde_json::to_string(&verdict).expect("a verdict has a JSON form"));
    assert_eq!(spelt, [r#""different""#, r#""same""#, r#""small""#, r#""can't tell""#]);
}

#[test]
fn looks_double_and_share_the_error() {
    let looks = power::looks(10, 80, 0.95);
    assert_eq!(looks.iter().map(|look| look.blocks).collect::<Vec<_>>(), [10, 20, 40, 80]);
    assert!(looks.iter().all(|look| (look.level - 0.9875).abs() < 1e-12));
    assert_eq!(
        power::looks(10, 50, 0.95).iter().map(|look| look.blocks).collect::<Vec<_>>(),
        [10, 20, 40, 50]
    );
    assert_eq!(power::looks(10, 7, 0.95).len(), 1);
}

#[test]
fn hopeless_precision_asks_for_many_blocks_and_not_for_infinity() {
    assert_eq!(power::more_blocks(10, 1.0, 0.0), power::MANY);
    assert_eq!(power::more_blocks(10, f64::INFINITY, 0.1), power::MANY);
    assert_eq!(power::more_blocks(10, 0.05, 0.1), 1);
    assert_eq!(power::more_blocks(10, 0.2, 0.1), 30);
}

#[test]
fn many_thousands_of_blocks_are_affordable() {
    let mut pcg = Pcg::new(8);
    let ratios: Vec<f64> = (0..20_000).map(|_| 0.02 + 0.1 * (pcg.unit() - 0.5)).collect();
    let effect = paired::effect_of_log_ratios(&ratios, 0.95).expect("there are enough");
    assert!(effect.interval.contains(0.02_f64.exp()) && effect.interval.half_width() < 0.001);
}

#[test]
fn a_net_below_resolution_is_reported_with_its_bound() {
    let mut pcg = Pcg::new(9);
    let mut noisy = |base: f64| -> Vec<f64> { (0..30).map(|_| base + pcg.unit()).collect() };
    let (tare_only, nothing, something) = (noisy(10.0), noisy(10.0), noisy(15.0));
    let found = tare::net(&something, &tare_only, 0.95).expect("thirty blocks");
    assert!(found.below_resolution.is_none() && (found.estimate - 5.0).abs() < 0.5);
    let found = tare::net(&nothing, &tare_only, 0.95).expect("thirty blocks");
    assert!(found.below_resolution.is_some_and(|limit| limit > 0.0 && limit < 1.0), "{found:?}");
    let impossible = tare::net(&tare_only, &something, 0.95).expect("thirty blocks");
    assert!(impossible.below_resolution.is_some_and(|limit| limit > 4.0));
    assert_eq!(tare::net(&[1.0; 5], &[1.0; 5], 0.95), Err(Why::TooFew { have: 5, need: 6 }));
    assert_eq!(tare::net(&[1.0; 5], &[1.0; 6], 0.95), Err(Why::Unpaired { reference: 6, arm: 5 }));
}

#[test]
fn a_bound_never_exceeds_what_the_raw_cost_can_be() {
    let raw: Vec<f64> = (0..12).map(|i| 10.0 + 0.1 * f64::from(i)).collect();
    let mut tare = vec![10.5; 12];
    tare[3] = 5_000.0;
    tare[7] = 7_000.0;
    let found = tare::net(&raw, &tare, 0.99).expect("twelve blocks");
    assert!(found.below_resolution.is_some_and(|limit| limit < 2.0), "{found:?}");
    let six = tare::net(&raw[2..8], &tare[2..8], 0.95).expect("six blocks");
    assert!(six.interval.low < -1000.0 && six.below_resolution.is_some_and(|limit| limit <= 10.7), "{six:?}");
}

#[test]
fn noisy_values_are_not_called_below_resolution() {
    let raw = [3_770.0, 3_800.0, 3_850.0, 3_900.0, 3_950.0, 4_030.0];
    let tare = [137.0, 136.0, 138.0, 137.0, 9_000.0, 137.0];
    let found = tare::net(&raw, &tare, 0.95).expect("six blocks");
    assert!(found.unknown && found.below_resolution.is_none(), "{found:?}");
    assert!(found.interval.low < 0.0 && found.interval.high > 3_800.0 && found.interval.high <= 4_030.0);
}

#[test]
fn a_net_is_as_well_known_as_a_raw_cost_beside_which_the_tare_is_nothing() {
    let raw: Vec<Vec<f64>> = [1.0, 3.0, 20.0].iter().map(|p| vec![57e6 * p, 60e6 * p, 61e6 * p]).collect();
    let processes: Vec<(&[f64], &[f64])> =
        raw.iter().map(|r| (r.as_slice(), &[11.0, 12.0, 13.0][..])).collect();
    let found = tare::net_by_process(&processes, 0.95).expect("enough");
    assert!(found.below_resolution.is_none(), "{found:?}");
    assert!(found.interval.low > 0.0 && found.interval.high >= 200e6, "{found:?}");
    assert!(found.unknown, "costs of 60 ms to 1.2 s give no figure: {found:?}");
}

#[test]
fn an_interval_of_processes_that_all_show_a_cost_begins_at_zero_or_above() {
    let of = |nets: &[f64], odd: f64| {
        let raw: Vec<Vec<f64>> =
            nets.iter().map(|net| [vec![10.0 + net; 20], vec![10.0 + odd]].concat()).collect();
        let tare = vec![10.0; 21];
        let processes: Vec<(&[f64], &[f64])> = raw.iter().map(|r| (r.as_slice(), tare.as_slice())).collect();
        tare::net_by_process(&processes, 0.95).expect("enough")
    };
    let amounts = of(&[1.0, 3.0, 20.0], 1.0);
    assert!(amounts.below_resolution.is_none() && amounts.unknown, "{amounts:?}");
    assert!(amounts.interval.low >= 0.0 && amounts.interval.high > 20.0, "{amounts:?}");
    let one_below_nothing = of(&[1.0, 3.0, 20.0], -1.0);
    assert!(one_below_nothing.below_resolution.is_none(), "{one_below_nothing:?}");
    assert_eq!(one_below_nothing.interval, amounts.interval, "one block of twenty-one moves no median");
    // Copies of one loop differ by a tenth, so a process that differs by less shows no cost.
    let in_one_only = of(&[0.05, 20.0, 20.0], 0.05);
    assert!(in_one_only.unknown && in_one_only.interval.low <= 0.0, "{in_one_only:?}");
}

/// On a busy machine a process may have fewer blocks than an interval of its own needs.
#[test]
fn few_blocks_of_each_process_show_a_cost_together() {
    let of = |nets: [&[f64]; 3]| {
        let raw = nets.map(|nets| nets.iter().map(|net| 2.7 + net).collect::<Vec<f64>>());
        let tare = [2.7; 6];
        let processes: Vec<(&[f64], &[f64])> = raw.iter().map(|r| (r.as_slice(), &tare[..r.len()])).collect();
        tare::net_by_process(&processes, 0.95).expect("enough blocks together")
    };
    let (some, others) = (&[81.0, 80.0, 67.0, 67.0][..], &[61.0, 62.0, 64.0, 63.0, 67.0][..]);
    let found = of([some, others, &[65.0, 29.0, 27.0, 27.0, 64.0, 65.0]]);
    assert!(!found.unknown && found.below_resolution.is_none(), "{found:?}");
    assert!(found.interval.low > 0.0 && found.interval.high < 250.0, "{found:?}");
    let one_without = of([some, others, &[65.0, -1.0, 27.0, 27.0, 64.0]]);
    assert!(one_without.interval.low < 0.0, "{one_without:?}");
    let too_few = [(&[5.0, 6.0][..], &[1.0, 1.0][..]); 2];
    assert!(tare::net_by_process(&too_few, 0.95).is_err());
}

#[test]
fn the_net_widens_when_processes_disagree() {
    let raw: Vec<Vec<f64>> =
        (0..5).map(|p| (0..40).map(|i| 20.0 + f64::from(p) + 0.01 * f64::from(i)).collect()).collect();
    let tare_of = vec![10.0; 40];
    let processes: Vec<(&[f64], &[f64])> = raw.iter().map(|r| (r.as_slice(), tare_of.as_slice())).collect();
    let wide = tare::net_by_process(&processes, 0.95).expect("enough");
    assert_eq!(wide.method, "median, Student and order statistics of processes");
    assert!(wide.interval.half_width() > 1.0);
}

#[test]
fn the_headline_is_whichever_time_says_most() {
    let judged = |metric: &str, centre: f64, width: f64| Judged {
        metric: metric.to_owned(),
        reference: "old".to_owned(),
        arm: "new".to_owned(),
        comparison: weigh(centre, width, 20),
        waiting: 0.0,
    };
    let shown = ["time.wall".to_owned(), "time.cpu".to_owned()];
    let quoted = |wall: (f64, f64), cpu: (f64, f64)| {
        let both = [judged("time.wall", wall.0, wall.1), judged("time.cpu", cpu.0, cpu.1)];
        let found = headline(&both, &shown, "new").expect("a comparison");
        (found.metric.clone(), found.comparison.verdict)
    };
    let (different, small, same, unknown) = ((0.05, 0.01), (0.02, 0.02), (0.0, 0.005), (0.0, 0.3));
    let wall = |verdict| ("time.wall".to_owned(), verdict);
    let cpu = |verdict| ("time.cpu".to_owned(), verdict);
    assert_eq!(quoted(different, different), wall(Verdict::Different));
    // Uncertain wall time gives way to more precise processor time if both agree, but not if they differ.
    assert_eq!(quoted((0.3, 0.4), (0.25, 0.02)), cpu(Verdict::Different));
    assert_eq!(quoted((0.3, 0.02), (0.25, 0.01)), wall(Verdict::Different));
    assert_eq!(quoted((0.3, 0.4), (-0.25, 0.02)), wall(Verdict::Different));
    assert_eq!(quoted(same, different), wall(Verdict::Same));
    assert_eq!(quoted((0.0, 0.015), (0.02, 0.004)), cpu(Verdict::Small));
    assert_eq!(quoted(small, different), cpu(Verdict::Different));
    assert_eq!(quoted(small, same), cpu(Verdict::Same));
    assert_eq!(quoted(small, (0.0, 0.015)), wall(Verdict::Small));
    assert_eq!(quoted(unknown, small), cpu(Verdict::Small));
    assert_eq!(quoted(unknown, unknown), wall(Verdict::CantTell));
    // Wall time that was mostly waiting is not the headline, whatever its verdict.
    let mut both = [judged("time.wall", 0.3, 0.02), judged("time.cpu", 0.0, 0.3)];
    both[0].waiting = 0.8;
    assert_eq!(headline(&both, &shown, "new").expect("a comparison").metric, "time.cpu");
}

#[test]
fn a_margin_beyond_which_same_says_nothing_leaves_the_question_open() {
    let (reference, arm) = pairs(0.0, &spread(20, 0.1));
    assert_eq!(compare_noisy(&reference, &arm, true, 0.2, 0.95).verdict, Verdict::Same);
    let wide = compare_noisy(&reference, &arm, true, 1.91, 0.95);
    assert_eq!((wide.verdict, wide.more_blocks), (Verdict::CantTell, 0));
}

#[test]
fn fewer_processes_than_show_their_spread_have_no_verdict() {
    let found = |processes: usize| {
        let reference = vec![100.0; processes];
        let arm: Vec<f64> = (0..processes).map(|i| 105.0 + 0.01 * i as f64).collect();
        let mut entry = entry(&reference, &arm, 0.01);
        (entry.readings.paired, entry.readings.replicate) = (false, Replicate::Process);
        let found = compare_many(&[entry], 0.95).remove(0);
        (found.verdict, found.evidence.why())
    };
    assert_eq!(found(1), (Verdict::CantTell, Some(Why::FewProcesses { have: 1, need: 3 })));
    assert_eq!(found(2), (Verdict::CantTell, Some(Why::FewProcesses { have: 2, need: 3 })));
    assert_eq!(found(3).0, Verdict::Different);
}
