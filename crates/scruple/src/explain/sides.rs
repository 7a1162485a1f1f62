//! The two sides A and B of a comparison, and how their call trees are obtained.

use super::args::ExplainArgs;
use super::findings::Findings;
use super::gathered_launches::GatheredLaunches;
use super::means::Means;
use super::{counted_launches, servers};
use crate::fault::{Code, Fault};
use crate::inspect::calls::{kind_of, remark_of};
use crate::inspect::single_launch;
use crate::inspect::sites::remark_of_runtime;
use crate::interruption;
use crate::profile::read::{Kind, OWN};
use scruple_code::{Side, SourceText, as_built, name_stripped};
use scruple_core::explain::Count;
use scruple_measure::bench::{BenchError, BenchStart};
use scruple_measure::calltree::{ChosenTool, CountDetail, CountedCase};
use scruple_measure::command::Job;
use scruple_measure::launcher::Launcher;
use scruple_measure::load::cost::server_process::ServerCommand;

/// One of the two sides that are compared.
pub enum SideSource {
    /// A command that is run.
    Command(Box<Job>),
    /// A case of a bench program.
    Case {
        /// The launch of the bench program.
        job: Box<Job>,
        /// The path of the case.
        name: String,
    },
    /// A server that is loaded.
    Server {
        /// The command that starts the server.
        command: ServerCommand,
        /// The URL of the requests.
        url: String,
    },
    /// Call trees that were counted earlier.
    Kept {
        /// The name of what was counted.
        name: String,
        /// The call tree of each launch.
        runs: Vec<Side>,
    },
}

/// The number of instructions that the iterations of a case should execute, and the largest number of iterations. The
/// number of iterations is a power of ten.
const CLEAR: u64 = 30_000_000;
const MOST: u64 = 1_000_000;

impl SideSource {
    /// Whether callgrind can count it in place of the call tree. It cannot distinguish what a server does for
    /// requests, and what it counts cannot be compared with call trees that were kept.
    pub fn needs_no_tree(&self) -> bool {
        matches!(self, SideSource::Command(_) | SideSource::Case { .. })
    }

    /// Returns the name of the side.
    pub fn name(&self) -> String {
        match self {
            SideSource::Command(job) => job.name.clone(),
            SideSource::Case { job, name } => format!("{name} of {}", job.name),
            SideSource::Server { command, url } => {
                let words = command.argv.iter().map(|word| word.to_string_lossy());
                format!("{} at {url}", words.collect::<Vec<_>>().join(" "))
            }
            SideSource::Kept { name, .. } => name.clone(),
        }
    }
}

/// Counts both sides if necessary, and explains where their difference comes from.
pub fn explained(sources: [SideSource; 2], means: &Means<'_>) -> Result<(Findings, GatheredLaunches), Fault> {
    let names = [sources[0].name(), sources[1].name()];
    if let [SideSource::Command(first), SideSource::Command(second)] = &sources {
        let launchers = [single_launch::launcher()?, single_launch::launcher()?];
        let counter = needed(means.counter)?;
        let (jobs, sources): ([&Job; 2], [&SourceText<'_>; 2]) = ([first, second], [&as_built, &as_built]);
        let gathered =
            counted_launches::gather(jobs, launchers, counter, means.work, &means.effort, sources)?;
        return Ok((Findings::of(names, &gathered, sources), gathered));
    }
    let count = means.effort.count;
    if count.is_live() && !sources.iter().all(|source| matches!(source, SideSource::Case { .. })) {
        return Err(Fault::usage(
            "memory in use can be explained for two commands, revisions or cases, and for stored runs of \
                these without kept call trees, but not for servers or kept call trees",
        ));
    }
    let mut remarks: Vec<String> = means.counter.and_then(remark_of).into_iter().collect();
    remarks.extend(sources.iter().find_map(|source| match source {
        SideSource::Case { job, .. } if count != Count::Instructions => remark_of_runtime(job),
        _ => None,
    }));
    let mut iterations = None;
    let both_servers = match &sources {
        [SideSource::Server { command, url }, SideSource::Server { command: other, url: others }] => {
            Some([(command.clone(), url.clone()), (other.clone(), others.clone())])
        }
        _ => None,
    };
    let [first, second] = sources;
    let first = runs_of(first, means, &mut iterations)?;
    let second = runs_of(second, means, &mut iterations)?;
    if let Some(iterations) = iterations {
        remarks
            .push(format!("counted over {iterations} iterations of the case, with the start of its program"));
    }
    let mut sides = [first, second];
    name_stripped(&mut sides);
    if iterations.is_some() {
        remarks.extend(counted_launches::remark_of_other_work([&sides[0][0], &sides[1][0]], means.counter));
    }
    let script = match &both_servers {
        Some(servers) => servers::scripts(servers, [&sides[0][0], &sides[1][0]], means)?,
        None => None,
    };
    let script = script.and_then(|script| script.map_err(|why| remarks.push(why)).ok()).map(Box::new);
    let gathered = GatheredLaunches {
        sides,
        variation_of_totals: None,
        times: [Vec::new(), Vec::new()],
        remarks,
        counted_by: means.counter.map(ChosenTool::describe),
        kind: means.counter.map_or_else(|| Kind::counted(OWN), kind_of),
        count,
        script,
    };
    Ok((Findings::of(names, &gathered, [&as_built, &as_built]), gathered))
}

fn needed(counter: Option<&ChosenTool>) -> Result<&ChosenTool, Fault> {
    counter.ok_or_else(|| Fault::internal("nothing counts"))
}

/// Returns the call trees of one side.
pub fn runs_of(
    source: SideSource,
    means: &Means<'_>,
    iterations: &mut Option<u64>,
) -> Result<Vec<Side>, Fault> {
    match source {
        SideSource::Kept { runs, .. } => Ok(runs),
        SideSource::Command(job) => {
            let launcher: Launcher = single_launch::launcher()?;
            counted_launches::count(&job, launcher, needed(means.counter)?, means.work, &means.effort)
        }
        SideSource::Case { job, name } => of_case(&job, &name, means, iterations),
        SideSource::Server { command, url } => servers::trees(&command, &url, means),
    }
}

/// Counts a case of a bench program. Both sides run the same number of iterations.
fn of_case(job: &Job, name: &str, means: &Means<'_>, known: &mut Option<u64>) -> Result<Vec<Side>, Fault> {
    let counter = needed(means.counter)?;
    let interrupted = interruption::flag()?;
    let start = BenchStart {
        path: &job.program.path,
        argv: &job.argv,
        padding: 0,
        count_in: None,
        counting_env: None,
        folder: Some(&job.folder),
        env: &job.env,
        whole_env: false,
    };
    let count = |counts: CountDetail, iterations: u64| {
        let case = CountedCase { start: &start, name, iterations };
        case.count(counter, counts, means.work, &interrupted).map_err(|error| match error {
            BenchError::Interrupted => Fault { code: Code::Interrupted, message: "interrupted".to_owned() },
            error => Fault::program(format!("cannot count the case ‘{name}’ of ‘{}’: {error}", job.name)),
        })
    };
    let iterations = match *known {
        Some(iterations) => iterations,
        None => {
            let (few, more) =
                (count(CountDetail::Total, 10)?.total(), count(CountDetail::Total, 20)?.total());
            let each = (more.saturating_sub(few) / 10).max(1);
            let mut iterations = 10;
            while iterations * 10 <= MOST && iterations * 10 * each <= CLEAR {
                iterations *= 10;
            }
            *known.insert(iterations)
        }
    };
    counted_launches::until_known(means.effort.runs, || {
        let mut side = Side::of(&count(CountDetail::Tree, iterations)?);
        if means.effort.count.is_live() {
            side.add_live(&count(CountDetail::Sites, iterations)?);
        }
        Ok(side)
    })
}

/// Returns the sources that the words of the command line name, if these are not profiles, stored runs or revisions.
pub fn named(args: &ExplainArgs, second: &str) -> Result<[SideSource; 2], Fault> {
    let of = |text: &str| -> Result<SideSource, Fault> {
        let words = crate::command::shell::words(text)?;
        if let Some(url) = &args.url {
            let command = ServerCommand::of(words.iter().map(Into::into).collect());
            return Ok(SideSource::Server { command, url: url.clone() });
        }
        let job = Box::new(single_launch::job(&words, Some(&args.build.time_limit))?);
        Ok(match &args.case {
            Some(name) => SideSource::Case { job, name: name.clone() },
            None => SideSource::Command(job),
        })
    };
    Ok([of(args.first.as_deref().unwrap_or_default())?, of(second)?])
}
