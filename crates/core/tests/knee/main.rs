//! The search for the highest rate, on simulated queues whose highest rate is known.

#![allow(clippy::print_stdout)]

mod queue;

use queue::SimulatedServer;
use scruple_core::knee::{Knee, KneeInterval, KneeSearch, LimitCount, Measurement, Next, RateOutcome, Slo};
use scruple_stats::Pcg;

fn search(server: &SimulatedServer, slo: &Slo, search: KneeSearch, seed: u64) -> (KneeInterval, usize) {
    let mut random = Pcg::new(seed);
    let mut knee = Knee::new(search, slo);
    let mut steps = 0;
    loop {
        match knee.next() {
            Next::Found(found) => return (found, steps),
            Next::Measure(rate) => {
                steps += 1;
                knee.report(server.measure(slo, rate, 2000, &mut random));
            }
        }
    }
}

/// The number in the environment variable `name`, or else `otherwise`. The searches can be repeated with other seeds.
fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Checks that at least 95 % of the searches find an interval that holds `truth`, wherever they begin, and that 80 % of
/// the intervals are at most a factor of 2 wide.
fn covered(name: &str, server: &SimulatedServer, truth: f64) {
    let slo = Slo::parse("p99<50ms").expect("valid");
    let (first, searches) =
        (from_environment("KNEE_FIRST_SEED", 5000), from_environment("KNEE_SEARCHES", 20));
    let (mut missed, mut widths, mut taken, mut settled) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let precision = 1.0 + from_environment("KNEE_PERCENT", 25) as f64 / 100.0;
    for seed in first..first + searches {
        let from = [100.0, 37.0, 1000.0][seed as usize % 3];
        let steps = from_environment("KNEE_STEPS", 100) as u32;
        let search_for = KneeSearch { from, precision, steps, ..KneeSearch::default() };
        let (found, steps) = search(server, &slo, search_for, seed);
        assert!(steps as u32 <= search_for.steps, "{name}: {steps} steps");
        settled += u64::from(found.settled);
        taken.push(steps);
        let (low, high) = (found.low.unwrap_or(0.0), found.high.unwrap_or(f64::INFINITY));
        widths.push(high / low);
        if !(low..=high).contains(&truth) {
            missed.push((seed, low, high));
        }
    }
    widths.sort_by(f64::total_cmp);
    taken.sort_unstable();
    let width = |share: f64| widths[(widths.len() as f64 * share) as usize];
    println!(
        "{name}: {} of {searches} missed, {settled} settled in {} steps, widths {:.2} and {:.2}",
        missed.len(),
        taken[taken.len() / 2],
        width(0.5),
        width(0.9)
    );
    assert!(missed.len() as u64 * 20 <= searches, "{name}: {truth} was missed by {missed:?}");
    assert!(settled * 4 >= searches * 3, "{name}: too few searches settle: {settled}, {widths:?}");
}

const ONE: SimulatedServer =
    SimulatedServer { workers: 1, service: 0.005, exponential: true, pause: None, absence: None };

#[test]
fn the_interval_covers_the_highest_rate_of_one_worker_with_exponential_times() {
    // In M/M/1 the response time is exponential with the rate μ - λ.
    covered("M/M/1", &ONE, 200.0 - 100_f64.ln() / 0.05);
}

// The true rate of four workers is from the formula of Erlang. Those of the other servers are from simulations of eight
// million requests at each rate of a bisection.

#[test]
fn the_interval_covers_the_highest_rate_of_one_worker_with_fixed_times() {
    covered("M/D/1", &SimulatedServer { exponential: false, ..ONE }, 154.9);
}

#[test]
fn the_interval_covers_the_highest_rate_of_four_workers() {
    covered("M/M/4", &SimulatedServer { workers: 4, service: 0.01, ..ONE }, 242.5);
}

#[test]
fn the_interval_covers_the_highest_rate_of_a_server_with_pauses() {
    covered("pauses", &SimulatedServer { service: 0.002, pause: Some((0.04, 1.0)), ..ONE }, 321.0);
}

#[test]
fn the_interval_covers_the_highest_rate_though_the_generator_is_often_late() {
    // It has no core four times in a second for 6 ms on average, where the limit is 50 ms.
    covered("late", &SimulatedServer { absence: Some((0.006, 4.0)), ..ONE }, 200.0 - 100_f64.ln() / 0.05);
}

#[test]
fn the_interval_covers_the_highest_rate_though_the_generator_is_late_by_as_much_as_the_limit() {
    // It has no core once in two seconds for 40 ms on average, where the limit is 50 ms.
    covered("later", &SimulatedServer { absence: Some((0.04, 0.5)), ..ONE }, 200.0 - 100_f64.ln() / 0.05);
}

#[test]
fn a_rate_that_only_delays_of_the_generator_make_bad_does_not_end_a_search() {
    // Above 200/s every twentieth request was recorded as too slow, which the generator may have done.
    let (found, _) = find(KneeSearch { steps: 40, ..KneeSearch::default() }, |rate| {
        let beyond = if rate > 200.0 { 12.5 } else { 0.0 };
        let outcome = if rate > 200.0 { RateOutcome::Bad } else { RateOutcome::Good };
        let count = LimitCount { requests: 250.0, beyond, least: 0.0 };
        Measurement { rate, outcome, kept_up: true, counts: vec![vec![count; 8]], late: 0.0 }
    });
    assert!(!found.settled && found.low.is_some_and(|low| low <= 200.0) && found.high.is_none(), "{found:?}");
}

#[test]
fn the_truths_of_the_other_tests_are_those_of_the_simulated_queues() {
    let near = |server: SimulatedServer, truth: f64| {
        let share = server.beyond(truth, 0.05, 400_000);
        assert!((0.0085..0.0115).contains(&share), "{share} at {truth}");
    };
    near(ONE, 200.0 - 100_f64.ln() / 0.05);
    near(SimulatedServer { exponential: false, ..ONE }, 154.9);
    near(SimulatedServer { workers: 4, service: 0.01, ..ONE }, 242.5);
    near(SimulatedServer { service: 0.002, pause: Some((0.04, 1.0)), ..ONE }, 321.0);
}

/// A measurement of a server that is good up to `capacity`, and falls behind at higher rates.
fn sharp(rate: f64, capacity: f64) -> Measurement {
    let kept_up = rate <= capacity;
    let outcome = if kept_up { RateOutcome::Good } else { RateOutcome::Bad };
    Measurement { rate, outcome, kept_up, counts: vec![vec![LimitCount::of(250.0, 0.0); 8]], late: 0.0 }
}

fn find(search: KneeSearch, mut server: impl FnMut(f64) -> Measurement) -> (KneeInterval, usize) {
    let mut knee = Knee::new(search, &Slo::parse("errors<1%").expect("valid"));
    let mut steps = 0;
    loop {
        match knee.next() {
            Next::Found(found) => return (found, steps),
            Next::Measure(rate) => knee.report(server(rate)),
        }
        steps += 1;
    }
}

#[test]
fn a_sharp_limit_is_found_by_halving() {
    for capacity in [0.02, 3.0, 99.0, 100.0, 777.0, 10_383.0, 123_456.0] {
        let (found, steps) =
            find(KneeSearch { precision: 1.1, ..KneeSearch::default() }, |rate| sharp(rate, capacity));
        let (low, high) = (found.low.expect("an end"), found.high.expect("an end"));
        assert!(low <= capacity && capacity < high, "{capacity}: {found:?}");
        assert!(found.settled && high / low <= 1.11 && steps <= 30, "{capacity}: {found:?} after {steps}");
    }
}

#[test]
fn the_ends_of_the_range_are_answers_too() {
    let (found, _) = find(KneeSearch { most: 5_000.0, ..KneeSearch::default() }, |rate| sharp(rate, 1e9));
    assert_eq!((found.low, found.high, found.settled), (Some(5_000.0), None, true));
    let (found, _) = find(KneeSearch::default(), |rate| sharp(rate, 0.0));
    assert!(found.settled && found.low.is_none() && found.high.is_none_or(|high| high < 0.001), "{found:?}");
}

#[test]
fn void_measurements_are_repeated_and_then_end_it() {
    let mut voids = 7;
    let (found, _) = find(KneeSearch::default(), |rate| {
        voids -= 1;
        let outcome = if voids >= 0 { RateOutcome::Void } else { sharp(rate, 500.0).outcome };
        Measurement { outcome, ..sharp(rate, 500.0) }
    });
    assert!(found.settled && !found.void, "{found:?}");
    let (found, steps) =
        find(KneeSearch::default(), |rate| Measurement { outcome: RateOutcome::Void, ..sharp(rate, 500.0) });
    assert_eq!((found.void, found.settled, found.low, steps), (true, false, None, 8));
    // Where the generator was never punctual, no stretch is left, and fewer measurements tell it.
    let (found, steps) = find(KneeSearch::default(), |rate| {
        let never = sharp(rate, 500.0);
        let counts = never.counts.iter().map(|_| Vec::new()).collect();
        Measurement { outcome: RateOutcome::Void, counts, ..never }
    });
    assert_eq!((found.void, found.low, steps), (true, None, 4));
}

/// A server that keeps its limits up to 600/s, above which it shares so few cores with the generator that both are late:
/// nothing but the lateness breaks the limit, and no number of measurements changes that.
#[test]
fn a_search_with_a_late_generator_ends_when_more_measurements_would_add_nothing() {
    let (found, steps) = find(KneeSearch::default(), |rate| {
        let is_late = rate > 600.0;
        let beyond = if is_late { 12.5 } else { 0.0 };
        let outcome = if is_late { RateOutcome::Bad } else { RateOutcome::Good };
        let count = LimitCount { requests: 250.0, beyond, least: 0.0 };
        let late = if is_late { 0.05 } else { 0.0 };
        Measurement { rate, outcome, kept_up: true, counts: vec![vec![count; 8]], late }
    });
    assert!(steps <= 25, "{found:?} after {steps}");
    assert!(found.late.is_some() && found.low.is_some_and(|low| low > 400.0 && low <= 600.0), "{found:?}");
    assert_eq!((found.high, found.settled), (None, false));
}

/// A server on a machine so busy that it and the generator wait for a core at any rate: every other measurement breaks
/// the limit, whatever the rate.
#[test]
fn a_machine_that_keeps_the_generator_from_its_core_says_no_highest_rate_of_the_server() {
    let busy = |late: f64| {
        let mut taken = 0;
        find(KneeSearch { most: 8_000.0, ..KneeSearch::default() }, |rate| {
            taken += 1;
            let capacity = if rate > 600.0 && taken % 2 == 0 { 0.0 } else { 1e9 };
            Measurement { late, ..sharp(rate, capacity) }
        })
        .0
    };
    let punctual = busy(0.0);
    assert!(punctual.late.is_none() && punctual.high.is_some(), "{punctual:?}");
    let late = busy(0.04);
    assert_eq!((late.estimate, late.high, late.settled), (None, None, false), "{late:?}");
    assert!(late.late.is_some_and(|share| (share - 0.04).abs() < 1e-9), "{late:?}");
    assert!(late.low >= punctual.low && late.low.is_some(), "{late:?} {punctual:?}");
    // The highest rate allowed was kept each time: no lateness makes it less.
    let (found, _) = find(KneeSearch { most: 5_000.0, ..KneeSearch::default() }, |rate| Measurement {
        late: 0.04,
        ..sharp(rate, 1e9)
    });
    assert_eq!((found.low, found.settled, found.late), (Some(5_000.0), true, None));
}

#[test]
fn a_rate_that_breaks_its_limits_half_of_the_time_is_not_sustained() {
    let mut knee = Knee::new(KneeSearch::default(), &Slo::parse("errors<1%").expect("valid"));
    for (rate, capacity) in [(100.0, 200.0), (200.0, 200.0), (200.0, 150.0)] {
        knee.report(sharp(rate, capacity));
    }
    assert_eq!(knee.next(), Next::Measure(141.0));
}

#[test]
fn a_rate_at_which_the_server_fell_behind_once_is_not_surely_good() {
    let mut knee = Knee::new(KneeSearch::default(), &Slo::parse("errors<5%").expect("valid"));
    knee.report(sharp(100.0, 500.0));
    knee.report(sharp(600.0, 500.0));
    let found = knee.result_if_ended();
    assert!(found.low.is_some_and(|low| low <= 100.0), "{found:?}");
}
