//! Runs separate windows for the instruments that would disturb the latencies: allocations, instructions, sampled time,
//! system calls.

use super::{ObservedServer, TargetServer, server_loader};
use crate::fault::Fault;
use crate::paths;
use scruple_core::metric::metric;
use scruple_core::sample::Reading;
use scruple_core::unit::grouped;
use scruple_measure::heap::{self, HeapSession, LiveBytes};
use scruple_measure::load::cost::collections::{self, Collections, NoRuntimeFigures};
use scruple_measure::load::cost::instructions::{self, RequestInstructions};
use scruple_measure::load::cost::process_tree::ProcessTree;
use scruple_measure::load::cost::sampled::{self, SampledTime};
use scruple_measure::load::cost::server_process::StartedServer;
use scruple_measure::load::cost::sheet::Sheet;
use scruple_measure::load::cost::{server_windows, syscalls, window};
use scruple_measure::load::listener::listening_at;
use scruple_measure::load::{
    Failure, GeneratorThreads, LoadError, LoadResult, Pace, Plan, Session, WarmUp, run,
};
use scruple_measure::program::Program;
use scruple_stats::sorting::SortedMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A pass in which an instrument is attached to a server.
pub struct InstrumentPass<'a> {
    /// The server to load.
    pub side: &'a TargetServer,
    /// The plan of the server's load.
    pub plan: &'a Plan,
    /// The good answers per second in the timing pass. They determine the length of a window.
    pub rate: f64,
    /// Which processes are read.
    pub observed: ObservedServer,
    /// The flag that the user's interruption sets.
    pub interrupted: &'a AtomicBool,
}

/// The longest time of a pass, however much its instrument slows the server down.
const LONGEST: Duration = Duration::from_secs(120);

/// The time-outs of an answer in a pass, as multiples of that of the load, because instruments slow the server down.
/// Counting or sampling slows it down a little, stopping at each system call more, and simulation most.
const COUNTED: u32 = 4;
const TRACED: u32 = 20;
const SIMULATED: u32 = 50;

/// The longest time-out of an answer in a pass, unless that of the load itself is longer.
const SLOWEST: Duration = Duration::from_secs(60);

/// The number of time-outs after which a pass is aborted. A pass that needs every answer is aborted after the first.
const MOST_TIMEOUTS: u64 = 3;

/// The usual length of a separate pass at the rate of the timing pass, in seconds.
const SECONDS: f64 = 3.0;

/// The length of a pass with a server for which 600 requests would take longer, in seconds.
const SLOW_SECONDS: f64 = 12.0;

/// The smallest number of requests of a pass that only counts, however slow the server is.
const FEWEST: f64 = 60.0;

/// About how long a server takes to start, become idle and end, in seconds. It only serves to announce times.
const START_SECONDS: f64 = 1.0;

impl InstrumentPass<'_> {
    /// Counts the allocations of a server that is started with the allocation counter attached.
    ///
    /// # Errors
    /// A clause that says why they cannot be counted.
    pub fn heap(&self, folder: &Path) -> Result<Sheet, String> {
        let mut side = self.side.clone();
        let command = side.command.as_mut().ok_or("the counter has to be there from the server’s start")?;
        let here = std::env::current_dir().map_err(|error| error.to_string())?;
        let first = command.argv.first().ok_or("no server was named")?;
        let program = Program::find(first, &here).map_err(|error| error.to_string())?;
        heap::measurable(&program.path).map_err(|error| error.to_string())?;
        let session = HeapSession::start(folder, LiveBytes::Usable).map_err(|error| error.to_string())?;
        command.env.extend(session.environment(std::env::var_os("LD_PRELOAD").as_deref()));
        let (server, tree) = self.attach(&side)?;
        let mut counters = || counters(&session);
        let lengths = window::lengths(counted_requests(self.rate, 100_000), 2);
        let bounded = self.counted();
        // A connection without a request in one window would keep a server that serves one connection at a time from
        // those that the next window opens.
        let fewest = lengths.iter().min().map_or(1, |fewest| *fewest as u32);
        let connections = bounded.connections.min(fewest).max(bounded.threads.count);
        // The time is divided equally between the windows and the warm-up before them.
        let plan = Plan { connections, duration: LONGEST / (lengths.len() as u32 + 1), ..bounded };
        // As in the timing pass, connections are opened once, in the warm-up. If each window opened its own, their cost
        // would be added to that of the requests.
        let mut connections = Session::new(&side.target, &plan).map_err(|error| error.to_string())?;
        let mut timeouts = 0;
        let mut drive = |plan: &Plan, at_end: &(dyn Fn() + Sync)| {
            // The last requests of a window may all time out together, which are more than it may have.
            let left = MOST_TIMEOUTS.saturating_sub(timeouts);
            let plan = Plan { most_timeouts: Some(left), ..plan.clone() };
            match connections.turn(&plan, self.interrupted, &mut |_| {}) {
                Err(LoadError::NoAnswers { requests, patience }) => {
                    Err(LoadError::NoAnswers { requests: requests + timeouts, patience })
                }
                loaded => {
                    at_end();
                    timeouts += loaded.as_ref().map_or(0, |load| load.counts.failures.of(Failure::TimedOut));
                    loaded
                }
            }
        };
        let sheet = server_windows::weigh(&tree, &plan, &lengths, &mut drive, &mut counters);
        drop(server);
        let mut sheet = sheet.map_err(|error| error.to_string())?;
        // The other accounts are left out, because the timing pass has read them without disturbance.
        sheet.rows.retain(|row| row.key.starts_with("malloc."));
        match sheet.rows.iter().find_map(|row| row.cost.as_ref().err()) {
            Some(why) => Err(why.clone()),
            None => Ok(sheet),
        }
    }

    /// Reads from the server's language runtime the allocations per request, and how often it collects. The pauses are
    /// compared with slow requests at the pace of the load, for which an open loop needs another run: only the last of
    /// several passes does this.
    ///
    /// # Errors
    /// A clause that says why there are no figures.
    pub fn runtime(&self, last: bool) -> Result<Collections, NoRuntimeFigures> {
        let command = self
            .side
            .command
            .as_ref()
            .ok_or_else(|| "the runtime has to be asked from the start".to_owned())?;
        let many = counted_requests(self.rate, 20_000);
        let mut answered = |count: u64| self.all_answered(count, self.counted());
        let (target, patience) = (&self.side.target, self.observed.patience);
        let weighed =
            collections::weigh(command, target, (many / 6, many), patience, self.interrupted, &mut answered)?;
        let paced = self.bounded(COUNTED);
        if !last || paced.pace == Pace::Closed {
            return Ok(weighed);
        }
        let paced = Plan { max_requests: Some(many), duration: at_pace(self.plan), ..paced };
        let mut run = || self.run(&paced);
        let pauses = collections::pauses(command, target, patience, self.interrupted, &mut run);
        Ok(Collections { pauses: pauses.map_err(|why| why.to_string()), ..weighed })
    }

    /// Counts instructions and calls by function under Valgrind, in a closed loop over the load's connections.
    ///
    /// # Errors
    /// A clause that says why they cannot be counted.
    pub fn instructions(&self, requests: u64) -> Result<RequestInstructions, String> {
        let command = self.side.command.as_ref().ok_or("Valgrind has to start the server itself")?;
        let plan = closed(Plan { threads: GeneratorThreads::of(1), ..self.bounded(SIMULATED) });
        let mut exactly = |count: u64| self.exactly(count, plan.clone());
        let cache = paths::calltree_folder().map_err(|fault| fault.to_string())?;
        instructions::weigh(command, &self.side.target, requests, &cache, self.interrupted, &mut exactly)
    }

    /// Samples the server's time by function.
    ///
    /// # Errors
    /// A clause that says why it cannot be sampled.
    pub fn sampled(&self) -> Result<SampledTime, String> {
        let (_server, tree) = self.attach(self.side)?;
        self.run(&self.short(300.0, COUNTED))?;
        let plan = self.short(self.rate * SECONDS, COUNTED);
        sampled::weigh(&tree, &mut || Ok(self.run(&plan)?.generator.reached))
    }

    /// Counts the server's system calls.
    ///
    /// # Errors
    /// A clause that says why they cannot be counted.
    pub fn syscalls(&self) -> Result<SortedMap<String, f64>, String> {
        let (_server, tree) = self.attach(self.side)?;
        self.run(&self.short(300.0, TRACED))?;
        let plan = self.short(self.rate, TRACED);
        syscalls::count(&tree, &mut || Ok(self.run(&plan)?.generator.reached))
    }

    fn attach(&self, side: &TargetServer) -> Result<(Option<StartedServer>, ProcessTree), String> {
        let message = |fault: Fault| fault.message;
        let server = server_loader::start(side, self.observed.patience, self.interrupted).map_err(message)?;
        let pid = match &server {
            Some(server) => Some(server.pid()),
            None => self.observed.pid.or_else(|| listening_at(&side.target)),
        };
        let pid = pid.ok_or("the server’s processes are not known: name one with --pid")?;
        Ok((server, ProcessTree::of(pid)?))
    }

    /// Sends this many requests, and returns an error unless exactly as many are answered, and some well.
    fn exactly(&self, count: u64, plan: Plan) -> Result<LoadResult, String> {
        let load = self.all_answered(count, plan)?;
        match load.generator.reached == count {
            true => Ok(load),
            false => Err(unanswered(load.generator.reached, count, "were answered")),
        }
    }

    /// Sends this many requests, and returns an error unless all that reach the server are answered, and some well. An
    /// answer with a bad status is one that the server made, too.
    fn all_answered(&self, count: u64, plan: Plan) -> Result<LoadResult, String> {
        let load = self.run(&Plan { max_requests: Some(count), most_timeouts: Some(1), ..plan })?;
        let (good, bad) = (load.counts.answered, load.counts.failures.of_answers());
        match good > 0 && good + bad == load.generator.reached {
            true => Ok(load),
            false => {
                Err(unanswered(good, count, if bad == 0 { "were answered" } else { "got a good answer" }))
            }
        }
    }

    fn run(&self, plan: &Plan) -> Result<LoadResult, String> {
        run(&self.side.target, plan, self.interrupted, &mut |_| {}).map_err(|error| error.to_string())
    }

    fn short(&self, requests: f64, slower: u32) -> Plan {
        Plan { max_requests: Some((requests as u64).clamp(100, 100_000)), ..self.bounded(slower) }
    }

    /// Returns the plan of a pass that only counts. It is a closed loop, because an open loop would last as long as its
    /// rate is low.
    fn counted(&self) -> Plan {
        closed(self.bounded(COUNTED))
    }

    /// Returns the plan of a pass whose instrument makes the server this many times slower.
    fn bounded(&self, slower: u32) -> Plan {
        // The users of a pass do not pause between requests, and each connection has one user.
        let scenario = self.plan.scenario.as_ref().map(|scenario| Arc::new(scenario.hurried()));
        Plan {
            requests: self.side.requests.clone(),
            pace: if scenario.is_some() { Pace::Closed } else { self.plan.pace },
            scenario,
            each: None,
            live: false,
            duration: LONGEST,
            timeout: (self.plan.timeout * slower).min(SLOWEST.max(self.plan.timeout)),
            most_timeouts: Some(MOST_TIMEOUTS),
            warm_up: WarmUp::Off,
            ..self.plan.clone()
        }
    }
}

fn unanswered(few: u64, all: u64, how: &str) -> String {
    format!("only {} of {} requests {how}", grouped(few as f64), grouped(all as f64))
}

/// The same load in a closed loop over its connections.
fn closed(plan: Plan) -> Plan {
    Plan { pace: Pace::Closed, grow_to: 0, ..plan }
}

/// The number of requests of a pass that only counts, at most `most`, for a server with this many good answers per
/// second. There are fewer than 600 if the server would need too long for them.
fn counted_requests(rate: f64, most: u64) -> u64 {
    let usual = (rate * SECONDS).max(600.0);
    (usual.min((rate * SLOW_SECONDS).max(FEWEST)) as u64).min(most)
}

/// How long the pauses for collections are compared with the requests of an open loop: as long as the load itself.
fn at_pace(plan: &Plan) -> Duration {
    Duration::from_nanos(plan.span()).clamp(Duration::from_secs_f64(SECONDS), LONGEST)
}

/// The time for the passes that count allocations and ask the runtime, for a server whose runtime is asked this many
/// times: usually, and if the server is hardly faster than the rate of the load, or is slow in a closed loop.
pub fn time_of_counting(plan: &Plan, times: u32) -> [Duration; 2] {
    let slow = plan.rate().map_or(SLOW_SECONDS, |rate| counted_requests(rate, 100_000) as f64 / rate);
    let is_open = plan.pace != Pace::Closed && plan.scenario.is_none();
    let pauses = if is_open { at_pace(plan).as_secs_f64() + START_SECONDS } else { 0.0 };
    [SECONDS.min(slow), slow].map(|seconds| {
        // The runtime is asked in two runs of the server. The first has a sixth of the requests of the second. Before
        // the windows in which allocations are counted, there is one of a twelfth of their requests.
        let runtime = seconds * 7.0 / 6.0 + 2.0 * START_SECONDS;
        let heap = seconds * 13.0 / 12.0 + 3.0 * START_SECONDS;
        Duration::from_secs_f64(heap + runtime * f64::from(times) + pauses)
    })
}

fn counters(session: &HeapSession) -> Vec<Reading> {
    let keys = ["malloc.count", "malloc.bytes", "malloc.frees"];
    let absent = |why: &str| {
        keys.iter().filter_map(|key| Some(Reading::absent(metric(key)?, why))).collect::<Vec<_>>()
    };
    match session.read() {
        Err(error) => absent(&error.to_string()),
        Ok(totals) if !totals.is_complete() => absent("a part of the process tree could not be counted"),
        Ok(totals) => {
            let counts = totals.counts();
            keys.iter()
                .zip([counts.allocations, counts.bytes, counts.frees])
                .filter_map(|(key, value)| Some(Reading::of(metric(key)?, value as f64, "preload counter")))
                .collect()
        }
    }
}

/// Converts counters per request into readings of the corresponding metrics.
pub fn of_a_request(counters: &[Reading]) -> impl Iterator<Item = Reading> + '_ {
    counters.iter().filter_map(|counter| {
        let metric = metric(&format!("request.{}", counter.key))?;
        let value = counter.value.clone().ok()?;
        Some(Reading::of(metric, value, &counter.source).with_quality(counter.quality.max(metric.quality)))
    })
}

/// Returns the readings that a pass adds to its arm: the figures per request of each window.
pub fn readings(sheet: &Sheet) -> Vec<Vec<Reading>> {
    let source = sheet.rows.first().map_or("", |row| row.source.as_str());
    let idle = |key: &str| sheet.rows.iter().find(|row| row.key == key).map_or(0.0, |row| row.idle);
    let windows = sheet.windows.iter().filter(|window| window.requests > 0);
    windows
        .map(|window| {
            let each: Vec<(String, f64)> = window
                .grown
                .iter()
                .filter(|(key, _)| sheet.rows.iter().any(|row| row.key == *key))
                .map(|(key, grown)| {
                    let background = idle(key) * window.elapsed as f64 / 1e9;
                    (key.clone(), (grown - background) / window.requests as f64)
                })
                .collect();
            super::readings::costs(&each, source).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_measure::load::{Arrivals, Request};

    #[test]
    fn a_slow_server_is_counted_over_fewer_requests() {
        let requests = [1.0, 10.0, 50.0, 1000.0, 1e6].map(|rate| counted_requests(rate, 100_000));
        assert_eq!(requests, [60, 120, 600, 3000, 100_000]);
    }

    #[test]
    fn the_announced_time_follows_from_the_rate() {
        let seconds = |rate: Option<f64>, times: u32| {
            let pace = rate.map_or(Pace::Closed, |rate| Pace::Open { rate, arrivals: Arrivals::Constant });
            let plan = Plan { pace, duration: Duration::from_secs(4), ..Plan::of(Request::get("/")) };
            time_of_counting(&plan, times).map(|time| time.as_secs_f64().round() as u64)
        };
        // Allocations: 3 s * 13/12 + 3 s, or 12 s * 13/12 + 3 s. Each run of the runtime: 3 s * 7/6 + 2 s, or
        // 12 s * 7/6 + 2 s. In an open loop also 4 s + 1 s for pauses.
        assert_eq!(seconds(None, 1), [12, 32]);
        assert_eq!(seconds(None, 4), [28, 80]);
        assert_eq!(seconds(Some(50.0), 4), [33, 85]);
        // 1800 requests at 600/s take the usual 3 s.
        assert_eq!(seconds(Some(600.0), 1), [17, 17]);
        // 60 requests at 1/s.
        assert_eq!(seconds(Some(1.0), 1), [17, 145]);
    }
}
