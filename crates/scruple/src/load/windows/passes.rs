//! Runs separate windows for the instruments that would disturb the latencies: allocations, instructions, sampled time,
//! system calls.

use super::{ObservedServer, TargetServer, engine};
use crate::fault::Fault;
use crate::paths;
use scruple_core::metric::metric;
use scruple_core::sample::Reading;
use scruple_core::sorting::SortedMap;
use scruple_measure::heap::{self, HeapSession, LiveBytes};
use scruple_measure::load::cost::collections::{self, Collections, NoRuntimeFigures};
use scruple_measure::load::cost::instructions::{self, RequestInstructions};
use scruple_measure::load::cost::process_tree::ProcessTree;
use scruple_measure::load::cost::sampled::{self, SampledTime};
use scruple_measure::load::cost::sheet::{self, Sheet};
use scruple_measure::load::cost::start::StartedServer;
use scruple_measure::load::cost::syscalls;
use scruple_measure::load::{
    Failure, GeneratorThreads, LoadError, LoadResult, Pace, Plan, Session, WarmUp, run,
};
use scruple_measure::program::Program;
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
        let requests = ((self.rate * SECONDS) as u64).clamp(600, 100_000);
        let lengths = sheet::windows(requests, 2);
        let bounded = self.bounded(COUNTED);
        // The time is divided equally between the windows and the warm-up before them.
        let plan = Plan { duration: LONGEST / (lengths.len() as u32 + 1), ..bounded };
        // As in the timing pass, connections are opened once, in the warm-up. If each window opened its own, their cost
        // would be added to that of the requests.
        let mut connections = Session::new(&side.target, &plan).map_err(|error| error.to_string())?;
        let mut timeouts = 0;
        let mut drive = |plan: &Plan, at_end: &(dyn Fn() + Sync)| {
            let plan = Plan { most_timeouts: Some(MOST_TIMEOUTS - timeouts), ..plan.clone() };
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
        let sheet = sheet::weigh(&tree, &plan, &lengths, &mut drive, &mut counters);
        drop(server);
        let mut sheet = sheet.map_err(|error| error.to_string())?;
        // The other accounts are left out, because the timing pass has read them without disturbance.
        sheet.rows.retain(|row| row.key.starts_with("malloc."));
        match sheet.rows.iter().find_map(|row| row.cost.as_ref().err()) {
            Some(why) => Err(why.clone()),
            None => Ok(sheet),
        }
    }

    /// Reads from the server's language runtime the allocations per request, and how often it collects.
    ///
    /// # Errors
    /// A clause that says why there are no figures.
    pub fn runtime(&self) -> Result<Collections, NoRuntimeFigures> {
        let command = self
            .side
            .command
            .as_ref()
            .ok_or_else(|| "the runtime has to be asked from the start".to_owned())?;
        let many = ((self.rate * SECONDS) as u64).clamp(600, 20_000);
        let mut exactly = |count: u64| self.exactly(count, self.bounded(COUNTED));
        let (target, patience) = (&self.side.target, self.observed.patience);
        collections::weigh(command, target, (many / 6, many), patience, self.interrupted, &mut exactly)
    }

    /// Counts instructions and calls by function under Valgrind, in a closed loop over the load's connections.
    ///
    /// # Errors
    /// A clause that says why they cannot be counted.
    pub fn instructions(&self, requests: u64) -> Result<RequestInstructions, String> {
        let command = self.side.command.as_ref().ok_or("Valgrind has to start the server itself")?;
        let plan = Plan {
            pace: Pace::Closed,
            threads: GeneratorThreads::of(1),
            grow_to: 0,
            ..self.bounded(SIMULATED)
        };
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
        sampled::weigh(&tree, &mut || Ok(self.run(&plan)?.generator.requests))
    }

    /// Counts the server's system calls.
    ///
    /// # Errors
    /// A clause that says why they cannot be counted.
    pub fn syscalls(&self) -> Result<SortedMap<String, f64>, String> {
        let (_server, tree) = self.attach(self.side)?;
        self.run(&self.short(300.0, TRACED))?;
        let plan = self.short(self.rate, TRACED);
        syscalls::count(&tree, &mut || Ok(self.run(&plan)?.generator.requests))
    }

    fn attach(&self, side: &TargetServer) -> Result<(Option<StartedServer>, ProcessTree), String> {
        let message = |fault: Fault| fault.message;
        let server = engine::start(side, self.observed.patience, self.interrupted).map_err(message)?;
        let pid = match &server {
            Some(server) => Some(server.pid()),
            None => self.observed.pid.or_else(|| engine::listener(&side.target)),
        };
        let pid = pid.ok_or("the server’s processes are not known: name one with --pid")?;
        Ok((server, ProcessTree::of(pid)?))
    }

    /// Sends exactly this many requests, and returns an error unless all of them are answered, and some well. An answer
    /// with a bad status is one that the server made, too.
    fn exactly(&self, count: u64, plan: Plan) -> Result<LoadResult, String> {
        let load = self.run(&Plan { max_requests: Some(count), most_timeouts: Some(1), ..plan })?;
        let (good, bad) = (load.counts.answered, load.counts.failures.of_answers());
        match good > 0 && good + bad == count {
            true => Ok(load),
            false if bad == 0 => Err(format!("only {good} of {count} requests were answered")),
            false => Err(format!("only {good} of {count} requests got a good answer")),
        }
    }

    fn run(&self, plan: &Plan) -> Result<LoadResult, String> {
        run(&self.side.target, plan, self.interrupted, &mut |_| {}).map_err(|error| error.to_string())
    }

    fn short(&self, requests: f64, slower: u32) -> Plan {
        Plan { max_requests: Some((requests as u64).clamp(100, 100_000)), ..self.bounded(slower) }
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
