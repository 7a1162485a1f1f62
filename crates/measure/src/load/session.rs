//! A server under load: finds the address, keeps the connections, starts the threads of a turn together, and collects
//! their records.
//!
//! A turn has one clock and one schedule, from its first request to its last. Its parts, and the marks at which the
//! server's accounts are read, are moments on that clock; nothing waits at them.

use super::abort::Watched;
use super::failure::Failure;
use super::generator::Generator;
use super::merge::{ThreadResult, merge};
use super::plan::Plan;
use super::result::{GeneratorCost, LoadResult};
use super::shared::{Progress, Shared};
use super::target::{Address, Target};
use super::thread_account::{consumed, settle_thread};
use super::tls::TlsSetup;
use super::{clock, socket};
use scruple_core::unit::{Unit, quantity};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
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
    /// Answers timed out more often than the plan allows.
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

/// What is reported while a turn runs.
#[derive(Clone, Copy)]
pub enum Moment<'a> {
    /// The progress, about four times a second.
    Progress(&'a Progress),
    /// A mark of the plan has been reached: 0 is before the first request, and the one after the last of the plan is
    /// after the last answer.
    Mark(usize, Handled<'a>),
}

/// How many requests have been answered or have failed. The load continues meanwhile.
#[derive(Clone, Copy)]
pub struct Handled<'a> {
    shared: &'a Shared,
    /// The result of a turn that is over.
    whole: Option<u64>,
}

impl Handled<'_> {
    /// A fixed number.
    pub fn now(self) -> u64 {
        self.whole.unwrap_or_else(|| self.shared.handled())
    }
}

/// A server with its connections, which last from one turn to the next.
pub struct Session {
    shared: Arc<Shared>,
    generators: Vec<Generator>,
}

impl Session {
    /// Prepares everything that does not depend on one turn. The first turn makes the connections.
    ///
    /// # Errors
    /// When the plan is impossible, or nothing listens.
    pub fn new(target: &Target, plan: &Plan) -> Result<Session, LoadError> {
        plan.validate().map_err(LoadError::Plan)?;
        let most = plan.connections.max(plan.grow_to);
        let wanted = u64::from(most) + 64;
        socket::allow_descriptors(wanted).map_err(|limit| LoadError::Descriptors {
            connections: most,
            wanted,
            limit,
        })?;
        let tls = target.tls.as_ref().map(|trust| TlsSetup::new(target, trust));
        let tls = tls.transpose().map_err(LoadError::Tls)?;
        let shared = Arc::new(Shared::new(target, plan, reachable(target)?, tls).map_err(LoadError::Plan)?);
        let plan = Arc::new(plan.clone());
        let generators = (0..plan.threads).map(|thread| Generator::new(&shared, &plan, thread));
        Ok(Session { generators: generators.collect::<io::Result<_>>()?, shared })
    }

    /// Carries out a plan from the first request to the last answer; it may differ from that of the session in its
    /// pace, its length, its warm-up, its parts and its seed. Blocks for at most the warm-up, the duration and two
    /// time-outs, one for connections and one for answers after the last request.
    ///
    /// `interrupted` ends it early; the figures so far are returned.
    ///
    /// # Errors
    /// When no connection can be made, or more answers time out than the plan allows. Anything else that happens once
    /// requests are sent is a figure and no error.
    pub fn turn(
        &mut self,
        plan: &Plan,
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Moment<'_>),
    ) -> Result<LoadResult, LoadError> {
        plan.validate().map_err(LoadError::Plan)?;
        let plan = Arc::new(plan.clone());
        self.shared.begin();
        self.generators.iter_mut().for_each(|generator| generator.begin(&plan));
        together(&self.shared, &plan, &mut self.generators, interrupted, tell)
    }
}

/// Loads a server as planned, in a session of one turn.
///
/// `interrupted` ends it early; the figures so far are returned. `progress` is called about four times a second.
///
/// # Errors
/// As for [`Session::new`] and [`Session::turn`].
pub fn run(
    target: &Target,
    plan: &Plan,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<LoadResult, LoadError> {
    run_watched(target, plan, interrupted, progress, &|| {})
}

/// Like [`run`]; `at_end` is called when everything has been answered or given up, and before any connection is closed.
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
    let mut session = Session::new(target, plan)?;
    let mut tell = |moment: Moment<'_>| {
        if let Moment::Progress(seen) = moment {
            progress(seen);
        }
    };
    let result = session.turn(plan, interrupted, &mut tell)?;
    at_end();
    Ok(result)
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

enum Report {
    /// A thread has its connections, or cannot have them.
    Ready,
    Done(Box<ThreadResult>),
    Failed(LoadError),
}

/// Where the threads wait for each other.
struct Gate {
    start: Start,
    /// Opened by the thread that waits for the others, once all are ready.
    open: Barrier,
    end: Barrier,
}

/// The moment at which the threads start, on both clocks; 0 until it is known.
#[derive(Default)]
struct Start {
    monotonic: AtomicU64,
    since_1970: AtomicU64,
}

/// Runs the threads, with the start at the same moment for all.
fn together(
    shared: &Arc<Shared>,
    plan: &Plan,
    generators: &mut [Generator],
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Moment<'_>),
) -> Result<LoadResult, LoadError> {
    let mut waiting = generators.len();
    let gate = Gate { start: Start::default(), open: Barrier::new(waiting + 1), end: Barrier::new(waiting) };
    let start = &gate.start;
    let (sender, reports) = mpsc::channel();
    thread::scope(|scope| {
        for generator in generators {
            let (sender, gate) = (sender.clone(), &gate);
            scope.spawn(move || {
                // The receiver outlives the threads.
                let _ = sender.send(one_thread(shared, plan, generator, gate, &sender));
            });
        }
        drop(sender);
        let mut done: Vec<ThreadResult> = Vec::new();
        let mut error = None;
        let mut watch = Watch::of(plan);
        loop {
            match reports.recv_timeout(watch.pause(start)) {
                Ok(Report::Ready) => {
                    waiting -= 1;
                    if waiting == 0 {
                        watch.begin(shared, plan, start, tell);
                        gate.open.wait();
                    }
                }
                Ok(Report::Done(result)) => done.push(*result),
                // The others were only told to stop.
                Ok(Report::Failed(failed)) => {
                    error = error.filter(|error| !matches!(error, LoadError::Interrupted)).or(Some(failed));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => watch.look(shared, start, tell),
            }
            if interrupted.load(Ordering::Relaxed) {
                shared.stop();
            }
        }
        let handled = done.iter().map(|thread| thread.cost.requests).sum();
        match error {
            Some(_) if interrupted.load(Ordering::Relaxed) => Err(LoadError::Interrupted),
            Some(error) => Err(error),
            None if done.iter().any(|thread| thread.gave_up) => Err(silent(plan, &done)),
            None => {
                watch.finish(shared, start, handled, tell);
                let started =
                    (start.monotonic.load(Ordering::Relaxed), start.since_1970.load(Ordering::Relaxed));
                Ok(merge(plan, done, started, watch.abort.and_then(|abort| abort.why)))
            }
        }
    })
}

/// What the waiting thread watches for.
struct Watch {
    /// The positions of the marks, in nanoseconds from the start, or in requests.
    marks: Vec<u64>,
    by_count: bool,
    reached: usize,
    abort: Option<Watched>,
    last: Progress,
    told_at: u64,
}

/// How often progress is reported.
const TOLD: u64 = 250_000_000;

impl Watch {
    fn of(plan: &Plan) -> Watch {
        let by_count = plan.max_requests.is_some() && (plan.rate().is_none() || plan.scenario.is_some());
        let whole = match plan.max_requests.filter(|_| by_count) {
            Some(requests) => requests as f64,
            None => plan.span() as f64,
        };
        let inner = plan.marks.iter().map(|share| (share * whole) as u64);
        let marks = std::iter::once(0).chain(inner).collect();
        let abort = plan.scenario.as_ref().and_then(|scenario| scenario.abort.clone());
        let abort = abort.map(Watched::of);
        Watch { marks, by_count, reached: 0, abort, last: Progress::default(), told_at: 0 }
    }

    /// How long nothing needs attention.
    fn pause(&self, start: &Start) -> Duration {
        let (now, start) = (clock::now(), start.monotonic.load(Ordering::Relaxed));
        let waiting = self.marks.len() > 1;
        let pause = match self.marks.get(self.reached).filter(|_| waiting) {
            Some(_) if start == 0 => 1_000_000,
            Some(_) if self.by_count && self.reached > 0 => 2_000_000,
            Some(mark) => (start + mark).saturating_sub(now).min(50_000_000),
            None => 50_000_000,
        };
        Duration::from_nanos(pause)
    }

    /// All threads are ready: sets the moment at which they start, unless one of them could not get ready. The first
    /// mark is reported before it, so that nothing has been handled by then, unless there is a warm-up in between.
    fn begin(&mut self, shared: &Shared, plan: &Plan, start: &Start, tell: &mut dyn FnMut(Moment<'_>)) {
        if shared.stopped() {
            return;
        }
        if self.marks.len() > 1 && plan.warm_up_before() == 0 {
            tell(Moment::Mark(0, Handled { shared, whole: None }));
            self.reached = 1;
        }
        let ahead = 2_000_000 + plan.warm_up_before();
        start.monotonic.store(clock::now() + ahead, Ordering::Relaxed);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        start.since_1970.store(wall + ahead, Ordering::Relaxed);
    }

    fn look(&mut self, shared: &Shared, start: &Start, tell: &mut dyn FnMut(Moment<'_>)) {
        let (now, start) = (clock::now(), start.monotonic.load(Ordering::Relaxed));
        if start == 0 || now < start {
            return;
        }
        let at = if self.by_count { shared.handled() } else { now - start };
        if self.marks.len() > 1 && self.marks.get(self.reached).is_some_and(|mark| *mark <= at) {
            tell(Moment::Mark(self.reached, Handled { shared, whole: None }));
            self.reached += 1;
        }
        if now - self.told_at >= TOLD {
            self.told_at = now;
            let seen = Progress::of(&shared.live, (now - start) as f64 / 1e9, &self.last);
            if self.abort.as_mut().is_some_and(|abort| abort.exceeded(&seen, &self.last)) {
                shared.stop();
            }
            self.last = seen;
            tell(Moment::Progress(&self.last));
        }
    }

    /// Marks that a short or interrupted turn never reached are skipped; the last is its end.
    fn finish(&self, shared: &Shared, start: &Start, handled: u64, tell: &mut dyn FnMut(Moment<'_>)) {
        let elapsed = clock::now().saturating_sub(start.monotonic.load(Ordering::Relaxed));
        tell(Moment::Progress(&Progress::of(&shared.live, elapsed as f64 / 1e9, &self.last)));
        if self.marks.len() > 1 {
            tell(Moment::Mark(self.marks.len(), Handled { shared, whole: Some(handled) }));
        }
    }
}

fn silent(plan: &Plan, threads: &[ThreadResult]) -> LoadError {
    let requests = threads.iter().map(|thread| thread.recorder.timeouts()).sum();
    LoadError::Silent { requests, patience: quantity(plan.timeout.as_nanos() as f64, &Unit::Nanoseconds) }
}

fn one_thread(
    shared: &Shared,
    plan: &Plan,
    generator: &mut Generator,
    gate: &Gate,
    reports: &mpsc::Sender<Report>,
) -> Report {
    let priority_refused = !settle_thread(plan, generator.thread);
    let (began, waited) = (clock::now(), consumed().waited);
    let opened = generator.open();
    let ready = opened.map_err(|class| {
        let waited = consumed().waited.saturating_sub(waited);
        let starved = (waited > (clock::now() - began) / 2).then_some(waited);
        unreachable(shared, class, generator.tls_trouble.take(), starved)
    });
    if ready.is_err() {
        shared.stop();
    }
    // The receiver outlives the threads.
    let _ = reports.send(Report::Ready);
    gate.open.wait();
    let start = gate.start.monotonic.load(Ordering::Relaxed);
    match ready {
        Ok(_) if start == 0 => return Report::Failed(LoadError::Interrupted),
        Ok(_) => {}
        Err(error) => return Report::Failed(error),
    }
    let began = clock::now();
    let before = consumed();
    let ended = generator.run(start);
    let (after, elapsed) = (consumed(), clock::now() - began);
    gate.end.wait();
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
    Report::Done(Box::new(ThreadResult {
        recorder: generator.take_recorder(),
        ended,
        cost,
        priority_refused,
        gave_up: generator.gave_up,
        backlog_most: generator.backlog_most,
        unfinished: generator.unfinished(),
        used_up: generator.used_up(),
    }))
}

/// `starved` is how long the generator waited for a core, in nanoseconds, where that was most of the time.
fn unreachable(
    shared: &Shared,
    class: Failure,
    tls_trouble: Option<String>,
    starved: Option<u64>,
) -> LoadError {
    let detail = match (tls_trouble, starved) {
        (Some(why), _) => format!(": {why}"),
        (None, Some(waited)) => format!(
            "; the generator itself waited {:.1} s for a core, so this need not be the server's fault: run it where it has \
             a core (--threads 1@CORE), or with --priority",
            waited as f64 / 1e9
        ),
        (None, None) if class == Failure::Tls => {
            ": the server did not complete the handshake; does it speak TLS there?".to_owned()
        }
        (None, None) => String::new(),
    };
    LoadError::Unreachable { address: shared.address.to_string(), class, detail }
}
