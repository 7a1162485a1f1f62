//! A generator that does not get a core: delays of its own are not attributed to the server.
//!
//! The generator is this test program once more, started for one ignored test, so that it can be stopped as a whole.

use super::servers::now;
use super::stalls::{Planted, even};
use super::target;
use scruple_measure::load::{Plan, RequestBatch, RequestReceiver, WarmUp, run};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

const RATE: f64 = 200.0;

/// Loads the server of the environment, and prints a line with the start, the delayed responses and the codes of the
/// doubts; then the stalls and the answers, each with its start and its end on the monotonic clock.
#[test]
#[ignore = "the generator of the other tests"]
fn generator() {
    let Ok(address) = std::env::var("STOPPED_GENERATOR") else { return };
    let (sender, requests) = mpsc::channel::<RequestBatch>();
    let plan = Plan {
        connections: 1,
        warm_up: WarmUp::Off,
        each: Some(RequestReceiver { server: 0, turn: 0, sender }),
        ..even(RATE, 3.0)
    };
    println!("\nbegins");
    let server = target(address.parse::<SocketAddr>().expect("an address"));
    let result = run(&server, &plan, &AtomicBool::new(false), &mut |_| {}).expect("a run");
    drop(plan);
    let start = result.started.0 as i64;
    let codes: Vec<&str> = result.doubts.iter().map(|doubt| doubt.code.as_str()).collect();
    println!("\nresult {} {} {}", start, result.times.delayed.count(), codes.join(","));
    for stall in &result.stalls {
        println!("stall {} {}", start + stall.from, start + stall.to);
    }
    for request in requests.iter().flat_map(|batch| batch.requests) {
        println!("answer {} {}", start + request.sent, start + request.done);
    }
}

/// The output of the generator.
#[derive(Default)]
struct ObservedLoad {
    start: u64,
    delayed: u64,
    codes: String,
    stalls: Vec<[u64; 2]>,
    answers: Vec<[u64; 2]>,
    /// When the generator was stopped, on the same clock.
    stops: Vec<[u64; 2]>,
}

/// Loads a server while the generator is stopped and continued for these times in turn, the last ones again and again.
fn observe_load(server: &Planted, stops: impl Fn(usize) -> Option<(Duration, Duration)>) -> ObservedLoad {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["stopped::generator", "--exact", "--ignored", "--nocapture"])
        .env("STOPPED_GENERATOR", server.address())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "begins"), "it did not begin");
    let signal = |child: &Child, signal| {
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(child.id() as i32, signal) };
    };
    let mut observed = ObservedLoad::default();
    for number in 0.. {
        let Some((runs, stands)) = stops(number) else { break };
        std::thread::sleep(runs);
        signal(&child, libc::SIGSTOP);
        let stopped = now();
        std::thread::sleep(stands);
        observed.stops.push([stopped, now()]);
        signal(&child, libc::SIGCONT);
    }
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        match words[0] {
            "result" => {
                (observed.start, observed.delayed, observed.codes) =
                    (number(1), number(2), words[3].to_owned())
            }
            "stall" => observed.stalls.push([number(1), number(2)]),
            "answer" => observed.answers.push([number(1), number(2)]),
            _ => {}
        }
    }
    assert!(child.wait().expect("it ends").success());
    observed
}

#[test]
fn answers_that_are_read_late_count_from_their_arrival() {
    let Some(server) = Planted::start("fixed=4") else { return };
    // It runs a quarter of the time, so that most answers arrive while it is stopped.
    let observed = observe_load(&server, |number| {
        (number < 80).then_some((Duration::from_millis(10), Duration::from_millis(30)))
    });
    let witness = server.witness(observed.start, RATE);
    assert_eq!((observed.answers.len(), witness.entries.len()), (600, 600));
    // Answers that the server sent while the generator was stopped, long before it continued.
    let while_it_stood =
        |sent| observed.stops.iter().any(|[from, to]| (*from..to - 8_000_000).contains(&sent));
    let mut late: Vec<u64> = observed
        .answers
        .iter()
        .zip(&witness.entries)
        .filter(|(_, [.., sent])| while_it_stood(*sent))
        .map(|([_, done], [.., sent])| done.saturating_sub(*sent))
        .collect();
    late.sort_unstable();
    assert!(late.len() >= 20, "{} answers were sent while the generator stood", late.len());
    assert!(late[late.len() / 2] < 2_000_000, "answers count {late:?} after they were sent");
    // Most requests were sent late, which is reported and is not a stall of the server.
    assert!(observed.codes.contains("generator-late"), "{}", observed.codes);
    witness.confirms_stalls(&observed.stalls, 0, "a stopped generator");
}

#[test]
fn a_delay_of_the_generator_is_distinguished_from_the_response() {
    let Some(server) = Planted::start("fixed=2") else { return };
    let observed = observe_load(&server, |number| {
        (number < 1).then_some((Duration::from_millis(1000), Duration::from_millis(30)))
    });
    // Six requests were due in these 30 ms, and noticed after them; the last perhaps at once.
    assert!(observed.delayed >= 4, "{}", observed.delayed);
    let witness = server.witness(observed.start, RATE);
    witness.confirms_stalls(&observed.stalls, 0, "a stopped generator");
}
