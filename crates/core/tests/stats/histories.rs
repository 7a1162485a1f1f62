//! Generated histories: every planted change is found at its version, and no other.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use scruple_core::history::{Acceptance, Change, ChangeForm, History, Series, VersionState, find_changes};
use scruple_core::sample::BLOCKS_OF_A_VISIT;
use scruple_stats::rng::Pcg;

use crate::noise::normal;
use crate::range::{count, range, read, same, weigh};

pub const CPU: f64 = 1e8;

pub fn only(history: &History) -> Series {
    let mut series = find_changes(history).series;
    assert_eq!(series.len(), 1);
    series.remove(0)
}

pub fn cpu(levels: &[f64], blocks: u32, noise: f64, seed: u64) -> History {
    let mut history = range(levels.len());
    let levels: Vec<f64> = levels.iter().map(|level| level * CPU).collect();
    weigh(&mut history, "parse", "time.cpu", &levels, blocks, noise, &mut Pcg::new(seed));
    history
}

pub fn forms(series: &Series) -> Vec<(ChangeForm, usize)> {
    series.changes.iter().map(|change| (change.form, change.at)).collect()
}

/// The share of histories without a change that are given one. They have 2 to 60 versions, and builds differ by
/// `layout` (standard deviation of logarithms).
fn false_changes(tries: u64, layout: f64) -> f64 {
    let wrong = (0..tries)
        .filter(|&number| {
            let mut pcg = Pcg::with_stream(50, number);
            let n = [2, 3, 5, 8, 15, 30, 60][(number % 7) as usize];
            let blocks = [6, 10, 20][(number % 3) as usize];
            let mut history = range(n);
            for key in ["time.wall", "time.cpu", "time.user", "mem.peak"] {
                let noise = 0.005 + 0.03 * pcg.unit();
                let levels: Vec<f64> = (0..n).map(|_| CPU * (layout * normal(&mut pcg)).exp()).collect();
                weigh(&mut history, "parse", key, &levels, blocks, noise, &mut pcg);
            }
            find_changes(&history).series.iter().any(|series| !series.changes.is_empty())
        })
        .count();
    wrong as f64 / tries as f64
}

fn without_a_change(tries: u64) {
    for layout in [0.0, 0.002] {
        let wrong = false_changes(tries, layout);
        println!(
            "histories without a change, builds differing by {layout}: one named in {:.1} %",
            100.0 * wrong
        );
        let slack = 3.0 * (0.05_f64 * 0.95 / tries as f64).sqrt();
        assert!(wrong <= 0.05 + slack, "{layout}: {wrong}");
    }
}

#[test]
fn histories_without_a_change_are_seldom_given_one() {
    without_a_change(70);
}

/// Plants steps of `smallest` to ten times that. Returns the share of them that the set of a named change contains, the
/// share named at their version, and the number of other changes per history.
fn planted(tries: u64, noise: f64, smallest: f64) -> (f64, f64, f64) {
    let (mut truths, mut hits, mut others, mut exactly) = (0, 0, 0, 0);
    for number in 0..tries {
        let mut pcg = Pcg::with_stream(51, number);
        let n = 20 + pcg.below(30) as usize;
        let mut levels = vec![1.0; n];
        let mut truth: Vec<usize> = Vec::new();
        let mut place = 5 + pcg.below(8) as usize;
        while place + 5 < n {
            let size = smallest * (10.0_f64).powf(pcg.unit());
            let step = if pcg.below(2) == 0 { 1.0 + size } else { 1.0 / (1.0 + size) };
            levels[place..].iter_mut().for_each(|level| *level *= step);
            truth.push(place);
            place += 5 + pcg.below(12) as usize;
        }
        let found = only(&cpu(&levels, 12, noise, 1000 + number));
        truths += truth.len();
        let is_true = |change: &&Change| truth.iter().any(|place| change.set.contains(place));
        hits += truth.iter().filter(|p| found.changes.iter().any(|c| c.set.contains(p))).count();
        exactly += truth.iter().filter(|p| found.changes.iter().any(|c| c.at == **p)).count();
        others += found.changes.iter().filter(|change| !is_true(change)).count();
    }
    let of = |count: usize| count as f64 / truths as f64;
    println!(
        "{noise} noise, from {smallest}: {:.1} % found, {:.1} % at their version, {others} others in {tries}",
        100.0 * of(hits),
        100.0 * of(exactly)
    );
    (of(hits), of(exactly), others as f64 / tries as f64)
}

fn planted_changes(tries: u64) {
    for (noise, least) in [(0.01, 0.99), (0.02, 0.9)] {
        let (found, exactly, others) = planted(tries, noise, 0.02);
        assert!(
            found >= least && exactly >= 0.8 * least && others <= 0.06,
            "{noise}: {found} {exactly} {others}"
        );
    }
}

#[test]
fn planted_changes_of_two_per_cent_and_more_are_found_and_no_others() {
    planted_changes(25);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn histories_at_ten_times_the_size() {
    without_a_change(1400);
    planted_changes(400);
}

#[test]
fn a_step_a_spike_and_a_revert_are_named_as_such() {
    let mut levels = vec![1.0; 24];
    levels[6..14].fill(1.05);
    levels[18..20].fill(0.96);
    let series = only(&cpu(&levels, 12, 0.01, 7));
    assert_eq!(
        forms(&series),
        [(ChangeForm::Step, 6), (ChangeForm::Revert, 14), (ChangeForm::Spike, 18)],
        "{:#?}",
        series.changes
    );
    let [step, revert, spike] = series.changes.as_slice() else { panic!("three changes") };
    assert_eq!((step.before, step.better, revert.better), (5, Some(false), Some(true)));
    assert_eq!((revert.undoes, spike.until), (Some(6), Some(19)));
    assert!(step.interval.is_some_and(|interval| interval.contains(1.05)), "{step:?}");
    assert!(series.whole.as_ref().is_some_and(|whole| !whole.surely), "{:?}", series.whole);
    assert_eq!(
        series.levels.iter().map(|l| (l.0, l.1)).collect::<Vec<_>>(),
        [(0, 5), (6, 13), (14, 17), (18, 19), (20, 23)]
    );
}

#[test]
fn a_single_odd_version_is_a_spike_only_if_its_own_readings_show_it() {
    let mut levels = vec![1.0; 12];
    levels[5] = 1.04;
    assert_eq!(forms(&only(&cpu(&levels, 12, 0.01, 8))), [(ChangeForm::Spike, 5)]);
    // A shift of a few of the readings is a disturbance, although it moves the median as much.
    let mut history = cpu(&[1.0; 12], 12, 0.01, 8);
    let arm = &mut history.run.arms[5];
    let readings = arm.sample("time.cpu").expect("read").readings.clone();
    let disturbed: Vec<f64> =
        readings.iter().enumerate().map(|(i, r)| if i % 3 == 0 { r * 1.5 } else { *r }).collect();
    let blocks: Vec<u32> = (0..12).collect();
    read(&mut history, "parse", "time.cpu", 5, &disturbed, &blocks);
    assert_eq!(forms(&only(&history)), []);
}

#[test]
fn two_versions_suffice_and_the_newest_may_be_blamed() {
    for (levels, at) in [(vec![1.0, 1.05], 1), (vec![1.0, 1.0, 1.05], 2), (vec![1.0; 2], 0)] {
        let series = only(&cpu(&levels, 12, 0.01, 9));
        let named: Vec<usize> = series.changes.iter().map(|change| change.at).collect();
        assert_eq!(named, if at > 0 { vec![at] } else { vec![] }, "{levels:?}");
        assert!(
            series.detectable.is_some_and(|least| least > 0.005 && least < 0.05),
            "{:?}",
            series.detectable
        );
    }
    let mut levels = vec![1.0; 20];
    levels[19] = 1.05;
    assert_eq!(forms(&only(&cpu(&levels, 12, 0.01, 10))), [(ChangeForm::Step, 19)]);
}

#[test]
fn disturbances_of_the_machine_are_subtracted() {
    // The speed of the machine doubles from the first to the last block, and each version is absent from half of the
    // blocks.
    let mut history = range(8);
    let mut pcg = Pcg::new(11);
    for version in 0..8 {
        let level = if version < 4 { 1.0 } else { 1.03 };
        let blocks: Vec<u32> = (0..24).filter(|block| (block + version as u32) % 4 < 2).collect();
        let reading =
            |block: &u32| CPU * level * (1.0 + f64::from(*block) / 24.0) * (0.01 * normal(&mut pcg)).exp();
        let readings: Vec<f64> = blocks.iter().map(reading).collect();
        read(&mut history, "parse", "time.cpu", version, &readings, &blocks);
    }
    let series = only(&history);
    assert_eq!(forms(&series), [(ChangeForm::Step, 4)]);
    assert!(series.changes[0].interval.is_some_and(|interval| interval.contains(1.03)));
    let spread = series.points[..4].iter().map(|p| p.value).fold(0.0, f64::max) / series.points[0].value;
    assert!(spread < 1.02, "{spread}");
}

#[test]
fn every_change_of_an_exact_metric_is_a_change_by_its_own_rule() {
    let mut history = range(9);
    let bytes = [0.0, 0.0, 100.0, 101.0, 101.0, 100.0, 100.0, 100.0, 0.0];
    count(&mut history, "parse", "malloc.bytes", &bytes);
    let series = only(&history);
    assert!(series.exact && series.changes.iter().all(|change| change.p == 0.0 && change.set == [change.at]));
    assert_eq!(forms(&series), [(ChangeForm::Step, 2), (ChangeForm::Spike, 3), (ChangeForm::Revert, 8)]);
    assert_eq!((series.changes[0].ratio, series.changes[2].ratio), (f64::INFINITY, 0.0));
    assert_eq!(series.changes[2].undoes, Some(2));
    let whole = series.whole.expect("first and last were weighed");
    assert_eq!((whole.ratio, whole.surely), (1.0, false));
    assert_eq!((series.noise, series.detectable), (Some(0.0), None));
}

#[test]
fn nothing_allocated_at_all_is_no_change() {
    let mut history = range(4);
    count(&mut history, "parse", "malloc.bytes", &[0.0; 4]);
    let series = only(&history);
    assert!(series.exact && series.changes.is_empty() && series.cannot.is_none());
    assert_eq!(series.whole.map(|whole| (whole.ratio, whole.surely)), Some((1.0, false)));
}

#[test]
fn a_count_that_does_not_repeat_in_one_version_is_noisy() {
    let mut history = range(10);
    count(&mut history, "parse", "malloc.bytes", &[1000.0; 10]);
    read(&mut history, "parse", "malloc.bytes", 4, &[1000.0, 1016.0], &[0, 1]);
    let series = only(&history);
    assert!(!series.exact && series.changes.is_empty(), "{series:?}");
}

#[test]
fn a_count_that_is_alike_when_it_is_counted_again_is_no_change_of_the_version() {
    let mut history = range(8);
    count(&mut history, "parse", "malloc.bytes", &[500.0, 500.0, 500.0, 600.0, 600.0, 601.0, 601.0, 601.0]);
    assert_eq!(forms(&only(&history)), [(ChangeForm::Step, 3), (ChangeForm::Step, 5)]);
    let later = [0, 1, BLOCKS_OF_A_VISIT, BLOCKS_OF_A_VISIT + 1];
    let again = |history: &mut History, version: usize, first: f64, then: f64| {
        read(history, "parse", "malloc.bytes", version, &[first, first, then, then], &later);
    };
    again(&mut history, 2, 500.0, 600.0);
    again(&mut history, 3, 600.0, 600.0);
    again(&mut history, 4, 600.0, 600.0);
    again(&mut history, 5, 601.0, 601.0);
    let series = only(&history);
    let [change] = series.changes.as_slice() else { panic!("one change: {series:?}") };
    assert_eq!((change.at, change.from, change.to, series.exact), (5, 600.0, 601.0, false));
    assert!(series.whole.is_some_and(|whole| !whole.surely));
}

#[test]
fn versions_that_were_not_weighed_belong_to_the_set_and_same_binaries_do_not() {
    let levels = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.2, 1.2, 1.2, 1.2];
    let mut history = cpu(&levels, 12, 0.01, 12);
    history.versions[4].state = VersionState::BuildFailed;
    same(&mut history, 5, 3);
    let series = only(&history);
    let [change] = series.changes.as_slice() else { panic!("one change: {series:?}") };
    assert_eq!(
        (change.at, change.before, change.set.as_slice()),
        (6, 5, &[6][..]),
        "the version with the same binary shows the old level"
    );
    let copied = series.points.iter().find(|point| point.version == 5).expect("a copied point");
    assert!(copied.copied && copied.readings == series.points[3].readings);
    history.versions[5].state = VersionState::Skipped;
    let series = only(&history);
    assert_eq!((series.changes[0].before, series.changes[0].set.as_slice()), (3, &[4, 5, 6][..]));
    history.versions[6].accepted.push(Acceptance {
        subject: Some("parse".to_owned()),
        metric: Some("time".to_owned()),
        reason: "safer".to_owned(),
    });
    assert_eq!(only(&history).changes[0].accepted.as_deref(), Some("safer"));
    history.versions[6].accepted[0].subject = Some("print".to_owned());
    assert_eq!(only(&history).changes[0].accepted, None);
}

#[test]
fn same_binaries_that_were_weighed_show_what_no_change_looks_like() {
    let mut history = cpu(&[1.0; 8], 12, 0.01, 13);
    assert_eq!(only(&history).same_binary_noise, None);
    same(&mut history, 3, 2);
    same(&mut history, 6, 5);
    let noise = only(&history).same_binary_noise.expect("two pairs of versions");
    assert!(noise > 0.0 && noise < 0.01, "{noise}");
    // A difference between readings of the same artefacts is never a change, however large.
    let mut levels = [1.0; 8];
    levels[3] = 1.1;
    let mut history = cpu(&levels, 12, 0.01, 13);
    assert_eq!(only(&history).changes.len(), 1);
    same(&mut history, 3, 2);
    assert!(only(&history).changes.iter().all(|change| !change.set.contains(&3)));
    // Nor do the ends of the range differ if the last version is again the program that the first one was.
    let mut levels = [1.2; 8];
    (levels[0], levels[7]) = (1.0, 0.9);
    let mut history = cpu(&levels, 12, 0.01, 13);
    assert!(only(&history).whole.is_some_and(|whole| whole.surely && whole.ratio < 0.95));
    same(&mut history, 7, 0);
    let whole = only(&history).whole.expect("two ends");
    assert!(whole.same_artefacts && !whole.surely && whole.interval.is_none(), "{whole:?}");
}

#[test]
fn a_level_of_many_versions_is_no_spike_however_few_builds_they_have() {
    let mut levels = [1.0; 24];
    levels[6..14].fill(1.05);
    let mut history = cpu(&levels, 12, 0.01, 15);
    for (versions, first) in [(1..6, 0), (7..14, 6), (15..24, 14)] {
        versions.for_each(|version| same(&mut history, version, first));
    }
    assert_eq!(forms(&only(&history)), [(ChangeForm::Step, 6), (ChangeForm::Revert, 14)]);
}

#[test]
fn an_exact_change_says_which_version_of_a_set_it_was() {
    let (mut moved, mut tries) = (0, 0);
    for seed in 0..40 {
        let mut levels = vec![1.0; 16];
        levels[8..].fill(1.015);
        let mut history = cpu(&levels, 8, 0.02, 200 + seed);
        let alone = only(&history);
        let [change] = alone.changes.as_slice() else { continue };
        if change.at == 8 || !change.set.contains(&8) {
            continue;
        }
        tries += 1;
        let counts: Vec<f64> = (0..16).map(|version| if version < 8 { 500.0 } else { 520.0 }).collect();
        count(&mut history, "parse", "malloc.count", &counts);
        let both = find_changes(&history).series;
        let time = both.iter().find(|series| series.metric == "time.cpu").expect("read");
        assert_eq!(time.changes.len(), 1);
        moved += usize::from(time.changes[0].at == 8 && time.changes[0].set == change.set);
    }
    assert!(tries > 0 && moved == tries, "{moved} of {tries}");
}

#[test]
fn a_range_that_goes_back_and_forth_has_two_modes_and_no_change() {
    let levels: Vec<f64> = (0..24).map(|i| if i / 2 % 2 == 0 { 1.0 } else { 1.3 }).collect();
    let series = only(&cpu(&levels, 12, 0.01, 14));
    assert!(series.changes.is_empty());
    let [low, high] = series.modes.expect("two modes");
    assert!((high / low - 1.3).abs() < 0.02, "{low} {high}");
}

#[test]
fn with_fewer_readings_than_an_interval_needs_no_change_is_named() {
    for rounds in 1..6 {
        let series = only(&cpu(&[1.0, 1.0, 1.0, 1.5, 1.5, 1.5], rounds, 0.01, 19));
        assert!(series.changes.is_empty(), "{rounds}: {:?}", series.changes);
        assert_eq!(series.noise, None, "what is not known is not 0");
        assert!(series.cannot.is_some_and(|why| why.contains("too few")), "{rounds}");
        assert!(series.whole.is_some_and(|whole| whole.interval.is_none() && !whole.surely));
    }
    assert_eq!(forms(&only(&cpu(&[1.0, 1.0, 1.0, 1.5, 1.5, 1.5], 6, 0.01, 19))), [(ChangeForm::Step, 3)]);
    // A version with too few readings counts as not weighed.
    let mut history = cpu(&[1.0, 1.0, 1.0, 1.5, 1.5, 1.5], 12, 0.01, 20);
    read(&mut history, "parse", "time.cpu", 3, &[1.5 * CPU; 3], &[0, 1, 2]);
    let series = only(&history);
    assert_eq!((series.changes[0].at, series.changes[0].set.as_slice()), (4, &[3, 4][..]));
    assert_eq!(series.points.len(), 6);
}

#[test]
fn readings_that_have_no_ratio_say_so() {
    let mut history = range(3);
    for version in 0..3 {
        read(&mut history, "parse", "time.sys", version, &[0.0, 0.0, 5e6], &[0, 1, 2]);
    }
    let series = only(&history);
    assert!(series.changes.is_empty() && series.cannot.is_some_and(|why| why.contains("zero")));
    assert_eq!(series.points.len(), 3);
}

#[test]
fn more_series_make_each_change_harder_to_name() {
    let weak = |others: usize| -> (usize, f64) {
        let (mut named, mut least) = (0, 0.0);
        for seed in 0..30 {
            let mut history = cpu(&[1.0, 1.0, 1.0, 1.012, 1.012, 1.012], 10, 0.012, 300 + seed);
            for i in 0..others {
                let mut pcg = Pcg::with_stream(301, seed * 100 + i as u64);
                weigh(&mut history, &format!("other{i}"), "time.cpu", &[CPU; 6], 10, 0.02, &mut pcg);
            }
            let judged = find_changes(&history);
            let changes: &[Change] = &judged.series[0].changes;
            named += changes.len();
            least = changes.iter().map(|change| change.p).fold(least, f64::max);
        }
        (named, least)
    };
    let ((alone, p), (among, p_among)) = (weak(0), weak(40));
    assert!(alone > among && p <= 0.05 && p_among <= 0.05, "{alone} {among} {p} {p_among}");
}

/// Twelve versions, the later six of which take `run` times as long to run. `seconds` are the build times of both
/// halves, and `builds` the number of builds of each version.
fn rebuilt(run: f64, seconds: [f64; 2], builds: u32, seed: u64) -> History {
    let levels: Vec<f64> = (0..12).map(|version| if version < 6 { 1.0 } else { run }).collect();
    let mut history = cpu(&levels, 12, 0.01, seed);
    let took: Vec<f64> = (0..12).map(|version| seconds[version / 6] * 1e9).collect();
    weigh(&mut history, "parse", "build.time", &took, builds, 0.03, &mut Pcg::new(seed));
    history
}

/// The series of build times.
pub fn building(history: &History) -> Series {
    let series = find_changes(history).series;
    series.into_iter().find(|one| one.metric == "build.time").expect("builds")
}

#[test]
fn versions_built_in_turns_show_what_building_costs() {
    let series = building(&rebuilt(1.0, [10.0, 14.0], 8, 21));
    assert_eq!(forms(&series), [(ChangeForm::Step, 6)]);
    for builds in 2..6 {
        assert_eq!(forms(&building(&rebuilt(1.0, [10.0, 40.0], builds, 22))), []);
    }
}

#[test]
fn a_more_costly_build_pays_off_after_a_number_of_runs() {
    let judged = find_changes(&rebuilt(0.9, [10.0, 40.0], 8, 16));
    let [even] = judged.break_even.as_slice() else { panic!("one subject") };
    assert_eq!((even.subject.as_str(), even.from, even.to), ("parse", 0, 11));
    assert!((even.build / 30e9 - 1.0).abs() < 0.1 && (even.run / CPU + 0.1).abs() < 0.02, "{even:?}");
    assert!(even.runs.is_some_and(|runs| (runs * -even.run / even.build - 1.0).abs() < 1e-9));
    assert!(even.build_surely && even.run_surely);
    // If the difference in running time is uncertain, no number of runs is given.
    assert_eq!(find_changes(&rebuilt(1.0, [10.0, 40.0], 8, 17)).break_even[0].runs, None);
    // If nothing differs, there is no break-even point.
    assert!(find_changes(&rebuilt(1.0, [10.0, 10.0], 8, 18)).break_even.is_empty());
}

#[test]
fn one_build_of_each_of_two_versions_does_not_tell_what_builds_cost() {
    let mut history = cpu(&[1.0, 0.9], 12, 0.01, 16);
    for (version, seconds) in [(0, 10.0), (1, 40.0)] {
        read(&mut history, "parse", "build.time", version, &[seconds * 1e9], &[0]);
    }
    let break_even = &find_changes(&history).break_even[0];
    assert!(!break_even.build_surely && break_even.run_surely && break_even.runs.is_none());
}

/// A version whose artefacts are those of another one was built itself.
#[test]
fn the_build_of_the_last_version_is_its_own() {
    let mut history = cpu(&[1.0, 0.9, 0.0], 12, 0.01, 16);
    same(&mut history, 2, 1);
    for (version, seconds) in [(0, 20.0), (1, 10.0), (2, 40.0)] {
        read(&mut history, "parse", "build.time", version, &[seconds * 1e9], &[0]);
    }
    let break_even = &find_changes(&history).break_even[0];
    assert_eq!((break_even.to, break_even.build), (2, 20e9));
}

#[test]
fn on_a_busy_machine_wall_time_does_not_tell_what_a_run_costs() {
    let mut history = rebuilt(1.0, [10.0, 40.0], 8, 19);
    let slower: Vec<f64> = (0..12).map(|version| if version < 6 { CPU } else { 1.5 * CPU }).collect();
    weigh(&mut history, "parse", "time.wall", &slower, 12, 0.01, &mut Pcg::new(20));
    let run = |history: &History| find_changes(history).break_even[0].run_surely;
    history.run.provenance.cores = 2;
    history.run.provenance.load = 0.1;
    assert!(run(&history));
    history.run.provenance.load = 25.0;
    assert!(!run(&history));
}

#[test]
fn a_step_much_below_the_margin_is_not_named() {
    let mut levels = vec![1.0; 40];
    levels[20..].fill(1.006);
    let mut history = cpu(&levels, 20, 0.005, 18);
    assert_eq!(forms(&only(&history)), []);
    history.run.terms.margin = 0.005;
    assert_eq!(only(&history).changes.len(), 1);
}
