//! The threads of a turn: they start at the same moment, and their records are merged.

use super::super::failure::Failure;
use super::super::generator::Generator;
use super::super::generator_thread::{configure_thread, thread_usage};
use super::super::merge::{ThreadResult, merge};
use super::super::plan::Plan;
use super::super::result::{GeneratorCost, LoadResult};
use super::super::shared::LoadShared;
use super::super::{clock, find_doubts};
use super::load_error::LoadError;
use super::ticks;
use super::turn_event::TurnEvent;
use super::watch::{TurnStart, WatchState};
use scruple_core::unit::{Unit, quantity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

enum ThreadMessage {
    /// A thread has opened its connections, or has failed to.
    Ready,
    Done(Box<ThreadResult>),
    Failed(LoadError),
}

/// The points at which the threads wait for each other.
struct Gate {
    start: TurnStart,
    /// The barrier that the waiting thread opens when all threads are ready.
    open: Barrier,
    end: Barrier,
}

/// Runs the threads, which start at the same moment, and merges their records.
pub(super) fn run_threads(
    shared: &Arc<LoadShared>,
    plan: &Plan,
    generators: &mut [Generator],
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(TurnEvent<'_>),
) -> Result<LoadResult, LoadError> {
    let mut waiting = generators.len();
    let gate =
        Gate { start: TurnStart::default(), open: Barrier::new(waiting + 1), end: Barrier::new(waiting) };
    let start = &gate.start;
    let over = AtomicBool::new(false);
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
        let over = &over;
        let ticking =
            plan.threads.are_well_placed().then(|| scope.spawn(move || ticks::lateness(start, over)));
        let mut done: Vec<ThreadResult> = Vec::new();
        let mut error = None;
        let mut watch = WatchState::of(plan);
        loop {
            match reports.recv_timeout(watch.pause(start)) {
                Ok(ThreadMessage::Ready) => {
                    waiting -= 1;
                    if waiting == 0 {
                        watch.begin(shared, plan, start, on_event);
                        gate.open.wait();
                    }
                }
                Ok(ThreadMessage::Done(result)) => done.push(*result),
                // An interrupted thread was only stopped because of another thread's error.
                Ok(ThreadMessage::Failed(failed)) => {
                    error = error.filter(|error| !matches!(error, LoadError::Interrupted)).or(Some(failed));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => watch.check_progress(shared, start, on_event),
            }
            if interrupted.load(Ordering::Relaxed) {
                shared.stop();
            }
        }
        over.store(true, Ordering::Relaxed);
        let tick_lateness = ticking.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let reached = done.iter().map(|thread| thread.cost.reached).sum();
        match error {
            Some(_) if interrupted.load(Ordering::Relaxed) => Err(LoadError::Interrupted),
            Some(error) => Err(error),
            None if done.iter().any(|thread| thread.gave_up) => Err(silent(plan, &done)),
            None => {
                watch.finish(shared, start, reached, on_event);
                let started =
                    (start.monotonic.load(Ordering::Relaxed), start.since_1970.load(Ordering::Relaxed));
                let aborted = watch.abort.and_then(|abort| abort.why);
                let mut result = LoadResult { tick_lateness, ..merge(plan, done, started, aborted) };
                if shared.address.is_local() {
                    result.doubts.extend(find_doubts::busy_machine(plan, &result));
                }
                Ok(result)
            }
        }
    })
}

fn silent(plan: &Plan, threads: &[ThreadResult]) -> LoadError {
    let requests = threads.iter().map(|thread| thread.recorder.timeouts()).sum();
    LoadError::NoAnswers { requests, patience: quantity(plan.timeout.as_nanos() as f64, &Unit::Nanoseconds) }
}

fn one_thread(
    shared: &LoadShared,
    plan: &Plan,
    generator: &mut Generator,
    gate: &Gate,
    reports: &mpsc::Sender<ThreadMessage>,
) -> ThreadMessage {
    let priority_refused = !configure_thread(plan, generator.thread);
    let (began, waited) = (clock::now(), thread_usage().waited);
    let opened = generator.open();
    let ready = opened.map_err(|class| {
        let waited = thread_usage().waited.saturating_sub(waited);
        let starved = (waited > (clock::now() - began) / 2).then_some(waited);
        unreachable(shared, class, generator.take_tls_trouble(), starved)
    });
    if ready.is_err() {
        shared.stop();
    }
    // The receiver outlives the threads.
    let _ = reports.send(ThreadMessage::Ready);
    gate.open.wait();
    let start = gate.start.monotonic.load(Ordering::Relaxed);
    match ready {
        Ok(_) if start == 0 => return ThreadMessage::Failed(LoadError::Interrupted),
        Ok(_) => {}
        Err(error) => return ThreadMessage::Failed(error),
    }
    let began = clock::now();
    let before = thread_usage();
    let ended = generator.run(start);
    let (after, elapsed) = (thread_usage(), clock::now() - began);
    gate.end.wait();
    generator.account_for_unfinished(ended, began + elapsed);
    let (answered, failed) = generator.recorder.totals();
    let cost = GeneratorCost {
        threads: 1,
        elapsed,
        user: after.user - before.user,
        system: after.system - before.system,
        waited: after.waited.saturating_sub(before.waited),
        preempted: after.preempted - before.preempted,
        requests: answered + failed,
        reached: answered + failed - generator.recorder.unread,
    };
    ThreadMessage::Done(Box::new(ThreadResult {
        recorder: generator.take_recorder(),
        ended,
        ended_at: began + elapsed,
        cost,
        connections: generator.outcomes(),
        priority_refused,
        gave_up: generator.gave_up,
        backlog_most: generator.longest_queue(),
        unfinished: generator.unfinished(),
        used_up: generator.used_up(),
    }))
}

/// The error that the server cannot be reached. `starved` is how long the generator waited for a core in nanoseconds,
/// if that was most of the time.
fn unreachable(
    shared: &LoadShared,
    class: Failure,
    tls_trouble: Option<String>,
    starved: Option<u64>,
) -> LoadError {
    let detail = match (tls_trouble, starved) {
        (Some(why), _) => format!(": {why}"),
        (None, Some(waited)) => format!(
            "; the generator itself waited {:.1} s for a core, so the cause may not be the server: give the generator \
             a core (--threads 1@CORE) or priority (--priority)",
            waited as f64 / 1e9
        ),
        (None, None) if class == Failure::Tls => {
            ": the server did not complete the handshake; does it speak TLS there?".to_owned()
        }
        (None, None) if class == Failure::Refused => "; is the server running?".to_owned(),
        (None, None) => String::new(),
    };
    LoadError::Unreachable { address: shared.address.to_string(), class, detail }
}
