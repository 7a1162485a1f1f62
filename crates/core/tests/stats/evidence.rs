//! Error rates of verdicts and limits on two arms that do not differ, for every kind of evidence.

use crate::entries::entry;
use crate::noise::processes;
use scruple_core::evidence::{Evidence, Replicate};
use scruple_core::verdict::{Comparison, Verdict, compare_many};
use scruple_stats::quantile::median;
use scruple_stats::rng::Pcg;

const TRIES: usize = 2000;

/// The shares of tries in which the verdict was "different" or "small", and in which a limit at the reference was said
/// to be exceeded.
struct Wrong {
    verdict: f64,
    limit: f64,
}

fn wrong(mut of: impl FnMut() -> Comparison) -> Wrong {
    let (mut verdicts, mut limits) = (0, 0);
    for _ in 0..TRIES {
        let found = of();
        verdicts += usize::from(matches!(found.verdict, Verdict::Different | Verdict::Small));
        let exceeded = |(low, _): (f64, f64)| low > 1.0;
        limits += usize::from(found.evidence.ratio_bounds().is_ok_and(exceeded));
    }
    Wrong { verdict: verdicts as f64 / TRIES as f64, limit: limits as f64 / TRIES as f64 }
}

fn rarely(what: &str, found: &Wrong) {
    // Three standard errors of a share of 5 % in 2,000 tries are 1.5 %.
    assert!(found.verdict <= 0.065, "{what}: {} of the verdicts are wrong", found.verdict);
    assert!(found.limit <= 0.065, "{what}: {} of the limits are wrong", found.limit);
}

fn compared(reference: &[f64], arm: &[f64], paired: bool, replicate: Replicate) -> Comparison {
    let mut entry = entry(reference, arm, 0.02);
    (entry.readings.paired, entry.readings.replicate) = (paired, replicate);
    compare_many(&[entry], 0.95).remove(0)
}

/// Readings of a noisy amount with log-normal noise, or also with a tail on one side, as pauses have.
fn amounts(pcg: &mut Pcg, n: usize, spread: f64, tail: bool) -> Vec<f64> {
    let normal = |pcg: &mut Pcg| (0..12).map(|_| pcg.unit()).sum::<f64>() - 6.0;
    (0..n)
        .map(|_| {
            let more = if tail && pcg.unit() < 0.2 { 3.0 * spread * pcg.unit() } else { 0.0 };
            100.0 * (spread * normal(pcg) + more).exp()
        })
        .collect()
}

#[test]
fn few_readings_of_a_noisy_metric_are_seldom_called_different() {
    let mut pcg = Pcg::new(11);
    for n in 2..=6 {
        for (spread, tail) in [(0.01, false), (0.2, false), (0.2, true)] {
            let found = wrong(|| {
                let (a, b) = (amounts(&mut pcg, n, spread, tail), amounts(&mut pcg, n, spread, tail));
                compared(&a, &b, true, Replicate::Launch)
            });
            rarely(&format!("{n} readings, spread {spread}, tail {tail}"), &found);
        }
    }
}

#[test]
fn two_readings_of_a_noisy_metric_never_have_a_verdict() {
    let mut pcg = Pcg::new(12);
    let found = wrong(|| {
        let (a, b) = (amounts(&mut pcg, 2, 0.2, false), amounts(&mut pcg, 2, 0.2, false));
        compared(&a, &b, true, Replicate::Launch)
    });
    assert_eq!((found.verdict, found.limit), (0.0, 0.0));
}

#[test]
fn counts_that_did_not_repeat_are_seldom_called_different() {
    let mut pcg = Pcg::new(13);
    for n in 2..=6 {
        let found = wrong(|| {
            let (a, b) = (amounts(&mut pcg, n, 0.1, false), amounts(&mut pcg, n, 0.1, false));
            Comparison::of(Evidence::of_near_counts(&a, &b, 0.0), true, 0.02)
        });
        rarely(&format!("{n} readings"), &found);
    }
}

#[test]
fn processes_that_differ_are_seldom_called_different_however_few_they_are() {
    let mut pcg = Pcg::new(14);
    for count in 1..=8 {
        for (between, within) in [(0.05, 0.01), (0.003, 0.01), (0.0, 0.01)] {
            for paired in [true, false] {
                let found = wrong(|| {
                    let mut medians = || -> Vec<f64> {
                        let groups = processes(&mut pcg, count, 30, between, within);
                        groups.iter().map(|group| median(group)).collect()
                    };
                    let (a, b) = (medians(), medians());
                    compared(&a, &b, paired, Replicate::Process)
                });
                rarely(&format!("{count} processes, between {between}, within {within}"), &found);
                if count < 3 {
                    assert_eq!((found.verdict, found.limit), (0.0, 0.0), "{count} processes");
                }
            }
        }
    }
}

#[test]
fn a_limit_on_peak_memory_is_never_exceeded_by_pages_alone() {
    let mut pcg = Pcg::new(15);
    let found = wrong(|| {
        let mut pages =
            || -> Vec<f64> { (0..3).map(|_| 1.6e6 + 4096.0 * (30.0 * pcg.unit()).floor()).collect() };
        let (a, b) = (pages(), pages());
        let resolution = 300_000.0 / median(&a);
        let mut entry = entry(&a, &b, 0.02);
        (entry.readings.replicate, entry.readings.resolution) = (Replicate::Launch, resolution);
        compare_many(&[entry], 0.95).remove(0)
    });
    assert_eq!((found.verdict, found.limit), (0.0, 0.0));
}

#[test]
fn a_limit_is_never_surer_than_the_verdict() {
    let mut pcg = Pcg::new(16);
    for _ in 0..TRIES {
        let n = 1 + (8.0 * pcg.unit()) as usize;
        let shift = 1.0 + 0.1 * pcg.unit();
        let a = amounts(&mut pcg, n, 0.02, true);
        let b: Vec<f64> = amounts(&mut pcg, n, 0.02, true).iter().map(|reading| reading * shift).collect();
        for replicate in [Replicate::Block, Replicate::Process, Replicate::Turn, Replicate::Launch] {
            let found = compared(&a, &b, true, replicate);
            // A limit at the margin may be exceeded only if the verdict is "different", and kept only if the arm is not
            // called worse.
            let bounds = found.evidence.ratio_bounds();
            let most = 1.0 + found.margin;
            let Ok((low, high)) = bounds else {
                assert_eq!(found.verdict, Verdict::CantTell);
                continue;
            };
            if low > most {
                assert_eq!(found.verdict, Verdict::Different, "{found:?}");
            }
            if high <= most {
                assert!(
                    found.verdict != Verdict::Different || found.evidence.effect() < Some(1.0),
                    "{found:?}"
                );
            }
        }
    }
}
