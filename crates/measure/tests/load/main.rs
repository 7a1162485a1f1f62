//! Tests of the load engine on servers with known behaviour, mostly faults. All load stays on this machine and is
//! bounded in requests and time. No test needs a quiet machine.
#![allow(unsafe_code, clippy::print_stdout)]

mod busy_machine;
mod connections;
mod cost;
mod encrypted;
mod free_port;
mod http2;
mod interruptions;
mod servers;
mod sessions;
mod stalls;
mod stopped;

use scruple_core::knee::{KneeSearch, Slo};
use scruple_measure::load::cost::collections;
use scruple_measure::load::{
    AnswerCheck, Arrivals, Ended, Failure, GeneratorThreads, LoadError, LoadResult, Pace, Plan, Request,
    RequestOrder, Target, WarmUp, allow_descriptors, capacity, run,
};
use servers::{HELLO, Loop, Stall};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn target(address: SocketAddr) -> Target {
    Target::parse(&format!("http://{address}/")).expect("a target").0
}

/// A plan for a closed loop of four connections and a hundred requests, with time for them on any machine.
fn small() -> Plan {
    Plan {
        connections: 4,
        max_requests: Some(100),
        duration: Duration::from_secs(60),
        timeout: Duration::from_secs(30),
        warm_up: WarmUp::Off,
        ..Plan::of(Request::get("/"))
    }
}

/// The same for servers that may leave a request unanswered.
fn impatient() -> Plan {
    Plan { duration: Duration::from_secs(3), timeout: Duration::from_secs(1), ..small() }
}

fn load(target: &Target, plan: &Plan) -> Result<LoadResult, LoadError> {
    let began = Instant::now();
    let mut first = None;
    let result =
        run(target, plan, &AtomicBool::new(false), &mut |seen| _ = first.get_or_insert(seen.elapsed));
    assert!(first.is_none_or(|elapsed| elapsed == 0.0), "each turn begins at zero");
    let bound = plan.duration + 2 * plan.timeout + Duration::from_secs(60);
    assert!(began.elapsed() < bound, "it hung for {:?}", began.elapsed());
    result
}

/// Loads a faulty server, and checks that every request fails with this class.
fn all_fail(address: SocketAddr, class: Failure) -> LoadResult {
    let result = load(&target(address), &small()).expect("it accepts connections");
    assert_eq!(result.counts.answered, 0);
    assert_eq!(result.counts.failures.total(), result.counts.due, "{:?}", result.counts.failures);
    assert_eq!(result.counts.failures.of(class), result.counts.due, "{:?}", result.counts.failures);
    assert!(!result.valid());
    result
}

#[test]
fn a_good_server_answers_all() {
    let result = load(&target(servers::answers(HELLO)), &small()).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total(), result.counts.bytes), (100, 0, 1300));
    assert_eq!(
        (result.counts.due, result.times.response.count(), result.times.service.count()),
        (100, 100, 100)
    );
    assert_eq!((result.ended, result.times.lag.count(), result.reconnects), (Ended::Planned, 0, 0));
    assert_eq!(result.generator.requests, 100);
    assert_eq!(result.slowest.len(), 100);
    assert_eq!(result.parts.iter().map(|part| part.counts.answered).sum::<u64>(), 100);
}

#[test]
fn a_closed_loop_has_no_higher_rate_than_its_server_can_give() {
    // Four connections, and 50 ms for an answer: 80 answers in a second at most.
    let server = servers::serve(|mut stream| {
        while servers::request(&mut stream) {
            std::thread::sleep(Duration::from_millis(50));
            let _ = stream.write_all(HELLO);
        }
    });
    let most = |requests: u64| Plan { max_requests: Some(requests), ..small() };
    let lasting = |ms| Plan { max_requests: None, duration: Duration::from_millis(ms), ..small() };
    for plan in [most(1), most(4), most(7), most(20), lasting(30), lasting(330)] {
        let result = load(&target(server), &plan).expect("a run");
        let (rate, due) = (result.rate(), result.counts.due);
        // On a busy machine, 30 ms may be over before the generator has sent anything.
        assert!((rate > 0.0) == (due > 0), "{rate} of {due} in {:?}", plan.duration);
        assert!(rate <= 80.0, "{rate} of {:?}, {:?}", plan.max_requests, plan.duration);
        assert_eq!(result.counts.answered, due);
    }
}

#[test]
fn every_fault_has_its_class() {
    all_fail(servers::answers_and_closes(b""), Failure::ClosedEarly);
    all_fail(servers::answers(b"220 mail.example.org ESMTP ready\r\n"), Failure::Garbage);
    all_fail(servers::answers_and_closes(&HELLO[..70]), Failure::HalfResponse);
    all_fail(servers::answers_and_closes(&HELLO[..20]), Failure::HalfResponse);
    all_fail(servers::resets(), Failure::Reset);
    all_fail(servers::fails_after(0), Failure::BadStatus);
    let twice: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    all_fail(servers::answers(twice), Failure::Garbage);
}

#[test]
fn a_server_that_never_answers_counts_with_the_time_waited() {
    let plan = Plan { timeout: Duration::from_millis(200), duration: Duration::from_millis(500), ..small() };
    let silent = servers::serve(|mut stream| while servers::request(&mut stream) {});
    let result = load(&target(silent), &plan).expect("it accepts connections");
    assert_eq!(
        result.counts.failures.of(Failure::TimedOut),
        result.counts.due,
        "{:?}",
        result.counts.failures
    );
    assert!((4..=16).contains(&result.counts.due), "{}", result.counts.due);
    let shortest = result.times.response.quantile(0.0).expect("some");
    assert!(shortest >= 199_000_000, "{shortest}");
}

#[test]
fn a_run_with_more_time_outs_than_it_may_have_is_given_up() {
    let silent = servers::serve(|mut stream| while servers::request(&mut stream) {});
    for (pace, threads) in [(Pace::Closed, 1), (Pace::Open { rate: 50.0, arrivals: Arrivals::Constant }, 2)] {
        let plan = Plan {
            pace,
            threads: GeneratorThreads::of(threads),
            timeout: Duration::from_millis(200),
            most_timeouts: Some(3),
            duration: Duration::from_secs(600),
            max_requests: None,
            ..small()
        };
        match load(&target(silent), &plan) {
            Err(error @ LoadError::NoAnswers { requests, .. }) => {
                assert!((3..=8).contains(&requests), "{requests}");
                assert!(error.to_string().contains("no answer within 200 ms"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn in_an_open_loop_nothing_that_was_due_is_forgotten() {
    let silent = servers::serve(|mut stream| while servers::request(&mut stream) {});
    let plan = Plan {
        pace: Pace::Open { rate: 200.0, arrivals: Arrivals::Constant },
        timeout: Duration::from_millis(300),
        duration: Duration::from_millis(500),
        max_requests: None,
        ..small()
    };
    let result = load(&target(silent), &plan).expect("it accepts connections");
    assert_eq!(result.counts.due, 100);
    assert_eq!(result.counts.failures.total(), 100, "{:?}", result.counts.failures);
    assert!(result.counts.failures.of(Failure::Unsent) > 50, "{:?}", result.counts.failures);
    assert_eq!(result.times.response.count(), 100);
    assert!(result.counts.backlog > 50);
}

#[test]
fn a_refused_port_is_an_error_at_once() {
    let mut server = Loop::tcp(Stall::default());
    let address = server.address;
    server.die();
    let plan = Plan { timeout: Duration::from_secs(120), ..small() };
    let began = Instant::now();
    match load(&target(address), &plan) {
        Err(LoadError::Unreachable { class: Failure::Refused, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(began.elapsed() < plan.timeout);
    let nobody = Target::unix(std::path::Path::new("/nonexistent/socket"));
    assert!(matches!(load(&nobody, &small()), Err(LoadError::NoSocket { .. })));
}

#[test]
fn a_server_that_dies_ends_the_run_and_keeps_the_figures() {
    for pace in [Pace::Closed, Pace::Open { rate: 500.0, arrivals: Arrivals::Poisson }] {
        let mut server = Loop::tcp(Stall::default());
        let address = server.address;
        let plan = Plan {
            pace,
            max_requests: None,
            duration: Duration::from_secs(40),
            timeout: Duration::from_secs(1),
            ..small()
        };
        let killer = std::thread::spawn(move || {
            let began = Instant::now();
            while server.answered.lock().expect("not poisoned").len() < 50
                && began.elapsed() < Duration::from_secs(15)
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            server.die();
        });
        let began = Instant::now();
        let result = load(&target(address), &plan).expect("it was alive");
        killer.join().expect("killed");
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert_eq!(result.ended, Ended::ServerGone);
        assert!(
            result.counts.answered > 0 && result.counts.failures.of(Failure::Refused) > 0,
            "{:?}",
            result.counts.failures
        );
        let gone = result.doubts.iter().find(|doubt| doubt.code == "server-gone").expect("it is said");
        assert!(!result.valid() && gone.text.contains("its last answer came within"), "{gone:?}");
    }
}

#[test]
fn statuses_and_checks_are_distinguished() {
    let half = load(&target(servers::fails_after(50)), &small()).expect("a run");
    assert_eq!((half.counts.answered, half.counts.failures.of(Failure::BadStatus)), (50, 50));
    let status = half.counts.failures.statuses().iter().map(|(status, count)| (*status, *count));
    assert_eq!(status.collect::<Vec<_>>(), [(500, 50)]);
    let mut plan = small();
    plan.requests[0].check = AnswerCheck { contains: Some("Hello".into()), ..AnswerCheck::default() };
    let address = servers::answers(HELLO);
    assert_eq!(load(&target(address), &plan).expect("a run").counts.answered, 100);
    plan.requests[0].check = AnswerCheck { contains: Some("Goodbye".into()), ..AnswerCheck::default() };
    let result = load(&target(address), &plan).expect("a run");
    assert_eq!(result.counts.failures.of(Failure::CheckFailed), 100);
}

#[test]
fn an_answer_that_is_not_accepted_says_why() {
    let long = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "X: y\r\n".repeat(200));
    let result = load(&target(servers::answers(long.leak().as_bytes())), &impatient()).expect("a run");
    let why = result.counts.failures.describe(Failure::Garbage);
    assert!(why.ends_with("followed by more: it has more than 128 header lines"), "{why}");
    let speaks_another_protocol =
        |result: &LoadResult| result.doubts.iter().any(|doubt| doubt.text.contains("another protocol"));
    assert!(!speaks_another_protocol(&result), "{:?}", result.doubts);
    let other = load(&target(servers::answers(b"220 mail.example ESMTP\r\n")), &impatient()).expect("a run");
    assert!(speaks_another_protocol(&other), "{:?}", other.doubts);
}

#[test]
fn kinds_are_drawn_by_weight_or_in_turn() {
    let address = servers::answers(HELLO);
    let mut plan = small();
    plan.requests = vec![Request { weight: 3.0, ..Request::get("/often") }, Request::get("/seldom")];
    plan.max_requests = Some(400);
    let result = load(&target(address), &plan).expect("a run");
    assert!((250..=350).contains(&result.kinds[0].answered), "{}", result.kinds[0].answered);
    let seldom = &result.kinds[1];
    assert_eq!(seldom.service.as_ref().map(|service| service.count()), Some(seldom.answered));
    plan.order = RequestOrder::InTurn;
    let result = load(&target(address), &plan).expect("a run");
    assert_eq!((result.kinds[0].answered, result.kinds[1].answered), (200, 200));
}

#[test]
fn a_unix_socket_and_several_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let _server = Loop::unix(&path);
    for pace in [Pace::Closed, Pace::Open { rate: 2000.0, arrivals: Arrivals::Poisson }] {
        let plan = Plan {
            threads: GeneratorThreads::of(3),
            connections: 7,
            max_requests: Some(1000),
            pace,
            ..small()
        };
        let result = load(&Target::unix(&path), &plan).expect("a run");
        assert_eq!((result.counts.answered, result.counts.failures.total()), (1000, 0), "{pace:?}");
        assert_eq!(result.generator.threads, 3);
    }
}

#[test]
fn a_stall_counts_for_every_request_that_it_held_up() {
    let server = Loop::tcp(Stall { period: 1000, length: 100 });
    // The rate is low, so that a busy machine catches up between the stalls, and much less than a hundredth of the
    // requests have been sent when a stall begins.
    let (rate, connections) = (500.0, 3);
    let plan = Plan {
        pace: Pace::Open { rate, arrivals: Arrivals::Constant },
        connections,
        max_requests: None,
        duration: Duration::from_secs(4),
        timeout: Duration::from_secs(5),
        ..small()
    };
    let result = load(&target(server.address), &plan).expect("a run");
    assert_eq!((result.counts.due, result.counts.answered), (2000, 2000));
    // The server's record is the truth. It answers in the order in which requests were due.
    let mut answered = server.answered.lock().expect("not poisoned").clone();
    answered.sort_unstable();
    assert_eq!(answered.len(), 2000);
    let due = |index: usize| result.started.0 + (index as f64 * 1e9 / rate) as u64;
    let mut truth: Vec<u64> =
        answered.iter().enumerate().map(|(index, time)| time.saturating_sub(due(index))).collect();
    truth.sort_unstable();
    let truth = truth[truth.len() * 99 / 100] as f64;
    let ours = result.times.response.quantile(0.99).expect("some") as f64;
    assert!(truth > 50e6, "the server did not stall: {truth}");
    let late = (result.times.lateness.max().unwrap_or(0) + result.generator.waited) as f64;
    assert!((ours - truth).abs() <= 0.05 * truth + late, "p99 {ours}, truth {truth}, the machine {late}");
    assert!(result.times.service.quantile(0.99).expect("some") < ours as u64);
    // The pauses are taken from the server's record, because on a busy machine the generator does not see all of
    // them. Each lasts until the server has caught up, which also takes time there.
    let mut pauses: Vec<(u64, u64)> = Vec::new();
    for (index, pair) in answered.windows(2).enumerate().filter(|(_, pair)| pair[1] - pair[0] > 20_000_000) {
        let from = pair[0] - result.started.0;
        let is_prompt = |at: &usize| answered[*at].saturating_sub(due(*at)) < 20_000_000;
        let caught_up = (index + 1..answered.len()).find(is_prompt).unwrap_or(answered.len() - 1);
        if pauses.last().is_none_or(|(_, to)| from >= *to) {
            pauses.push((from, answered[caught_up] - result.started.0));
        }
    }
    assert!(!pauses.is_empty() && !result.stalls.is_empty(), "{pauses:?}, {:?}", result.stalls);
    let (met, slow) = result.met_a_pause(&pauses, 50_000_000);
    assert!(slow > 0 && met * 10 > slow * 9, "{met} of {slow}");
    let started = result.started.0;
    let on_the_clock: Vec<_> = pauses.iter().map(|(from, to)| (from + started, to + started)).collect();
    let held = collections::Pauses::of(&result, &on_the_clock);
    assert_eq!((held.count, held.requests), (pauses.len(), 2000));
    assert!(
        held.slow > 0 && held.slow <= 20 && held.met.is_none_or(|met| met * 10 > held.slow * 8),
        "{held:?}"
    );
    let behind = LoadResult { behind: result.span, ..result.clone() };
    assert_eq!(collections::Pauses::of(&behind, &on_the_clock).met, None, "they waited in the backlog");
    assert_eq!(collections::Pauses::of(&result, &[(0, started)]).count, 0, "before the load");
}

#[test]
fn the_capacity_of_a_server_is_found() {
    // The server handles one connection at a time and takes 2 ms for each request, so at most 500 per second.
    let turn = std::sync::Mutex::new(());
    let slow = servers::serve(move |mut stream| {
        use std::io::Write;
        let _ = stream.set_nodelay(true);
        while servers::request(&mut stream) {
            let held = turn.lock().expect("not poisoned");
            std::thread::sleep(Duration::from_millis(2));
            drop(held);
            if stream.write_all(HELLO).is_err() {
                break;
            }
        }
    });
    let plan = Plan { connections: 8, duration: Duration::from_millis(300), max_requests: None, ..small() };
    // No request fails, so only the growing backlog shows that a rate is too high.
    let slo = Slo::parse("errors<5%").expect("valid");
    let search = KneeSearch { from: 150.0, most: 5_000.0, precision: 1.5, repeats: 1, steps: 14 };
    let capacity =
        capacity(&target(slow), &plan, &slo, search, None, &AtomicBool::new(false), &mut |_, _| {})
            .expect("a search");
    match capacity.found.high {
        Some(bad) => assert!(bad < 1_500.0, "{:?}", capacity.found),
        // On a busy machine several measurements in succession may be void, or the generator is late.
        None => assert!(capacity.found.void || capacity.found.late.is_some(), "{:?}", capacity.found),
    }
    if let Some(good) = capacity.found.low {
        assert!(good <= 510.0, "{:?}", capacity.found);
    }
    assert_eq!(
        capacity.points.len() as u32,
        capacity.tallies.iter().map(|t| t.good + t.bad + t.void).sum::<u32>()
    );
}

#[test]
fn a_server_that_falls_behind_is_not_reported_as_answering_what_was_due() {
    // Requests are served one after the other in 10 ms each, so at most 100 per second on any machine.
    let slow = servers::serve(|mut stream| {
        use std::io::Write;
        while servers::request(&mut stream) {
            std::thread::sleep(Duration::from_millis(10));
            if stream.write_all(HELLO).is_err() {
                break;
            }
        }
    });
    let plan = Plan {
        pace: Pace::Open { rate: 400.0, arrivals: Arrivals::Constant },
        connections: 1,
        max_requests: None,
        duration: Duration::from_millis(500),
        timeout: Duration::from_secs(60),
        ..small()
    };
    let result = load(&target(slow), &plan).expect("a run");
    assert_eq!((result.counts.due, result.counts.answered), (200, 200));
    assert!(result.rate() <= 105.0 && result.behind > 1_000_000_000, "{}, {}", result.rate(), result.behind);
    assert!(result.doubts.iter().any(|doubt| doubt.code == "rate-not-met"), "{:?}", result.doubts);
}

#[test]
fn a_generator_that_gets_no_core_says_so() {
    let server = Loop::tcp(Stall::default());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                pin_to_core_zero();
                let began = Instant::now();
                while !stop.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(10) {
                    std::hint::spin_loop();
                }
            });
        }
        let plan = Plan {
            pace: Pace::Open { rate: 2000.0, arrivals: Arrivals::Constant },
            threads: GeneratorThreads { cores: vec![0], ..GeneratorThreads::of(1) },
            duration: Duration::from_secs(1),
            max_requests: None,
            timeout: Duration::from_secs(5),
            ..small()
        };
        let result = load(&target(server.address), &plan);
        stop.store(true, Ordering::Relaxed);
        let result = result.expect("a run");
        // How late it was depends on the scheduler. Figures are void only if most requests were late.
        let late = |q: f64| result.times.lateness.quantile(q).unwrap_or(0) > plan.lateness.as_nanos() as u64;
        let doubt = result.doubts.iter().find(|doubt| doubt.code == "generator-late");
        assert_eq!(doubt.map(|doubt| doubt.voids), late(0.99).then(|| late(0.5)));
        let says_so = |code: &str| ["generator-late", "generator-starved"].contains(&code);
        assert!(result.doubts.iter().any(|doubt| says_so(&doubt.code)), "{:?}", result.doubts);
    });
}

fn pin_to_core_zero() {
    // SAFETY: a set that is zero is the empty set, and the call is about the calling thread.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[test]
fn ten_thousand_connections() {
    // Both ends of the connections are in this process.
    let connections = match allow_descriptors(20_500) {
        Ok(()) => 10_000,
        Err(limit) => {
            println!("only {limit} open files are allowed here: fewer connections");
            (limit.saturating_sub(500) / 2) as u32
        }
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let _server = Loop::unix(&path);
    let plan = Plan {
        connections,
        max_requests: Some(u64::from(connections) * 2),
        duration: Duration::from_secs(30),
        timeout: Duration::from_secs(30),
        ..small()
    };
    let result = load(&Target::unix(&path), &plan).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total()), (u64::from(connections) * 2, 0));
    assert_eq!(result.connect.count(), u64::from(connections));
}
