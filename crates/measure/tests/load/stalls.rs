//! Tests latencies on servers with planted delays: the reported figures must match what the server recorded.

use super::{load, small};
use scruple_measure::load::{Arrivals, LoadResult, Pace, Plan, Target, WarmUp};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// The compiled program of `planted.c`, or why there is none.
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

pub(super) struct Planted {
    child: Child,
    address: String,
    target: Target,
    log: PathBuf,
}

impl Planted {
    pub(super) fn start(words: &str) -> Option<Planted> {
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
        let address = format!("127.0.0.1:{}", port.trim());
        let target = Target::parse(&format!("http://{address}/")).expect("a target").0;
        Some(Planted { child, address, target, log })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Ends it, and reads its record of the requests that were due evenly from a moment on.
    pub(super) fn witness(mut self, first: u64, rate: f64) -> Witness {
        let pid = self.child.id() as i32;
        // SAFETY: a signal to a child that has not been waited for.
        unsafe { libc::kill(pid, libc::SIGTERM) };
        self.child.wait().expect("it ends");
        let text = std::fs::read_to_string(&self.log).expect("its log");
        let entry = |line: &str| -> [u64; 3] {
            let words: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
            words.try_into().expect("three times")
        };
        Witness { entries: text.lines().map(entry).collect(), first, rate }
    }
}

/// The record of the server, which does not depend on the generator.
pub(super) struct Witness {
    /// When each request came, when its answer was planted to be due, and when it was sent; in the order of coming.
    pub(super) entries: Vec<[u64; 3]>,
    first: u64,
    rate: f64,
}

impl Witness {
    /// The sorted response times after the first `skipped` requests, from when a request was due to when its answer
    /// was sent, including delays of the machine.
    fn responses(&self, skipped: usize) -> Vec<u64> {
        let due = |index: usize| self.first + (index as f64 * 1e9 / self.rate) as u64;
        let response = |(index, [_, planted, sent]): (usize, &[u64; 3])| {
            assert!(sent >= planted, "answered before its time");
            sent.saturating_sub(due(index))
        };
        let mut responses: Vec<u64> = self.entries.iter().enumerate().skip(skipped).map(response).collect();
        responses.sort_unstable();
        responses
    }

    /// The longest time in which the server sent nothing although a request had arrived.
    fn longest_stall(&self) -> u64 {
        let mut events: Vec<(u64, i64)> = self.entries.iter().map(|[came, ..]| (*came, 1)).collect();
        events.extend(self.entries.iter().filter(|[_, _, sent]| *sent > 0).map(|[_, _, sent]| (*sent, -1)));
        events.sort_unstable();
        let (mut waiting, mut since, mut longest) = (0, 0, 0);
        for (at, change) in events {
            if waiting > 0 && change < 0 {
                longest = longest.max(at - since);
            }
            if waiting == 0 || change < 0 {
                since = at;
            }
            waiting += change;
        }
        longest
    }

    /// Nothing was sent between the beginnings and the ends of these stalls on the clock, but for so long before an
    /// end. The answer that ends a stall has its time from before it was sent, and a busy machine may keep the server
    /// from its core between both.
    pub(super) fn confirms_stalls(&self, stalls: &[[u64; 2]], before: u64, what: &str) {
        for [from, to] in stalls {
            let stall = *from..to.saturating_sub(before);
            let within = self.entries.iter().filter(|[_, _, sent]| stall.contains(sent)).count();
            assert!(within <= 1, "{what}: {within} answers were sent in {stall:?}");
        }
    }

    /// Checks that the server sent nothing during each reported stall, except within the time that the machine may
    /// have kept the generator from seeing answers.
    fn confirms(&self, result: &LoadResult, what: &str) {
        let on_the_clock = |at: i64| self.first.saturating_add_signed(at);
        let stalls = result.stalls.iter().map(|stall| [stall.from, stall.to].map(on_the_clock));
        self.confirms_stalls(&stalls.collect::<Vec<_>>(), machine(result), what);
    }
}

/// How much a busy machine may add to what the generator sees, in nanoseconds: how late it was in sending, and how
/// long it waited for a core.
fn machine(result: &LoadResult) -> u64 {
    result.times.lateness.max().unwrap_or(0) + result.generator.waited + 60_000_000
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

pub(super) fn even(rate: f64, seconds: f64) -> Plan {
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

/// Checks that quantiles of the response and stalls match the server's record, within 5 % and what the machine adds.
fn agrees(result: &LoadResult, witness: &Witness, what: &str) {
    // A busy machine may be slow at first. This counts as warm-up, whose parts are kept.
    let warm_up: u64 = result.cut().iter().map(|part| part.counts.due).sum();
    assert_eq!(
        (warm_up + result.counts.due) as usize,
        witness.entries.len(),
        "{what}: every request is in a part"
    );
    let truth = witness.responses(warm_up as usize);
    for q in [0.5, 0.9, 0.99, 0.999, 1.0] {
        let rank = ((truth.len() as f64 * q).ceil() as usize).clamp(1, truth.len());
        let (ours, truth) = (result.times.response.quantile(q).expect("some") as f64, truth[rank - 1] as f64);
        assert!(
            (ours - truth).abs() <= 0.05 * truth + machine(result) as f64,
            "{what}: p{} {ours}, truth {truth}",
            q * 100.0
        );
    }
    witness.confirms(result, what);
}

#[test]
fn one_stall_is_reported_wherever_it_falls() {
    for at in [0, 150, 600, 1100, 1700] {
        let Some(server) = Planted::start(&format!("stall=600 at={at}")) else { return };
        let result = load(&server.target, &even(400.0, 2.0)).expect("a run");
        let witness = server.witness(result.started.0, 400.0);
        let longest = result.stalls.iter().map(|stall| (stall.to - stall.from) as u64).max().unwrap_or(0);
        let truth = witness.longest_stall();
        // The server counts the stall from the first request that arrives in it.
        assert!(truth > 500_000_000, "{truth}");
        assert!(longest.abs_diff(truth) <= machine(&result), "at {at}: {truth}, {:?}", result.stalls);
        let slowest = result.times.response.max().unwrap_or(0);
        assert!(
            slowest + machine(&result) >= truth,
            "at {at}: the stall is not in the warm-up: {slowest}, {truth}"
        );
        agrees(&result, &witness, &format!("a stall at {at}"));
    }
}

#[test]
fn slow_requests_are_no_stalls() {
    let Some(server) = Planted::start("slow=300 share=0.05") else { return };
    let result = load(&server.target, &Plan { connections: 100, ..even(500.0, 2.0) }).expect("a run");
    // A busy machine causes stalls of its own, which are in the server's record, too.
    agrees(&result, &server.witness(result.started.0, 500.0), "slow requests");
}

#[test]
fn a_backlog_grows_from_the_first_request_to_the_last() {
    // 150 requests per second are due and 100 are answered, so the last one waits half as long as the load lasts.
    let Some(server) = Planted::start("fixed=10") else { return };
    let result = load(&server.target, &even(150.0, 2.0)).expect("a run");
    let longest = result.times.response.max().expect("some") as f64;
    assert!(longest > 0.95e9 && result.behind > 800_000_000, "{longest}, {}", result.behind);
    assert!(result.rate() < 105.0, "{}", result.rate());
    let p50: Vec<u64> = result.parts.iter().filter_map(|part| part.times.response.quantile(0.5)).collect();
    let first = p50[..p50.len() / 4].iter().min().expect("some");
    assert!(p50[p50.len() - 1] > first + 500_000_000, "{p50:?}");
    agrees(&result, &server.witness(result.started.0, 150.0), "a backlog");
}

#[test]
fn a_stall_at_the_end_does_not_make_a_server_too_slow() {
    let Some(server) = Planted::start("stall=700 at=1500") else { return };
    let result = load(&server.target, &even(400.0, 2.0)).expect("a run");
    assert_eq!((result.behind, result.counts.failures.total()), (0, 0), "{:?}", result.stalls);
    assert!(result.doubts.iter().all(|doubt| doubt.code != "rate-not-met"), "{:?}", result.doubts);
}

#[test]
fn a_rate_is_that_of_the_schedule_however_low() {
    let Some(server) = Planted::start("") else { return };
    let result = load(&server.target, &even(10.0, 2.0)).expect("a run");
    assert_eq!((result.counts.due, result.span), (20, 2_000_000_000));
    assert!((result.rate() - 10.0).abs() < 1e-9, "{}", result.rate());
}

#[test]
fn a_beginning_that_decays_is_warm_up_and_stays_in_the_parts() {
    let Some(server) = Planted::start("fixed=1 start=20 warm=600") else { return };
    let plan = Plan { pace: Pace::Closed, connections: 1, ..even(1.0, 3.0) };
    let result = load(&server.target, &plan).expect("a run");
    let slowest = result.parts.iter().filter_map(|part| part.times.response.max()).max().expect("some");
    assert!(slowest > 15_000_000, "{slowest}");
    // On a busy machine the rest of the load may be as slow as the beginning.
    if result.warm_up > 0 {
        let cut: u64 = result.cut().iter().map(|part| part.counts.answered).sum();
        let all: u64 = result.parts.iter().map(|part| part.counts.answered).sum();
        assert_eq!(result.counts.answered + cut, all);
        // The machine may make later requests slower still; those of the beginning are kept nevertheless.
        assert!(result.cut().iter().any(|part| part.times.response.max() > Some(15_000_000)));
    }
}

#[test]
fn a_dead_worker_of_four_times_out_and_is_no_stall() {
    let Some(server) = Planted::start("dead=4") else { return };
    let plan = Plan { connections: 40, timeout: Duration::from_millis(900), ..even(200.0, 2.0) };
    let result = load(&server.target, &plan).expect("a run");
    let failed = result.counts.failures.total() as f64;
    let share = failed / (result.counts.answered as f64 + failed);
    assert!((0.01..0.3).contains(&share), "{share}");
    assert!(result.times.response.max().expect("some") >= 890_000_000);
    server.witness(result.started.0, 200.0).confirms(&result, "a dead worker");
}

#[test]
fn failures_at_the_beginning_are_no_warm_up() {
    let Some(server) = Planted::start("fixed=1 start=8 warm=600 dead=4") else { return };
    let timeout = Duration::from_millis(300);
    let plan = Plan { pace: Pace::Closed, connections: 4, timeout, ..even(1.0, 3.0) };
    let result = load(&server.target, &plan).expect("a run");
    let all: u64 = result.parts.iter().map(|part| part.counts.failures.total()).sum();
    assert!(all > 0, "one connection of four is never answered");
    assert_eq!(result.counts.failures.total(), all, "{} parts were cut", result.warm_up);
}
