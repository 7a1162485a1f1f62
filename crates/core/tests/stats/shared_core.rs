//! How often two invocations agree on a case whose core is shared for some of the time, by simulation.
#![expect(clippy::print_stdout, reason = "the figures are what one runs the long version for")]

use crate::coverage::share;
use crate::noise::normal;
use scruple_core::judge::bench_cases;
use scruple_core::judge::witnesses::{ADDITIONS, ADDITIONS_ALONE, BESIDE, CYCLE};
use scruple_core::metric::{Metric, Pass, Quality};
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Figure, Reading};
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::Unit;
use scruple_stats::rng::Pcg;
use scruple_stats::tare::Net;

/// The cost of the case alone on a core, in nanoseconds, and how many times that on a shared one: a sort in Guile.
const COST: f64 = 1600.0;
const SHARED: f64 = 1.36;

/// The share of witnesses that show the state of another moment.
const MISTAKEN: f64 = 0.05;

/// The length of a cycle in nanoseconds, and the cycles of independent additions on a core alone.
const CYCLE_LENGTH: f64 = 0.27;
const CYCLES_ALONE: f64 = 731.0 / CYCLE_LENGTH;

/// One invocation of five processes. Its core is shared for any share of the time up to nine tenths, and in every third
/// block on average, that is drawn anew. The tare does not show it.
fn invocation(pcg: &mut Pcg, has_witness: bool) -> Net {
    let busy = 0.9 * pcg.unit();
    invocation_on(pcg, has_witness, busy, None)
}

/// One invocation on a core that is shared for this share of the time. The cycles of the additions on a core alone are
/// known from earlier invocations, or not.
fn invocation_on(pcg: &mut Pcg, has_witness: bool, busy: f64, alone: Option<f64>) -> Net {
    let subject = Subject::Command { argv: vec!["case".to_owned()] };
    let mut case = Arm::new("case", subject.clone(), Role::Subject);
    let mut tare = Arm::new("case", subject, Role::Tare);
    let mut keep = |of_case: bool, key: &str, value: f64, number: u32| {
        let arm = if of_case { &mut case } else { &mut tare };
        let metric = Metric::custom(key, Unit::Nanoseconds, Quality::Noisy, Pass::Timing);
        let mut figure = arm.figures.remove(key);
        Figure::add(&mut figure, Reading::of(&metric, value, "simulated"), Pass::Timing, number);
        arm.figures.extend(figure.map(|figure| (key.to_owned(), figure)));
    };
    if let Some(alone) = alone {
        keep(false, ADDITIONS_ALONE, alone, 0);
    }
    let mut shared = pcg.unit() < busy;
    for (process, blocks) in (0..).zip([12, 12, 12, 30, 30]) {
        for block in 0..blocks {
            if pcg.unit() < 1.0 / 3.0 {
                shared = pcg.unit() < busy;
            }
            let slow = if shared { SHARED } else { 1.0 };
            let seen = if pcg.unit() < MISTAKEN { pcg.unit() < busy } else { shared };
            let witness = 731.0 * if seen { 1.37 } else { 1.0 };
            let mut noise = || (0.01 * normal(pcg)).exp();
            let witness = witness * noise();
            let readings = [
                (true, "time.wall", COST * slow * noise()),
                (false, "time.wall", 10.0 * noise()),
                (false, CYCLE, CYCLE_LENGTH),
                (false, BESIDE, witness),
                (false, ADDITIONS, witness / CYCLE_LENGTH),
            ];
            for (of_case, key, value) in
                readings.into_iter().filter(|(_, key, _)| has_witness || *key != BESIDE)
            {
                keep(of_case, key, value, process * BLOCKS_OF_A_PROCESS + block);
            }
        }
    }
    bench_cases::net(&case, &tare, "time.wall", 0.95).expect("five processes")
}

fn agree(one: &Net, other: &Net) -> bool {
    let (low, high) = (one.estimate.min(other.estimate), one.estimate.max(other.estimate));
    let overlap = one.interval.low <= other.interval.high && other.interval.low <= one.interval.high;
    high <= 1.03 * low || overlap
}

fn pairs_of_invocations(tries: u64) {
    for has_witness in [false, true] {
        let agreed =
            share(tries, 92, |pcg| agree(&invocation(pcg, has_witness), &invocation(pcg, has_witness)));
        let right = share(tries, 93, |pcg| {
            (invocation(pcg, has_witness).estimate / (COST - 10.0) - 1.0).abs() < 0.03
        });
        println!(
            "witness: {has_witness}; two invocations agree in {:.1} %; a net is within 3 % of that on a core alone in {:.1} %",
            100.0 * agreed,
            100.0 * right
        );
        match has_witness {
            true => assert!(agreed >= 0.97 && right >= 0.95, "{agreed}, {right}"),
            false => assert!(right <= 0.75, "the simulated machine does not need a witness: {right}"),
        }
    }
}

#[test]
fn two_invocations_agree_although_the_core_is_shared_for_some_of_the_time() {
    pairs_of_invocations(30);
}

/// One invocation has the core for itself, the other one shares it in all blocks.
fn pairs_with_one_invocation_on_a_shared_core(tries: u64) {
    for alone in [None, Some(CYCLES_ALONE)] {
        let agreed = share(tries, 94, |pcg| {
            agree(&invocation_on(pcg, true, 0.0, alone), &invocation_on(pcg, true, 1.0, alone))
        });
        println!(
            "additions on a core alone: {alone:?}; an invocation on a shared core agrees with one on a core alone in {:.1} %",
            100.0 * agreed
        );
        match alone {
            Some(_) => assert!(agreed >= 0.95, "{agreed}"),
            None => assert!(agreed <= 0.1, "the simulated machine shows sharing by itself: {agreed}"),
        }
    }
}

#[test]
fn an_invocation_on_a_shared_core_agrees_with_earlier_ones_that_were_alone() {
    pairs_with_one_invocation_on_a_shared_core(30);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn invocations_on_a_shared_core_at_ten_times_the_size() {
    pairs_of_invocations(1000);
    pairs_with_one_invocation_on_a_shared_core(1000);
}
