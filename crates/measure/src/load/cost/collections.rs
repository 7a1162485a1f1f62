//! Weighs what a language runtime reports per request: allocated bytes, collections, their time, and whether slow
//! requests waited for a collection. The server runs twice with the agent of `runtimes`, with few and then with many
//! requests. The difference of the figures is divided by the difference of the numbers of requests, so that one-time
//! costs cancel. Pauses are those of the second run, or of a run at another pace, and are compared with that run's
//! requests.

use super::process_tree::{ProcessTree, cpu_clock};
use super::server_process::ServerCommand;
use crate::instrument::Instrument;
use crate::launcher::{Ending, Launch, LaunchOptions, LaunchResult};
use crate::load::{LoadResult, Target};
use crate::own_environment::inherited;
use crate::program::Program;
use crate::runtimes::Runtimes;
use crate::runtimes::go::{self, counters};
use scruple_core::sample::Reading;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The figures that grow with the requests. Others, such as the longest pause, cannot be divided by them.
const KEYS: [&str; 6] = ["alloc.bytes", "alloc.objects", "gc.count", "gc.minor", "gc.major", "gc.time"];

/// The interval at which the pauses of a Go server are read: its runtime keeps the last 256, and may collect several
/// hundred times a second.
const LOOK: Duration = Duration::from_millis(50);

/// How long a server and its helpers may take to become idle before they are loaded: without the time that they wait
/// for a core, and in all.
const IDLE_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// How long processes must have used no processor time to be idle.
const REST: Duration = Duration::from_millis(50);

/// The figures of a server's runtime.
#[derive(Clone, Debug, PartialEq)]
pub struct Collections {
    /// Readings per request, by the keys of the metrics; absent if the server's runs do not show what requests add.
    pub each: Vec<Reading>,
    /// The pauses under load, or why they are not known.
    pub pauses: Result<Pauses, String>,
}

/// Why there are no figures of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRuntimeFigures {
    /// No known runtime was found, as in most servers.
    #[error("{0}")]
    NoRuntime(String),
    /// The runtime could not be queried or did not answer.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for NoRuntimeFigures {
    fn from(why: String) -> NoRuntimeFigures {
        NoRuntimeFigures::Failed(why)
    }
}

/// The pauses for collections in one stretch of load, and the slow requests that waited for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pauses {
    /// The number of pauses.
    pub count: usize,
    /// The total length of the pauses in nanoseconds, over all processes.
    pub total: u64,
    /// The length of the longest pause in nanoseconds.
    pub longest: u64,
    /// The length of the stretch, in nanoseconds.
    pub span: u64,
    /// The number of good answers in the stretch.
    pub requests: u64,
    /// The 99th percentile of the response in nanoseconds. Requests above it are called slow.
    #[serde(rename = "slow_above")]
    pub limit: u64,
    /// The number of slow requests.
    pub slow: usize,
    /// The number of slow requests that waited for a pause; `None` if the server fell behind the rate, since then all
    /// slow requests waited in its backlog.
    #[serde(rename = "slow_that_met_one")]
    pub met: Option<usize>,
}

impl Pauses {
    /// Compares pauses, given by start and end on the monotonic clock in nanoseconds, with the requests of a load.
    pub fn of(load: &LoadResult, pauses: &[(u64, u64)]) -> Pauses {
        let start = load.started.0;
        // Requests that were due in the span may be answered after it.
        let span = load.span.max(load.generator.elapsed);
        let within: Vec<(u64, u64)> = pauses
            .iter()
            .map(|(from, to)| (from.saturating_sub(start), to.saturating_sub(start)))
            .filter(|(from, to)| *to > 0 && *from < span)
            .collect();
        let limit = load.times.response.quantile(0.99).unwrap_or(0);
        let (met, slow) = load.met_a_pause(&within, limit);
        let length = |(from, to): &(u64, u64)| to - from;
        Pauses {
            count: within.len(),
            total: within.iter().map(length).sum(),
            longest: within.iter().map(length).max().unwrap_or(0),
            span,
            requests: load.counts.answered,
            limit,
            slow,
            met: (load.behind == 0).then_some(met),
        }
    }
}

/// Weighs a server's runtime. `load` sends the given number of requests, and fails unless the server
/// answers all that reach it.
///
/// # Errors
/// Says why there are no figures, as a clause.
pub fn weigh(
    server: &ServerCommand,
    target: &Target,
    requests: (u64, u64),
    patience: Duration,
    interrupted: &AtomicBool,
    load: &mut dyn FnMut(u64) -> Result<LoadResult, String>,
) -> Result<Collections, NoRuntimeFigures> {
    if requests.0 >= requests.1 {
        return Err("the second count of requests must be the larger one".to_owned().into());
    }
    let mut counted = |count: u64| count_over(server, target, patience, interrupted, &mut || load(count));
    let (few, many) = (counted(requests.0)?, counted(requests.1)?);
    let more = many.load.generator.reached.saturating_sub(few.load.generator.reached).max(1);
    let (load, pauses, many) = (many.load, many.pauses, many.readings);
    let each = each_request(&few.readings, &many, more as f64);
    match each.is_empty() {
        true => Err(why(&many).into()),
        false => Ok(Collections { each, pauses: pauses.map(|pauses| Pauses::of(&load, &pauses)) }),
    }
}

/// Compares the pauses of one run of the server with the requests of `load`, which it returns.
///
/// # Errors
/// Says why the pauses are not known, as a clause.
pub fn pauses(
    server: &ServerCommand,
    target: &Target,
    patience: Duration,
    interrupted: &AtomicBool,
    load: &mut dyn FnMut() -> Result<LoadResult, String>,
) -> Result<Pauses, NoRuntimeFigures> {
    let run = count_over(server, target, patience, interrupted, load)?;
    Ok(Pauses::of(&run.load, &run.pauses?))
}

/// The amount that each additional request of the second run added to each figure; `requests` is their number.
fn each_request(few: &[Reading], many: &[Reading], requests: f64) -> Vec<Reading> {
    let each = KEYS.iter().filter_map(|key| {
        let of = |readings: &[Reading]| readings.iter().find(|reading| reading.key == *key).cloned();
        let (before, after) = (of(few)?, of(many)?);
        let (low, high) = (before.value.ok()?, after.value.clone().ok()?);
        // If the requests caused no collection, the time of collections belongs to the server's start and end.
        if *key == "gc.time" && !grew(few, many, "gc.count") {
            return None;
        }
        Some(Reading { value: added(low, high).map(|added| added / requests), ..after })
    });
    each.collect()
}

/// The amount that the additional requests of the second run added to a figure. A request never reduces a figure, so a
/// figure that is smaller after more requests only shows how much two runs of the server differ.
fn added(few: f64, many: f64) -> Result<f64, String> {
    match many >= few {
        true => Ok(many - few),
        false => {
            Err("it is below resolution: two runs of the server differ by more than the requests add"
                .to_owned())
        }
    }
}

/// Whether a counter is larger in the server's second run.
fn grew(few: &[Reading], many: &[Reading], key: &str) -> bool {
    let of = |readings: &[Reading]| {
        readings.iter().find(|reading| reading.key == key).and_then(|reading| reading.value.clone().ok())
    };
    matches!((of(few), of(many)), (Some(few), Some(many)) if many > few)
}

/// The reason that the runtime's absent figures have in common.
fn why(readings: &[Reading]) -> String {
    let reason = readings.iter().find_map(|reading| reading.value.clone().err());
    reason.unwrap_or_else(|| "no language runtime reported anything".to_owned())
}

/// One run of the server.
struct ServerRun {
    load: LoadResult,
    /// All readings of the runtime.
    readings: Vec<Reading>,
    /// Start and end of each pause on the monotonic clock in nanoseconds, or why they are not known.
    pauses: Result<Vec<(u64, u64)>, String>,
}

fn count_over(
    server: &ServerCommand,
    target: &Target,
    patience: Duration,
    interrupted: &AtomicBool,
    load: &mut dyn FnMut() -> Result<LoadResult, String>,
) -> Result<ServerRun, NoRuntimeFigures> {
    let folder = match &server.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(|error| error.to_string())?,
    };
    let first = server.argv.first().ok_or_else(|| "no server was named".to_owned())?;
    let program = Program::find(first, &folder).map_err(|error| error.to_string())?;
    let mut runtimes = Runtimes::new().logging_collections();
    runtimes.available(&program).map_err(NoRuntimeFigures::NoRuntime)?;
    let mut env: Vec<(OsString, OsString)> = inherited().collect();
    env.retain(|(name, _)| !server.env.iter().any(|(other, _)| other == name));
    env.extend(server.env.iter().cloned());
    let mut launch = Launch {
        path: program.path.clone(),
        argv: server.argv.clone(),
        env,
        folder,
        stdio: [nowhere()?, nowhere()?, nowhere()?],
        options: LaunchOptions::default(),
    };
    runtimes.decorate(&mut launch)?;
    let decorated = ServerCommand { argv: launch.argv.clone(), env: launch.env.clone(), ..server.clone() };
    // If the agent cannot be loaded, the runtime's report is extracted from standard error.
    let [_, _, stderr] = launch.stdio;
    let running = decorated.start_with_stderr(target, patience, interrupted, stderr.into());
    let mut running = running.map_err(|error| error.to_string())?;
    // A Go server cannot be stopped at its exit, but its counters can be read from its memory at any time. It may run
    // below a wrapper, so the whole process tree is searched.
    wait_until_idle(running.pid());
    let before = processor_times(&runtimes.processes());
    let (loaded, stops) = watched(running.pid(), load);
    let idle = unchanged(&before);
    let exits = counters::while_running(running.pid());
    // Most runtimes shut down properly after SIGINT. A killed runtime reports nothing.
    let status = running.leave(target);
    let load = loaded?;
    let ending = status.map_or(Ending::Signaled(libc::SIGINT), Ending::from);
    let is_go = !exits.is_empty();
    let readings = runtimes.read(&LaunchResult { exits, ..LaunchResult::ended(ending) });
    let (started, since_1970) = load.started;
    let monotonic = |moment: u64| (moment + started).saturating_sub(since_1970);
    let pauses = runtimes.pauses().map(<[_]>::to_vec).and_then(|mut pauses| {
        if is_go {
            pauses.extend(stops?.into_iter().map(|(from, to)| (monotonic(from), monotonic(to))));
        }
        Ok(pauses)
    });
    // A helper in another language that only waits does not answer requests.
    let reports = runtimes.reports();
    if !reports.is_empty() && reports.iter().all(|process| idle.contains(&process.pid)) {
        return Err(NoRuntimeFigures::NoRuntime(
            "no process with a language runtime ran under load".to_owned(),
        ));
    }
    match readings.iter().any(|reading| reading.value.is_ok()) {
        true => Ok(ServerRun { load, readings, pauses }),
        false if runtimes.reports().is_empty() => Err(NoRuntimeFigures::NoRuntime(why(&readings))),
        false => Err(why(&readings).into()),
    }
}

/// Waits until the processes below `root` are idle. One that waits for a core is not: it may still be starting.
fn wait_until_idle(root: i32) {
    let Ok(tree) = ProcessTree::of(root) else { return };
    let waited = || Duration::from_nanos(tree.living().sum().waited);
    let (began, waited_before) = (Instant::now(), waited());
    let mut before = processor_times(&tree.processes());
    loop {
        std::thread::sleep(REST);
        let after = processor_times(&tree.processes());
        let is_idle = std::mem::replace(&mut before, after.clone()) == after && !tree.is_at_work();
        let elapsed = began.elapsed();
        let ran = elapsed.saturating_sub(waited().saturating_sub(waited_before));
        if is_idle || ran > IDLE_WAIT.0 || elapsed > IDLE_WAIT.1 {
            return;
        }
    }
}

/// The processor time of each process in nanoseconds; `None` if it has ended.
fn processor_times(processes: &[i32]) -> Vec<(i32, Option<u64>)> {
    processes.iter().map(|pid| (*pid, cpu_clock(*pid))).collect()
}

/// The processes that had ended before, or that have not run since then.
fn unchanged(before: &[(i32, Option<u64>)]) -> Vec<i32> {
    let idle = before.iter().filter(|(pid, time)| time.is_none() || cpu_clock(*pid) == *time);
    idle.map(|(pid, _)| *pid).collect()
}

/// Start and end of each pause in nanoseconds since 1970, or why they are not known.
type PauseTimes = Result<Vec<(u64, u64)>, String>;

/// Runs `work`, and meanwhile reads the pauses of Go processes below `pid`.
fn watched<T>(pid: i32, work: impl FnOnce() -> T) -> (T, PauseTimes) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let (mut layouts, mut all) = (go::Layouts::default(), Vec::new());
            loop {
                let last = done.load(Ordering::Acquire);
                all.extend(counters::stops_while_running(pid, &mut layouts)?);
                all.sort_unstable();
                all.dedup();
                if last {
                    return Ok(all);
                }
                std::thread::park_timeout(LOOK);
            }
        });
        let result = work();
        done.store(true, Ordering::Release);
        watch.thread().unpark();
        (result, watch.join().unwrap_or_else(|_| Err("its memory could not be watched".to_owned())))
    })
}

fn nowhere() -> Result<OwnedFd, String> {
    File::options()
        .read(true)
        .write(true)
        .open(Path::new("/dev/null"))
        .map(OwnedFd::from)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_core::metric::metric;

    #[test]
    fn a_request_takes_no_time_back() {
        let run = |bytes: f64, collections: f64, time: f64| {
            [("alloc.bytes", bytes), ("gc.count", collections), ("gc.time", time)]
                .map(|(key, value)| Reading::of(metric(key).expect("a metric"), value, "a test"))
        };
        let each = each_request(&run(1e6, 10.0, 9e6), &run(3e6, 12.0, 7e6), 1000.0);
        let of = |key: &str| each.iter().find(|reading| reading.key == key).expect("a reading").value.clone();
        assert_eq!((of("alloc.bytes"), of("gc.count")), (Ok(2000.0), Ok(0.002)));
        assert!(of("gc.time").expect_err("a negative time").starts_with("it is below resolution"));
    }
}
