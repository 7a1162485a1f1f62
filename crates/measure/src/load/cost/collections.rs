//! What a language runtime tells of a request: bytes it allocated, collections, time in them. The server runs twice with
//! the agent of `runtimes` in it, serves a few and then many requests, and the difference is divided by the difference
//! of the counts, so that what it allocates once cancels out.

use super::start::ServerCommand;
use crate::instrument::Instrument;
use crate::launch::{Ending, Launch, Options, Outcome};
use crate::load::Target;
use crate::program::Program;
use crate::runtimes::Runtimes;
use crate::runtimes::go::counters::while_running;
use scruple_core::sample::Reading;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// The figures that grow with the requests; the others, such as the longest pause, cannot be divided by them.
const KEYS: [&str; 6] = ["alloc.bytes", "alloc.objects", "gc.count", "gc.minor", "gc.major", "gc.time"];

/// Asks a server's runtime. `load` sends that many requests, and fails unless all are answered. The readings are per
/// request, and have the keys of the counters.
///
/// # Errors
/// Why nothing can be told, as a clause.
pub fn weigh(
    server: &ServerCommand,
    target: &Target,
    requests: (u64, u64),
    patience: Duration,
    load: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<Vec<Reading>, String> {
    if requests.0 >= requests.1 {
        return Err("the second count of requests must be the larger one".to_owned());
    }
    let mut told = |count: u64| told(server, target, count, patience, load);
    let (few, many) = (told(requests.0)?, told(requests.1)?);
    let divisor = (requests.1 - requests.0) as f64;
    let each: Vec<Reading> = KEYS
        .iter()
        .filter_map(|key| {
            let of = |readings: &[Reading]| readings.iter().find(|reading| reading.key == *key).cloned();
            let (before, after) = (of(&few)?, of(&many)?);
            let (low, high) = (before.value.ok()?, after.value.clone().ok()?);
            // Where the requests led to no collection, the time is that of the server's own beginning and end.
            if *key == "gc.time" && !grew(&few, &many, "gc.count") {
                return None;
            }
            Some(Reading { value: Ok((high - low) / divisor), ..after })
        })
        .collect();
    match each.is_empty() {
        true => Err(why(&many)),
        false => Ok(each),
    }
}

/// Whether a counter is larger in the second life of the server.
fn grew(few: &[Reading], many: &[Reading], key: &str) -> bool {
    let of = |readings: &[Reading]| {
        readings.iter().find(|reading| reading.key == key).and_then(|reading| reading.value.clone().ok())
    };
    matches!((of(few), of(many)), (Some(few), Some(many)) if many > few)
}

/// The reason that the runtime's figures share.
fn why(readings: &[Reading]) -> String {
    let reason = readings.iter().find_map(|reading| reading.value.clone().err());
    reason.unwrap_or_else(|| "no language runtime told anything".to_owned())
}

/// Everything that the runtime tells of one life of the server.
fn told(
    server: &ServerCommand,
    target: &Target,
    requests: u64,
    patience: Duration,
    load: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<Vec<Reading>, String> {
    let folder = match &server.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(|error| error.to_string())?,
    };
    let first = server.argv.first().ok_or("no server was named")?;
    let program = Program::find(first, &folder).map_err(|error| error.to_string())?;
    let mut runtimes = Runtimes::new();
    runtimes.available(&program)?;
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    env.retain(|(name, _)| !server.env.iter().any(|(other, _)| other == name));
    env.extend(server.env.iter().cloned());
    let mut launch = Launch {
        path: program.path.clone(),
        argv: server.argv.clone(),
        env,
        folder,
        stdio: [nowhere()?, nowhere()?, nowhere()?],
        options: Options::default(),
    };
    runtimes.decorate(&mut launch)?;
    let decorated = ServerCommand { argv: launch.argv.clone(), env: launch.env.clone(), ..server.clone() };
    let mut running = decorated.start(target, patience).map_err(|error| error.to_string())?;
    let loaded = load(requests);
    // A Go server has no exit of its own to be stopped at, but its counters stand in its memory at any time.
    let exits = match launch.options.read_counters {
        true => while_running(running.pid()),
        false => Vec::new(),
    };
    // Most runtimes leave in good order when interrupted; one that is ended says nothing.
    let status = running.leave(target);
    loaded?;
    let ending =
        status.and_then(|status| status.code()).map_or(Ending::Signaled(libc::SIGINT), Ending::Exited);
    let readings = runtimes.read(&Outcome { exits, ..ended(ending) });
    match readings.iter().any(|reading| reading.value.is_ok()) {
        true => Ok(readings),
        false => Err(why(&readings)),
    }
}

fn nowhere() -> Result<OwnedFd, String> {
    File::open(Path::new("/dev/null")).map(OwnedFd::from).map_err(|error| error.to_string())
}

/// An end of which only the manner is known.
fn ended(ending: Ending) -> Outcome {
    Outcome {
        wall: 0,
        ending,
        user: 0,
        system: 0,
        scheduled: None,
        faults: (0, 0),
        switches: (0, 0),
        blocks: (0, 0),
        memory: Vec::new(),
        exits: Vec::new(),
        left_behind: 0,
        unshielded: false,
        shield_refused: None,
    }
}
