//! Latency on planted servers: what is reported is what the server did.

use super::{load, small};
use scruple_measure::load::{Arrivals, LoadResult, Pace, Plan, Target, WarmUp};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The program of `planted.c`, or why there is none.
fn program() -> &'static Result<PathBuf, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load/planted.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("planted-{}", std::process::id()));
        let compiled = Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(source).arg("-lm").status();
        match compiled {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => panic!("planted.c does not compile: {status}"),
            Err(error) => Err(format!("gcc cannot be run: {error}")),
        }
    })
}

struct Planted {
    child: Child,
    target: Target,
    log: PathBuf,
}

impl Planted {
    fn start(words: &str) -> Option<Planted> {
        let program = match program() {
            Ok(program) => program,
            Err(why) => {
                println!("skipped: {why}");
                return None;
            }
        };
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let log = program.with_extension(format!("{number}.log"));
        let mut child = Command::new(program)
            .arg("0")
            .args(words.split_whitespace())
            .env("PLANTED_LOG", &log)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut port).expect("its port");
        let target = Target::parse(&format!("http://127.0.0.1:{}/", port.trim())).expect("a target").0;
        Some(Planted { child, target, log })
    }

    /// Ends it. What the responses were in truth, in nanoseconds and rising, for requests that were due evenly from a
    /// moment on: computed from when its answers were due, and from nothing that the generator saw.
    fn truth(mut self, first: u64, rate: f64) -> Vec<u64> {
        let pid = self.child.id() as i32;
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        self.child.wait().expect("it ends");
        let text = std::fs::read_to_string(&self.log).expect("its log");
        let _ = std::fs::remove_file(&self.log);
        let due = |index: usize| first + (index as f64 * 1e9 / rate) as u64;
        let answered = |line: &str| line.split(' ').nth(1).and_then(|word| word.parse::<u64>().ok());
        let mut responses: Vec<u64> = text
            .lines()
            .enumerate()
            .filter_map(|(index, line)| Some(answered(line)?.saturating_sub(due(index))))
            .collect();
        responses.sort_unstable();
        responses
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

fn even(rate: f64, seconds: f64) -> Plan {
    Plan {
        pace: Pace::Open { rate, arrivals: Arrivals::Constant },
        connections: 10,
        max_requests: None,
        duration: Duration::from_secs_f64(seconds),
        timeout: Duration::from_secs(30),
        warm_up: WarmUp::Auto,
        ..small()
    }
}

/// The quantiles of the response agree with the truth within a twentieth and what a busy machine adds.
fn agrees(result: &LoadResult, truth: &[u64], what: &str) {
    assert_eq!(result.due as usize, truth.len(), "{what}: nothing is cut off");
    for q in [0.5, 0.9, 0.99, 0.999, 1.0] {
        let rank = ((truth.len() as f64 * q).ceil() as usize).clamp(1, truth.len());
        let (ours, truth) = (result.response.quantile(q).expect("some") as f64, truth[rank - 1] as f64);
        let machine = result.lateness.max().unwrap_or(0) as f64 + 60e6;
        assert!(
            (ours - truth).abs() <= 0.05 * truth + machine,
            "{what}: p{} {ours}, truth {truth}",
            q * 100.0
        );
    }
}

#[test]
fn one_stall_is_reported_wherever_it_falls() {
    for at in [0, 150, 600, 1100, 1700] {
        let Some(server) = Planted::start(&format!("stall=600 at={at}")) else { return };
        let result = load(&server.target, &even(400.0, 2.0)).expect("a run");
        assert_eq!(result.warm_up, 0, "a stall is no warm-up");
        let longest = result.stalls.iter().map(|stall| stall.to - stall.from).max().unwrap_or(0);
        assert!((500_000_000..1_500_000_000).contains(&longest), "at {at}: {:?}", result.stalls);
        agrees(&result, &server.truth(result.started.0, 400.0), &format!("a stall at {at}"));
    }
}

#[test]
fn slow_requests_are_no_stalls() {
    let Some(server) = Planted::start("slow=300 share=0.05") else { return };
    let result = load(&server.target, &Plan { connections: 100, ..even(500.0, 2.0) }).expect("a run");
    // A busy machine has stalls of its own, but none as long as a slow request.
    assert!(result.stalls.iter().all(|stall| stall.to - stall.from < 200_000_000), "{:?}", result.stalls);
    agrees(&result, &server.truth(result.started.0, 500.0), "slow requests");
}

#[test]
fn a_backlog_grows_from_the_first_request_to_the_last() {
    // 150 a second are due, and 100 are answered: the last waits half as long as the load lasts.
    let Some(server) = Planted::start("fixed=10") else { return };
    let result = load(&server.target, &even(150.0, 2.0)).expect("a run");
    let longest = result.response.max().expect("some") as f64;
    assert!(longest > 0.95e9 && result.behind > 800_000_000, "{longest}, {}", result.behind);
    assert!(result.rate() < 105.0, "{}", result.rate());
    let p50: Vec<u64> = result.parts.iter().filter_map(|part| part.response.quantile(0.5)).collect();
    assert!(p50[p50.len() - 1] > p50[0] + 800_000_000, "{p50:?}");
    agrees(&result, &server.truth(result.started.0, 150.0), "a backlog");
}

#[test]
fn a_stall_at_the_end_does_not_make_a_server_too_slow() {
    let Some(server) = Planted::start("stall=700 at=1500") else { return };
    let result = load(&server.target, &even(400.0, 2.0)).expect("a run");
    assert_eq!((result.behind, result.failures.total()), (0, 0), "{:?}", result.stalls);
    assert!(result.doubts.iter().all(|doubt| doubt.code != "rate-not-met"), "{:?}", result.doubts);
}

#[test]
fn a_rate_is_that_of_the_schedule_however_low() {
    let Some(server) = Planted::start("") else { return };
    let result = load(&server.target, &even(10.0, 2.0)).expect("a run");
    assert_eq!((result.due, result.span), (20, 2_000_000_000));
    assert!((result.rate() - 10.0).abs() < 1e-9, "{}", result.rate());
}

#[test]
fn a_beginning_that_decays_is_warm_up_and_stays_in_the_parts() {
    let Some(server) = Planted::start("fixed=1 start=20 warm=600") else { return };
    let plan = Plan { pace: Pace::Closed, connections: 1, ..even(1.0, 3.0) };
    let result = load(&server.target, &plan).expect("a run");
    let slowest = result.parts.iter().filter_map(|part| part.response.max()).max().expect("some");
    assert!(slowest > 15_000_000, "{slowest}");
    // On a busy machine the rest may be as slow as the beginning.
    if result.warm_up > 0 {
        let cut: u64 = result.cut().iter().map(|part| part.answered).sum();
        let all: u64 = result.parts.iter().map(|part| part.answered).sum();
        assert_eq!(result.answered + cut, all);
        assert!(result.cut().iter().any(|part| part.response.max() == Some(slowest)));
    }
}

#[test]
fn a_dead_worker_of_four_times_out_and_is_no_stall() {
    let Some(server) = Planted::start("dead=4") else { return };
    let plan = Plan { connections: 40, timeout: Duration::from_millis(900), ..even(200.0, 2.0) };
    let result = load(&server.target, &plan).expect("a run");
    let share = result.failed_share();
    assert!((0.01..0.3).contains(&share), "{share}");
    assert!(result.response.max().expect("some") >= 890_000_000);
    assert!(result.stalls.iter().all(|stall| stall.to - stall.from < 800_000_000), "{:?}", result.stalls);
}
