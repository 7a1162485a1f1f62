//! The judgement of generated histories: every planted change is found where it is, and no other.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long versions for")]

use scruple_core::history::{Acceptance, Change, Form, History, Series, State, judge};
use scruple_core::stats::rng::Pcg;

use crate::noise::normal;
use crate::range::{count, range, read, same, weigh};

const CPU: f64 = 1e8;

fn only(history: &History) -> Series {
    let mut series = judge(history, 0.05).series;
    assert_eq!(series.len(), 1);
    series.remove(0)
}

fn cpu(levels: &[f64], blocks: u32, noise: f64, seed: u64) -> History {
    let mut history = range(levels.len());
    let levels: Vec<f64> = levels.iter().map(|level| level * CPU).collect();
    weigh(&mut history, "parse", "time.cpu", &levels, blocks, noise, &mut Pcg::new(seed));
    history
}

fn forms(series: &Series) -> Vec<(Form, usize)> {
    series.changes.iter().map(|change| (change.form, change.at)).collect()
}

/// Histories of 2 to 60 versions without any change, some with a little of their own from each build's layout.
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
            judge(&history, 0.05).series.iter().any(|series| !series.changes.is_empty())
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

/// Planted steps, spikes and reverts: how many were found at their version or in its set, how many sets hold the truth,
/// and how many others were named.
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
