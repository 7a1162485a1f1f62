//! A run: finds the address, starts the threads together, and brings their records home.

use super::generator::{Generator, expected};
use super::plan::Plan;
use super::record::Failure;
use super::result::{GeneratorCost, LoadResult, ThreadResult, merge};
use super::shared::{Live, Progress, Shared};
use super::target::{Address, Protocol, Target};
use super::tls::TlsSetup;
use super::{clock, http2, plan, socket};
use scruple_core::unit::{Unit, quantity};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

/// Why a server could not be loaded at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// The encryption cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// No connection could be made.
    #[error("cannot connect to {address}: {meaning}{detail}", meaning = .class.meaning())]
    Unreachable {
        /// The address.
        address: String,
        /// What went wrong.
        class: Failure,
        /// More about it, beginning with punctuation; may be empty.
        detail: String,
    },
    /// Too few descriptors.
    #[error(
        "{connections} connections need {wanted} open files, and this process may have {limit}: raise the limit (ulimit -n)"
    )]
    Descriptors {
        /// The connections planned.
        connections: u32,
        /// The descriptors they need.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// Answers were waited for in vain, more often than the plan allows.
    #[error("{requests} of its requests had no answer within {patience}, so that it was given up")]
    Silent {
        /// How many.
        requests: u64,
        /// The time-out, with its unit.
        patience: String,
    },
    /// The system refuses something every run needs.
    #[error("the generator cannot start: {0}")]
    System(#[from] io::Error),
    /// The user interrupted before anything was measured.
    #[error("interrupted before the first request")]
    Interrupted,
}

/// Loads a server as planned. Blocks until the end: at most the warm-up, the duration and two time-outs, one for the
/// connections before and one for answers after.
///
/// `interrupted` ends it early with the figures so far. `progress` is called about four times a second.
///
/// # Errors
/// When the plan is impossible, or no connection can be made. Whatever happens once requests are sent is a figure and
/// no error.
pub fn run(
    target: &Target,
    plan: &Plan,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<LoadResult, LoadError> {
    run_watched(target, plan, interrupted, progress, &|| {})
}

/// As [`run`]; `at_end` is called when everything has been answered or given up, and before any connection is closed.
///
/// # Errors
/// As for [`run`].
pub fn run_watched(
    target: &Target,
    plan: &Plan,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
    at_end: &(dyn Fn() + Sync),
) -> Result<LoadResult, LoadError> {
    plan.validate().map_err(LoadError::Plan)?;
    let most = plan.connections.max(plan.grow_to);
    let wanted = u64::from(most) + 64;
    socket::allow_descriptors(wanted).map_err(|limit| LoadError::Descriptors {
        connections: most,
        wanted,
        limit,
    })?;
    let tls =
        target.tls.as_ref().map(|trust| TlsSetup::new(target, trust)).transpose().map_err(LoadError::Tls)?;
    let frames = match target.protocol {
        Protocol::Http1 => Vec::new(),
        Protocol::Http2 => {
            let encoded = plan.requests.iter().map(|request| http2::encode(request, target));
            encoded.collect::<Result<_, _>>().map_err(LoadError::Plan)?
        }
    };
    let mut sum = 0.0;
    let shared = Shared {
        plan,
        address: reachable(target)?,
        tls,
        encoded: plan.requests.iter().map(|request| request.http1(&target.host, plan.keep_alive)).collect(),
        frames,
        expected: plan.requests.iter().map(expected).collect(),
        cumulated: plan
            .requests
            .iter()
            .map(|request| {
                sum += request.weight;
                sum
            })
            .collect(),
        cores: thread::available_parallelism().map_or(1, usize::from),
        live: (0..plan.threads).map(|_| Live::default()).collect(),
        interrupted,
        at_end,
        failed: AtomicBool::new(false),
    };
    together(&shared, progress)
}

/// The first address that accepts a connection.
fn reachable(target: &Target) -> Result<Address, LoadError> {
    let mut refused = None;
    for address in &target.addresses {
        let attempt = match address {
            Address::Tcp(address) => {
                std::net::TcpStream::connect_timeout(address, Duration::from_secs(5)).map(drop)
            }
            Address::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(drop),
        };
        match attempt {
            Ok(()) => return Ok(address.clone()),
            Err(error) => {
                refused = Some(LoadError::Unreachable {
                    address: address.to_string(),
                    class: super::connection::unconnected(&error),
                    detail: format!(" ({error}); is the server running?"),
                });
            }
        }
    }
    Err(refused.unwrap_or_else(|| LoadError::Plan("the target has no address".to_owned())))
}

enum Report<'a> {
    Done(Box<ThreadResult<'a>>),
    Failed(LoadError),
}

/// Runs the threads, with the start at the same moment for all.
fn together(shared: &Shared<'_>, progress: &mut dyn FnMut(&Progress)) -> Result<LoadResult, LoadError> {
    let (start, since_1970) = (AtomicU64::new(0), AtomicU64::new(0));
    let barrier = Barrier::new(shared.plan.threads as usize);
    let (sender, reports) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..shared.plan.threads {
            let (sender, barrier, start, since_1970) = (sender.clone(), &barrier, &start, &since_1970);
            scope.spawn(move || {
                let report = one_thread(shared, number, barrier, start, since_1970);
                // The receiver outlives the threads.
                let _ = sender.send(report);
            });
        }
        drop(sender);
        let mut done = Vec::new();
        let mut error = None;
        let mut last = Progress::default();
        loop {
            match reports.recv_timeout(Duration::from_millis(250)) {
                Ok(Report::Done(result)) => done.push(*result),
                // The others were only told to stop.
                Ok(Report::Failed(failed)) => {
                    error = error.filter(|error| !matches!(error, LoadError::Interrupted)).or(Some(failed));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let began = start.load(Ordering::Relaxed);
                    let now = clock::now();
                    if began > 0 && now > began {
                        last = Progress::of(&shared.live, (now - began) as f64 / 1e9, &last);
                        progress(&last);
                    }
                }
            }
        }
        match error {
            Some(_) if shared.interrupted.load(Ordering::Relaxed) => Err(LoadError::Interrupted),
            Some(error) => Err(error),
            None if done.iter().any(|thread| thread.generator.gave_up) => Err(silent(shared.plan, &done)),
            None => Ok(merge(
                shared.plan,
                &done,
                start.load(Ordering::Relaxed),
                since_1970.load(Ordering::Relaxed),
            )),
        }
    })
}

fn silent(plan: &Plan, threads: &[ThreadResult<'_>]) -> LoadError {
    let requests = threads.iter().map(|thread| thread.generator.recorder.timeouts()).sum();
    LoadError::Silent { requests, patience: quantity(plan.timeout.as_nanos() as f64, &Unit::Nanoseconds) }
}

fn one_thread<'a>(
    shared: &'a Shared<'a>,
    number: u32,
    barrier: &Barrier,
    start: &AtomicU64,
    since_1970: &AtomicU64,
) -> Report<'a> {
    let priority_refused = !settle_thread(shared.plan, number);
    let (began, waited) = (clock::now(), consumed().waited);
    let ready = Generator::new(shared, number).map_err(LoadError::System).and_then(|mut generator| {
        match generator.open() {
            Ok(_) => Ok(generator),
            Err(class) => {
                let waited = consumed().waited.saturating_sub(waited);
                let starved = (waited > (clock::now() - began) / 2).then_some(waited);
                Err(unreachable(shared, class, generator.tls_trouble.take(), starved))
            }
        }
    });
    if ready.is_err() {
        shared.failed.store(true, Ordering::Relaxed);
    }
    // One thread decides for all whether they begin, because each waits for the others at the end.
    if barrier.wait().is_leader() && !shared.interrupted() {
        let ahead = 2_000_000
            + match shared.plan.warm_up {
                plan::WarmUp::For(time) => time.as_nanos() as u64,
                plan::WarmUp::Auto | plan::WarmUp::Off => 0,
            };
        start.store(clock::now() + ahead, Ordering::Relaxed);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        since_1970.store(wall + ahead, Ordering::Relaxed);
    }
    barrier.wait();
    let mut generator = match ready {
        Ok(_) if start.load(Ordering::Relaxed) == 0 => return Report::Failed(LoadError::Interrupted),
        Ok(generator) => generator,
        Err(error) => return Report::Failed(error),
    };
    let began = clock::now();
    let before = consumed();
    let ended = generator.run(start.load(Ordering::Relaxed));
    let (after, elapsed) = (consumed(), clock::now() - began);
    if barrier.wait().is_leader() {
        (shared.at_end)();
    }
    barrier.wait();
    generator.settle(ended, began + elapsed);
    let (answered, failed) = generator.recorder.totals();
    let cost = GeneratorCost {
        threads: 1,
        elapsed,
        user: after.user - before.user,
        system: after.system - before.system,
        waited: after.waited.saturating_sub(before.waited),
        preempted: after.preempted - before.preempted,
        requests: answered + failed,
    };
    Report::Done(Box::new(ThreadResult { generator, ended, cost, priority_refused }))
}

/// `starved` is how long the generator waited for a core, in nanoseconds, where that was most of the time.
fn unreachable(
    shared: &Shared<'_>,
    class: Failure,
    tls_trouble: Option<String>,
    starved: Option<u64>,
) -> LoadError {
    let detail = match (tls_trouble, starved) {
        (Some(why), _) => format!(": {why}"),
        (None, Some(waited)) => format!(
            "; the generator itself waited {:.1} s for a core, so this need not be the server's fault: run it where it has \
             a core (--cores), or with --priority",
            waited as f64 / 1e9
        ),
        (None, None) if class == Failure::Tls => {
            ": the server did not complete the handshake; does it speak TLS there?".to_owned()
        }
        (None, None) => String::new(),
    };
    LoadError::Unreachable { address: shared.address.to_string(), class, detail }
}

/// Pins the thread, makes its timers precise and asks for priority. False when priority was asked for and refused.
fn settle_thread(plan: &Plan, number: u32) -> bool {
    // SAFETY: plain system calls about the calling thread; the structures are valid when zero and outlive the calls.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64);
        if let Some(core) = plan.cores.get(number as usize % plan.cores.len().max(1))
            && *core < libc::CPU_SETSIZE as usize
        {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(*core, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
        let priority = libc::sched_param { sched_priority: 10 };
        !plan.priority || libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) == 0
    }
}

struct Consumed {
    user: u64,
    system: u64,
    waited: u64,
    preempted: u64,
}

/// What the calling thread has consumed so far.
fn consumed() -> Consumed {
    // SAFETY: the kernel fills in plain data that is valid when zero.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let nanoseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let waited = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0);
    Consumed {
        user: nanoseconds(usage.ru_utime),
        system: nanoseconds(usage.ru_stime),
        waited,
        preempted: usage.ru_nivcsw as u64,
    }
}
