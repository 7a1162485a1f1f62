//! Counts what servers execute to answer requests.

use super::gathered_launches::GatheredLaunches;
use super::means::Means;
use super::{interpreted, interpreters};
use crate::fault::Fault;
use crate::interruption;
use scruple_code::Side;
use scruple_measure::calltree::{Language, ScriptCounts, ScriptSession};
use scruple_measure::load::cost::instructions;
use scruple_measure::load::cost::server_process::ServerCommand;
use scruple_measure::load::{GeneratorThreads, LoadResult, Pace, Plan, Request, Target, WarmUp, run};
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time that a server under simulation may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of runs of a server, all in one process.
const SERVED: usize = 3;

/// A server's URL, and how it is loaded: by one connection.
struct SingleConnection {
    target: Target,
    plan: Plan,
    interrupted: Arc<AtomicBool>,
}

impl SingleConnection {
    fn of(url: &str) -> Result<SingleConnection, Fault> {
        let (target, path) = Target::parse(url).map_err(Fault::usage)?;
        let plan = Plan {
            pace: Pace::Closed,
            connections: 1,
            threads: GeneratorThreads::of(1),
            timeout: PATIENCE,
            most_timeouts: Some(1),
            duration: PATIENCE * 10,
            warm_up: WarmUp::Off,
            ..Plan::of(Request::get(&path))
        };
        Ok(SingleConnection { target, plan, interrupted: interruption::flag()? })
    }

    /// Sends requests, and fails unless all are answered.
    fn load(&self, count: u64) -> Result<LoadResult, String> {
        let plan = Plan { max_requests: Some(count), ..self.plan.clone() };
        let load =
            run(&self.target, &plan, &self.interrupted, &mut |_| {}).map_err(|error| error.to_string())?;
        match load.counts.answered == count {
            true => Ok(load),
            false => Err(format!("only {} of {count} requests got a good answer", load.counts.answered)),
        }
    }
}

/// Counts a server over equal batches of requests on one connection.
pub fn trees(command: &ServerCommand, url: &str, means: &Means<'_>) -> Result<Vec<Side>, Fault> {
    let loader = SingleConnection::of(url)?;
    // Under Valgrind, its own message would be shown.
    command.program().map_err(|error| Fault::usage(format!("there is no server to load: {error}")))?;
    let counter = means.counter.ok_or_else(|| Fault::internal("nothing counts"))?;
    let amount = (means.requests, SERVED);
    let mut load = |count: u64| loader.load(count);
    let profiles =
        instructions::trees(command, &loader.target, amount, counter, &loader.interrupted, &mut load);
    let profiles = profiles.map_err(|why| {
        Fault::program(format!("cannot count what ‘{}’ executes for {url}: {why}", words(command)))
    })?;
    Ok(profiles.iter().map(Side::of).collect())
}

/// Counts two servers by functions of their language, from their start to their end, if both are scripts whose
/// interpreter can count; see [`interpreted::gather`].
pub fn scripts(
    servers: &[(ServerCommand, String); 2],
    under_call_tree: [&Side; 2],
    means: &Means<'_>,
) -> Result<Option<Result<GatheredLaunches, String>>, Fault> {
    let names = servers.each_ref().map(|(command, _)| words(command));
    let Some(language) = interpreters::common_language(under_call_tree) else { return Ok(None) };
    // Both may listen on the same port, so they run one after the other.
    let mut run = |language| {
        let one = |(command, url): &(ServerCommand, String)| counted(language, command, url, means);
        Ok([one(&servers[0])?, one(&servers[1])?])
    };
    let most = means.effort.runs as usize;
    let mut found =
        interpreted::gather(names.each_ref().map(String::as_str), language, false, most, &mut run)?;
    if let Ok(gathered) = &mut found {
        gathered.remarks.push(format!(
            "the functions of the script are counted over {} requests, with the start and the end of each server",
            means.requests
        ));
    }
    Ok(Some(found))
}

/// Runs a server that counts itself.
fn counted(
    language: Language,
    command: &ServerCommand,
    url: &str,
    means: &Means<'_>,
) -> Result<Result<ScriptCounts, String>, Fault> {
    let loader = SingleConnection::of(url)?;
    let session = ScriptSession::start(language, means.work)
        .map_err(|error| Fault::internal(format!("cannot write to ‘{}’: {error}", means.work.display())))?;
    let set =
        |name: &str| command.env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let given = |name: &str| -> Option<OsString> { set(name).or_else(|| std::env::var_os(name)) };
    let mut command = command.clone();
    command.env.extend(session.env_of_server(given));
    let served =
        command.start(&loader.target, PATIENCE, &loader.interrupted).map_err(|error| error.to_string());
    let served = served.and_then(|mut server| {
        let served = loader.load(means.requests);
        server.leave(&loader.target);
        served
    });
    let unknown = |why: String| format!("the functions of the script are not known: {why}");
    Ok(served.and_then(|_| session.read()).map_err(unknown))
}

fn words(command: &ServerCommand) -> String {
    command.argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
