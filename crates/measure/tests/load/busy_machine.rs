//! Searches on a machine whose cores are kept busy by other programs.

use super::servers::{Loop, Stall};
use super::{small, target};
use scruple_core::knee::{KneeSearch, RateOutcome, Slo};
use scruple_measure::load::{Capacity, GeneratorThreads, LoadProgress, Plan, capacity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Calls `then` while this many threads for each core only compute.
fn while_busy<R>(each: usize, then: impl FnOnce() -> R) -> R {
    let over = AtomicBool::new(false);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..each * cores {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = then();
        over.store(true, Ordering::Relaxed);
        result
    })
}

/// Searches the highest rate of a server that answers thousands of requests in a second.
fn search(threads: GeneratorThreads) -> Capacity {
    let server = Loop::tcp(Stall::default());
    // A measurement takes up to thirty times as long, and here 900 requests.
    let plan = Plan { threads, max_requests: None, duration: Duration::from_millis(30), ..small() };
    let slo = Slo::parse("p99<2ms").expect("valid");
    let steps = KneeSearch { from: 1000.0, most: 1000.0, precision: 1.5, repeats: 1, steps: 3 };
    capacity(&target(server.address), &plan, &slo, steps, None, &AtomicBool::new(false), &mut |_, _| {})
        .expect("a search")
}

#[test]
fn a_search_ends_when_another_measurement_does_not_fit_into_its_budget() {
    let server = Loop::tcp(Stall::default());
    let plan = Plan { max_requests: None, duration: Duration::from_millis(100), ..small() };
    let slo = Slo::parse("p99<10s").expect("valid");
    let search = KneeSearch { from: 1000.0, most: 1000.0, precision: 1.5, repeats: 2, steps: 4 };
    let measured = |budget: Option<Duration>| {
        capacity(
            &target(server.address),
            &plan,
            &slo,
            search,
            budget,
            &AtomicBool::new(false),
            &mut |_, _| {},
        )
        .expect("a search")
    };
    let ended = measured(Some(Duration::from_secs(2)));
    assert_eq!((ended.points.len(), ended.found.settled), (1, false));
    assert!(measured(None).points.len() >= 2);
}

#[test]
fn a_search_that_is_interrupted_keeps_the_part_of_its_first_measurement() {
    let server = Loop::tcp(Stall::default());
    let plan = Plan { max_requests: None, duration: Duration::from_secs(1000), ..small() };
    let slo = Slo::parse("p99<10s").expect("valid");
    let search = KneeSearch { from: 1000.0, most: 1000.0, precision: 1.5, repeats: 2, steps: 4 };
    let interrupted = AtomicBool::new(false);
    let mut interrupt = |_, seen: &LoadProgress| {
        if seen.answered > 0 {
            interrupted.store(true, Ordering::Relaxed);
        }
    };
    let target = target(server.address);
    let found = capacity(&target, &plan, &slo, search, None, &interrupted, &mut interrupt).expect("a search");
    assert!(found.interrupted && found.found.low.is_none() && found.found.high.is_none());
    let [point] = found.points.as_slice() else { panic!("{} measurements", found.points.len()) };
    assert!(point.outcome == RateOutcome::Void && point.load.counts.answered > 0);
    assert_eq!(found.tallies.len(), 1);
}

#[test]
fn a_busy_machine_is_not_held_against_the_server_by_a_punctual_generator() {
    let threads = GeneratorThreads { priority: true, ..GeneratorThreads::of(1) };
    let capacity = while_busy(6, || search(threads));
    let late: Vec<(RateOutcome, f64)> =
        capacity.points.iter().map(|point| (point.outcome, point.late)).collect();
    // Where the server got its core nevertheless, the rate is kept.
    assert!(capacity.found.high.is_none(), "{:?}, {late:?}", capacity.found);
    assert!(
        capacity.found.late.is_some() || capacity.found.low == Some(1000.0),
        "{:?}, {late:?}",
        capacity.found
    );
    for load in capacity.points.iter().map(|point| &point.load) {
        let ticks = load.tick_lateness.count();
        assert!(ticks * 1_000_000 > load.span * 9 / 10, "{ticks} ticks in {} ns", load.span);
        let says_so = load.doubts.iter().any(|doubt| doubt.code == "machine-busy" && !doubt.voids);
        assert_eq!(says_so, load.tick_lateness.quantile(0.99) > Some(500_000), "{:?}", load.doubts);
    }
}

#[test]
fn a_generator_that_is_placed_like_the_server_needs_no_ticks() {
    let ticks = |threads| {
        search(threads).points.iter().map(|point| point.load.tick_lateness.count()).collect::<Vec<_>>()
    };
    assert!(ticks(GeneratorThreads::of(1)).iter().all(|ticks| *ticks == 0));
    let on_a_core = GeneratorThreads { cores: vec![0], ..GeneratorThreads::of(1) };
    assert!(ticks(on_a_core).iter().all(|ticks| *ticks > 0));
}
