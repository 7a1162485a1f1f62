//! Ranges whose builds differ although their source does not, and ranges with many true steps.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use scruple_core::history::{History, Series, find_changes};
use scruple_stats::rng::Pcg;

use crate::noise::normal;
use crate::range::{range, same, weigh};

const WALL: f64 = 1e8;

fn weighed(levels: &[f64], blocks: u32, noise: f64, seed: u64) -> Series {
    let mut history: History = range(levels.len());
    let levels: Vec<f64> = levels.iter().map(|level| level * WALL).collect();
    weigh(&mut history, "sleep", "time.wall", &levels, blocks, noise, &mut Pcg::new(seed));
    find_changes(&history).series.remove(0)
}

fn places(series: &Series) -> Vec<usize> {
    series
        .changes
        .iter()
        .flat_map(|change| [Some(change.at), change.until.map(|until| until + 1)])
        .flatten()
        .collect()
}

/// The share of ranges of `n` versions that are given a change although only builds differ. `layout` is the standard
/// deviation between builds, as a log ratio.
fn wrong(tries: u64, n: usize, layout: f64) -> f64 {
    let given = |number: &u64| {
        let mut pcg = Pcg::with_stream(60, *number * 1000 + n as u64);
        let levels: Vec<f64> = (0..n).map(|_| (layout * normal(&mut pcg)).exp()).collect();
        !weighed(&levels, 12, 0.003, 5000 + number).changes.is_empty()
    };
    (0..tries).filter(given).count() as f64 / tries as f64
}

/// Plants steps of `smallest` to three times that (as log ratios) at a share of the versions. Returns the share of the
/// steps that are found, and the number of other changes per range.
fn found(tries: u64, n: usize, share: f64, smallest: f64, layout: f64) -> (f64, f64) {
    let (mut truths, mut hits, mut others) = (0, 0, 0);
    for number in 0..tries {
        let mut pcg = Pcg::with_stream(61, number * 1000 + n as u64);
        let (mut level, mut levels, mut truth) = (0.0, vec![1.0], Vec::new());
        for place in 1..n {
            if pcg.unit() < share {
                let size = smallest * 3.0_f64.powf(pcg.unit());
                level += if pcg.below(2) == 0 { size } else { -size };
                truth.push(place);
            }
            levels.push((level + layout * normal(&mut pcg)).exp());
        }
        let named = places(&weighed(&levels, 12, 0.003, 6000 + number));
        truths += truth.len();
        hits += truth.iter().filter(|place| named.contains(place)).count();
        others += named.iter().filter(|place| !truth.contains(place)).count();
    }
    (hits as f64 / f64::from(truths.max(1) as u32), others as f64 / tries as f64)
}

/// Checks that at most 10 % of ranges are given a change where builds differ by up to 2 % in at least 8 versions, or by
/// 5 % in at least 15.
fn layouts(tries: u64) {
    for (layout, ranges) in
        [(0.005, &[8, 10, 15, 30, 60][..]), (0.02, &[8, 10, 15, 30, 60]), (0.05, &[15, 30, 60])]
    {
        for n in ranges {
            let wrong = wrong(tries, *n, layout);
            println!("{n} builds differing by {layout} for no reason: a change in {:.1} %", 100.0 * wrong);
            let slack = 3.0 * (0.1_f64 * 0.9 / tries as f64).sqrt();
            assert!(wrong <= 0.1 + slack, "{n}, {layout}: {wrong}");
        }
    }
}

/// Checks that at least 60 % of steps of 10 to 30 % are found, whatever share of the neighbours differ.
fn many_steps(tries: u64) {
    for n in [8, 12, 20, 40] {
        for share in [0.2, 0.5, 0.8, 1.0] {
            let (hits, others) = found(tries, n, share, 0.1, 0.005);
            println!("{n} versions, {share} of them steps: {:.1} % found, {others:.2} others", 100.0 * hits);
            assert!(hits >= 0.6 && others <= 0.4, "{n}, {share}: {hits}, {others}");
        }
    }
}

#[test]
fn builds_that_differ_for_no_reason_are_seldom_given_a_change() {
    layouts(20);
}

#[test]
fn large_steps_are_found_however_many_neighbours_differ() {
    many_steps(10);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn builds_at_ten_times_the_size() {
    layouts(400);
    many_steps(200);
}

#[test]
fn where_all_neighbours_differ_by_far_more_than_builds_do_every_step_is_named() {
    let all = [0.10, 0.12, 0.14, 0.125, 0.16, 0.18, 0.155, 0.2, 0.225];
    let series = weighed(&all, 12, 0.003, 1);
    assert_eq!(places(&series), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(series.detectable.is_some_and(|least| least < 0.02), "{:?}", series.detectable);
    let half = [0.10, 0.10, 0.13, 0.13, 1.0, 0.13, 0.17, 0.17, 0.10];
    assert_eq!(places(&weighed(&half, 12, 0.003, 1)), [2, 4, 5, 6, 8]);
}

/// A range in which the versions 2 and 3, 5 and 6, and 8 and 9 have the same artefacts. Every version has its own
/// readings, whose levels differ by `apart` (standard deviation of logarithms).
fn with_same_binaries(apart: f64) -> Series {
    let mut levels = vec![1.0; 12];
    let mut history = range(12);
    let mut pcg = Pcg::new(62);
    levels.iter_mut().for_each(|level| *level = WALL * (apart * normal(&mut pcg)).exp());
    weigh(&mut history, "sleep", "time.wall", &levels, 12, 0.003, &mut pcg);
    for pair in [2, 5, 8] {
        same(&mut history, pair + 1, pair);
    }
    find_changes(&history).series.remove(0)
}

#[test]
fn the_spread_of_equal_artefacts_is_not_a_change_of_the_others() {
    assert!(with_same_binaries(0.12).changes.is_empty());
    assert!(with_same_binaries(0.12).same_binary_noise.is_some_and(|noise| noise > 0.05));
}

#[test]
fn no_change_is_named_that_is_no_larger_than_what_equal_binaries_differ_by() {
    // The same artefacts took 12 % longer at the second version than at the first. The third has others.
    let mut history: History = range(3);
    let levels = [1.0, 1.12, 1.14].map(|level| level * WALL);
    weigh(&mut history, "sleep", "time.wall", &levels, 12, 0.003, &mut Pcg::new(71));
    assert_eq!(places(&find_changes(&history).series[0]), [1, 2]);
    same(&mut history, 1, 0);
    let series = find_changes(&history).series.remove(0);
    assert!(series.same_binary_noise.is_some_and(|noise| noise > 0.05), "{:?}", series.same_binary_noise);
    assert_eq!(places(&series), [0; 0]);
}
