//! When connections are closed, made again and added.

use scruple_measure::load::{Arrivals, Failure, LoadResult, Pace, Plan, Target};
use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::servers::{self, HELLO};
use crate::{impatient, load, small, target};

#[test]
fn connections_are_renewed_when_the_server_or_the_plan_says_so() {
    let closes = servers::answers_and_closes(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end");
    let result = load(&target(closes), &small()).expect("a run");
    assert_eq!((result.counts.answered, result.counts.bytes, result.counts.failures.total()), (100, 1000, 0));
    assert!(result.reconnects >= 90 && result.connect.count() >= 90);
    let says_so = |result: &LoadResult| result.doubts.iter().any(|doubt| doubt.code == "server-closes");
    assert!(says_so(&result), "{:?}", result.doubts);
    let failing = b"HTTP/1.1 500 Oops\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let result = load(&target(servers::answers_and_closes(failing)), &small()).expect("a run");
    assert_eq!(result.counts.failures.of_answers(), 100);
    assert!(says_so(&result), "{:?}", result.doubts);
    let keeps = servers::answers_and_closes(HELLO);
    let result = load(&target(keeps), &Plan { keep_alive: false, ..small() }).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total()), (100, 0));
    assert!(!says_so(&result), "{:?}", result.doubts);
}

#[test]
fn an_answer_that_does_not_end_is_known_as_such() {
    let endless =
        servers::answers(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx");
    let plan = Plan { timeout: Duration::from_millis(200), max_requests: Some(4), ..impatient() };
    let failures = load(&target(endless), &plan).expect("it accepts connections").counts.failures;
    let why = failures.describe(Failure::TimedOut);
    assert!(why.contains("it ends with the connection, which stayed open"), "{why}, {failures:?}");
}

/// A server that closes a connection after two answers without saying so, while the next request may be on its way.
fn closes_after_two(read: &'static AtomicU64) -> Target {
    target(servers::serve(|mut stream| {
        for _ in 0..2 {
            if !servers::request(&mut stream) || stream.write_all(HELLO).is_err() {
                return;
            }
            read.fetch_add(1, Ordering::Relaxed);
        }
    }))
}

#[test]
fn requests_that_cross_the_close_of_a_connection_are_sent_again() {
    for pace in [Pace::Closed, Pace::Open { rate: 500.0, arrivals: Arrivals::Constant }] {
        let read: &AtomicU64 = Box::leak(Box::default());
        let result = load(&closes_after_two(read), &Plan { pace, ..small() }).expect("a run");
        let failures = &result.counts.failures;
        assert_eq!((result.counts.answered, failures.total()), (100, 0), "{pace:?}, {failures:?}");
        assert_eq!(
            (result.generator.requests, result.generator.reached),
            (100, read.load(Ordering::Relaxed))
        );
        assert_eq!(result.closings, result.reconnects, "it closes every connection after an answer");
        let said = result.doubts.iter().any(|doubt| doubt.code == "sent-again");
        assert_eq!(said, result.repeated > 0, "{}", result.repeated);
        assert!(pace != Pace::Closed || said, "a closed loop sends at once");
    }
}

#[test]
fn requests_that_the_server_may_have_processed_are_not_sent_again() {
    // The server reads the third request, and then closes.
    let dies = servers::serve(|mut stream| {
        for _ in 0..2 {
            if !servers::request(&mut stream) || stream.write_all(HELLO).is_err() {
                return;
            }
        }
        servers::request(&mut stream);
    });
    let result = load(&target(dies), &small()).expect("a run");
    assert_eq!(result.repeated, 0);
    assert!(result.counts.failures.of(Failure::ClosedEarly) >= 30, "{:?}", result.counts.failures);
}

#[test]
fn requests_that_cross_the_close_of_a_connection_do_not_count_for_costs() {
    static READ: AtomicU64 = AtomicU64::new(0);
    // A request that must not be repeated is not sent again.
    let mut post = small();
    post.requests[0].method = "POST".to_owned();
    let result = load(&closes_after_two(&READ), &post).expect("a run");
    let crossed = result.counts.failures.of(Failure::ClosedEarly) + result.counts.failures.of(Failure::Reset);
    assert!(crossed > 0 && crossed == result.counts.failures.total(), "{:?}", result.counts.failures);
    assert_eq!((result.generator.requests, result.generator.reached), (100, READ.load(Ordering::Relaxed)));
    assert_eq!((result.closings, result.repeated), (result.reconnects, 0));
    let why = result.counts.failures.describe(Failure::ClosedEarly);
    assert!(crossed == result.counts.failures.of(Failure::Reset) || why.contains("answered before"), "{why}");

    // Closing before the first answer is what the server does with the request.
    let none = servers::serve(|mut stream| {
        servers::request(&mut stream);
    });
    let result = load(&target(none), &small()).expect("a run");
    assert_eq!((result.generator.requests, result.generator.reached), (100, 100));
}

#[test]
fn an_answer_that_comes_before_the_whole_request_was_read_is_seen() {
    let hasty = servers::serve(|mut stream| {
        // Closing with unread bytes sends a reset after the answer.
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let mut plan = small();
    plan.requests[0].body = vec![b'x'; 3_000_000];
    let result = load(&target(hasty), &plan).expect("a run");
    assert_eq!(result.counts.failures.of(Failure::BadStatus), 100, "{:?}", result.counts.failures);
}

#[test]
fn a_server_of_one_connection_at_a_time_is_not_called_slow() {
    static TURN: Mutex<()> = Mutex::new(());
    let one = servers::serve(|mut stream| {
        let _turn = TURN.lock();
        while servers::request(&mut stream) && stream.write_all(HELLO).is_ok() {}
    });
    let found = |result: &LoadResult| {
        let doubt = result.doubts.iter().find(|doubt| doubt.code == "few-connections");
        doubt.map(|doubt| doubt.text.clone())
    };
    let result = load(&target(one), &impatient()).expect("a run");
    assert_eq!(result.counts.failures.of(Failure::TimedOut), 3, "{:?}", result.counts.failures);
    assert_eq!(result.connections_at_a_time(), Some(1));
    let text = found(&result).expect("it is said");
    assert!(text.contains("on 3 connections") && text.contains("on 1 connection:"), "{text}");
    assert!(text.contains("-c 1 or --no-keep-alive"), "{text}");

    // Every 25th answer is late, on any connection: this server is slow.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let slow = servers::serve(|mut stream| {
        while servers::request(&mut stream) {
            if COUNT.fetch_add(1, Ordering::Relaxed) % 25 == 24 {
                std::thread::sleep(Duration::from_secs(3));
            }
            if stream.write_all(HELLO).is_err() {
                return;
            }
        }
    });
    let result = load(&target(slow), &impatient()).expect("a run");
    assert!(result.counts.failures.of(Failure::TimedOut) > 0, "{:?}", result.counts.failures);
    assert_eq!((result.connections_at_a_time(), found(&result)), (None, None));
}

#[test]
fn no_connection_of_a_closed_loop_is_idle() {
    let plan = Plan { connections: 1, max_requests: None, duration: Duration::from_millis(800), ..small() };
    let result = load(&target(servers::answers(HELLO)), &plan).expect("a run");
    // The generator sleeps for 50 ms at a time. A busy machine delays it as well, but by any other time.
    let slept = result
        .slowest
        .iter()
        .filter(|slow| (49_900..50_500).contains(&((slow.sent - slow.intended) / 1_000)));
    assert!(slept.clone().count() < 2, "{:?}", slept.collect::<Vec<_>>());
}

#[test]
fn connections_are_added_when_all_are_busy() {
    let slow = servers::serve(|mut stream| {
        while servers::request(&mut stream) {
            std::thread::sleep(Duration::from_millis(50));
            if stream.write_all(HELLO).is_err() {
                break;
            }
        }
    });
    let plan = Plan {
        pace: Pace::Open { rate: 200.0, arrivals: Arrivals::Constant },
        connections: 1,
        grow_to: 40,
        max_requests: Some(200),
        ..small()
    };
    let result = load(&target(slow), &plan).expect("a run");
    assert_eq!((result.counts.answered, result.counts.failures.total()), (200, 0));
    assert!((5..=40).contains(&result.connect.count()), "{}", result.connect.count());
}

#[test]
fn checks_read_content_without_its_coding() {
    let pack = |mut packer: Box<dyn Read>| {
        let mut packed = Vec::new();
        packer.read_to_end(&mut packed).expect("memory");
        packed
    };
    let (text, level): (&[u8], _) = (b"Hello, world", flate2::Compression::fast());
    let answer = |coding: &str, packed: &[u8]| {
        let length = packed.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n");
        servers::answers([head.as_bytes(), packed].concat().leak())
    };
    let mut plan = small();
    plan.requests[0].check.contains = Some("world".to_owned());
    for (coding, packed) in [
        ("GZip", pack(Box::new(flate2::read::GzEncoder::new(text, level)))),
        ("deflate", pack(Box::new(flate2::read::ZlibEncoder::new(text, level)))),
        // As browsers do, Scruple also accepts it without the header of zlib.
        ("deflate", pack(Box::new(flate2::read::DeflateEncoder::new(text, level)))),
    ] {
        plan.requests[0].check.max_bytes = Some(packed.len() as u64);
        let result = load(&target(answer(coding, &packed)), &plan).expect("a run");
        assert_eq!(
            (result.counts.answered, result.counts.bytes),
            (100, 100 * packed.len() as u64),
            "{coding}"
        );
    }
    let failures = load(&target(answer("br", b"?")), &plan).expect("a run").counts.failures;
    let why = failures.describe(Failure::CheckFailed);
    assert!(why.ends_with("expected ‘world’ in the content, got content in the coding ‘br’"), "{why}");
}
