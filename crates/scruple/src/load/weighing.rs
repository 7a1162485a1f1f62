//! Loads servers in turn, on this machine: in timed windows, and then in the passes that count.

use super::announcement::{announcement, times_of_counting};
use super::args::{LoadArgs, LoadInstrument};
use super::limits::with_limits_of;
use super::remarks::{note, remark, remark_on_quota};
use super::remote_server::RemoteServer;
use super::report::page;
use super::watchers::Watchers;
use super::windows::passes::{self, InstrumentPass};
use super::windows::{
    Division, LoadScript, Loader, Loading, Loads, ObservedServer, Pool, RateSearch, ScriptedLoader,
    ServerLoader, ServerResults, TargetServer, add_yardstick, plan, rates, server_loader, sides,
};
use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::interruption;
use crate::new_run;
use crate::paths::WorkFolder;
use crate::progress::{Progress, in_words};
use crate::run_report::metrics_and_limits;
use crate::store::open_store;
use scruple_core::default_margins;
use scruple_core::knee::{KneeSearch, Slo};
use scruple_core::limit::Limit;
use scruple_core::metric::metric;
use scruple_core::run::{Run, RunState, Terms};
use scruple_core::sample::Reading;
use scruple_core::subject::{Arm, Parameter};
use scruple_core::unit::{Unit, grouped, parse_quantity};
use scruple_measure::load::cost::server_process::ServerCommand;
use scruple_measure::load::{LONGEST_MEASUREMENT, LoadResult, Pace, Plan, capacity, measurement};
use scruple_measure::processor_quota::ProcessorQuotas;
use scruple_measure::program::Program;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The servers after the load.
pub struct FinishedLoad {
    /// The load, with its run.
    pub loading: Loading,
    /// The results of the load in addition to its readings.
    pub loads: Loads,
    /// Why the load ended early, if it did.
    pub stop: Option<Fault>,
    /// The limits of the command line and of the scenarios.
    pub limits: Vec<Limit>,
}

/// Loads the servers and stores the run. The servers are on the node of `link`, if there is one.
pub fn take(args: &LoadArgs, link: Option<RemoteServer>) -> Result<FinishedLoad, Fault> {
    metrics_and_limits::check_metrics(&args.judging.metrics)?;
    let limits = metrics_and_limits::parse_limits(&args.judging.limit, &[])?;
    if args.cost.instructions().is_some() && args.server.is_empty() {
        return Err(Fault::usage(
            "instructions are counted from a server’s start on: give its command after ‘--’, or leave --with instructions out",
        ));
    }
    let mut sides = sides(args)?;
    let terms = terms(args)?;
    let mut run = match args.scripted {
        Some(_) => new_run::scripted_run(args.amount.seed, args.store.label.as_deref(), terms),
        None => {
            let programs = programs(&sides);
            let programs: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
            new_run::empty_run(args.amount.seed, args.store.label.as_deref(), terms, &programs)
        }
    };
    let plan = plan(args, &sides[sides.len() - 1], run.seed)?;
    let folder = match args.scripted {
        Some(_) => None,
        None => Some(WorkFolder::make()?),
    };
    if let Some(folder) = &folder {
        add_yardstick(args, folder.path(), &mut sides)?;
    }
    let mut arms: Vec<Arm> = sides.iter().map(|side| side.arm(&plan)).collect();
    let several = sides.len() > 1;
    arms.extend(sides.iter().flat_map(|side| side.parts(&plan, several)));
    let limits = with_limits_of(&sides, limits)?;
    metrics_and_limits::check_limits(&limits, arms.iter())?;
    run.terms.limits.clone_from(&limits);
    let interrupted = interruption::flag()?;
    let observed = ObservedServer::of(args)?;
    let watchers = Watchers::of(args, &args.results.export.all(), &sides)?;
    let mut work = LoadSetup { args, sides, plan, observed, interrupted, folder, watchers };
    let quotas = ProcessorQuotas::read();
    let (mut loading, loads, stop) = match args.slo() {
        Some(limits) => work.search(limits, run)?,
        None => work.weigh(arms, run, link)?,
    };
    if let Some(trouble) = work.watchers.end()? {
        loading.run.warn("live", trouble);
    }
    note(&mut loading.run, &work.sides);
    remark(&mut loading.run, &loads);
    remark_on_quota(&mut loading.run, quotas.held_up_since().filter(|_| args.scripted.is_none()));
    for (arm, server) in loading.run.arms.iter_mut().zip(&loads.servers) {
        arm.course = Some(page::course(server, &loads));
    }
    loading.keep_with(&page::sections(&loads));
    Ok(FinishedLoad { loading, loads, stop, limits })
}

/// The default range in which the highest rate is searched.
const SEARCHED: &str = "100..1M";

/// The default time of a search, unless its first measurement alone may take longer.
const SEARCH_TIME: Duration = Duration::from_secs(600);

/// Returns the terms by which a load is judged.
pub fn terms(args: &LoadArgs) -> Result<Terms, Fault> {
    let margin = args.judging.margin.as_deref().map_or(Ok(default_margins::SERVERS), values::margin)?;
    Ok(Terms { margin, ..Terms::default() })
}

/// Returns the paths of the programs that start servers. A program that is not found is left out, because starting it
/// reports the error.
pub fn programs(sides: &[TargetServer]) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let words = sides
        .iter()
        .filter_map(|side| side.command.as_ref())
        .filter_map(|command: &ServerCommand| command.argv.first());
    words.filter_map(|word| Some(Program::find(word, &here).ok()?.path)).collect()
}

/// Everything that is determined before the first request.
struct LoadSetup<'a> {
    args: &'a LoadArgs,
    sides: Vec<TargetServer>,
    plan: Plan,
    observed: ObservedServer,
    interrupted: Arc<AtomicBool>,
    /// The folder for files of instruments and yardsticks; `None` for scripted loads.
    folder: Option<WorkFolder>,
    watchers: Watchers,
}

impl LoadSetup<'_> {
    fn progress(&self) -> Progress {
        if self.args.results.json { Progress::hidden() } else { Progress::new() }
    }

    /// Runs the windows of every server, and the passes after them. Returns a fault as the third value if there are
    /// still results to show.
    fn weigh(
        &self,
        arms: Vec<Arm>,
        run: Run,
        link: Option<RemoteServer>,
    ) -> Result<(Loading, Loads, Option<Fault>), Fault> {
        let (loader, knows): (Box<dyn Loader>, bool) = match &self.args.scripted {
            Some(path) => (Box::new(ScriptedLoader::of(script(path)?, self.names())), true),
            None => {
                let interrupted = self.interrupted.clone();
                let engine = match link {
                    Some(link) => ServerLoader::on_other_node(&self.sides, self.observed, link, interrupted)?,
                    None => ServerLoader::start(&self.sides, self.observed, interrupted)?,
                };
                let knows = engine.knows_a_server();
                (Box::new(engine), knows)
            }
        };
        let division = match self.args.scripted {
            // In a script each window is a turn.
            Some(_) => {
                Division { windows: self.args.windows(1), turns: self.args.windows(1), weighed: false }
            }
            None => {
                let servers = self.sides.len();
                Division::of(&self.plan, servers, self.args.windows(servers), knows)
            }
        };
        let store = open_store::for_run(&self.args.store)?;
        let progress = self.progress();
        if self.args.scripted.is_none() {
            progress.note(&announcement(&self.plan, &division, self.sides.len() as u32, self.counts()));
        }
        let mut loading = Loading::new(loader, arms, run, store, progress)?;
        let mut stop = match loading.take(&self.plan, division, &self.watchers) {
            Ok(false) => None,
            Ok(true) => Some(Fault::interrupted_run()),
            Err(fault) if loading.empty() => {
                loading.keep();
                return Err(fault);
            }
            Err(fault) => Some(fault),
        };
        let mut loads = loading.outcome(&self.plan);
        loads.show_map = self.args.shows_the_map();
        let gone = loads.servers.iter().any(|server| server.pool.gone);
        if stop.is_none() && !gone && self.args.scripted.is_none() {
            self.passes(&mut loading, &mut loads)?;
            stop = self.interrupted.load(Ordering::Relaxed).then(Fault::interrupted_run);
        }
        Ok((loading, loads, stop))
    }

    /// Whether allocations are counted and runtimes are asked.
    fn counts(&self) -> bool {
        self.sides.iter().any(|side| side.command.is_some()) && !self.args.cost.no_cost
    }

    fn names(&self) -> Vec<String> {
        self.sides.iter().map(|side| side.name.clone()).collect()
    }

    /// Runs the passes of the instruments that would disturb the latencies.
    fn passes(&self, loading: &mut Loading, loads: &mut Loads) -> Result<(), Fault> {
        let cost = &self.args.cost;
        let Some(folder) = self.folder.as_ref().map(WorkFolder::path) else { return Ok(()) };
        let progress = self.progress();
        let times = times_of_counting(self.sides.len() as u32);
        for (index, (side, server)) in self.sides.iter().zip(&mut loads.servers).enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            // On connections that the server does not handle, the requests of a pass would time out as well.
            let handled = server.pool.connections_at_a_time.unwrap_or(self.plan.connections);
            let plan = self.plan.over(handled);
            let pass = InstrumentPass {
                side,
                plan: &plan,
                rate: server.pool.rate(),
                observed: self.observed,
                interrupted: &self.interrupted,
            };
            if !cost.no_cost && side.command.is_some() {
                progress.pass(&side.name, "counting allocations");
                let heap = pass.heap(folder);
                for (block, readings) in heap.iter().flat_map(passes::readings).enumerate() {
                    loading.add(index, block as u32, readings);
                }
                if let Err(why) = &heap {
                    let absent = |key: &str| Some(Reading::absent(metric(key)?, why.as_str()));
                    loading.add(
                        index,
                        0,
                        ["request.malloc.count", "request.malloc.bytes"].into_iter().filter_map(absent),
                    );
                }
                server.heap = Some(heap);
                progress.pass(&side.name, "asking the language runtime");
                let runtime = repeated(times, |block| {
                    let runtime = pass.runtime(block + 1 == times);
                    loading.add(
                        index,
                        block,
                        runtime.iter().flat_map(|found| passes::of_a_request(&found.each)),
                    );
                    runtime
                });
                server.runtime = Some(runtime);
            }
            if let Some(requests) = cost.instructions() {
                progress.pass(&side.name, "counting instructions");
                let found = repeated(times, |block| {
                    let found = pass.instructions(requests);
                    let total = found.as_ref().map(|found| found.total.value);
                    loading.add(index, block, reading("request.instructions", total, "valgrind"));
                    found
                });
                server.instructions = Some(found);
            }
            if cost.has(LoadInstrument::Samples) {
                progress.pass(&side.name, "sampling");
                server.sampled = Some(pass.sampled());
            }
            if cost.has(LoadInstrument::SystemCalls) {
                progress.pass(&side.name, "counting system calls");
                let found = repeated(times, |block| {
                    let found = pass.syscalls();
                    let total = found.as_ref().map(|calls| calls.values().sum());
                    loading.add(index, block, reading("request.syscalls", total, "strace"));
                    found
                });
                server.syscalls = Some(found);
            }
        }
        progress.clear();
        Ok(())
    }

    /// Searches the highest rate that keeps the limits. Each rate is an arm, and each measurement a block.
    fn search(&self, limits: &str, mut run: Run) -> Result<(Loading, Loads, Option<Fault>), Fault> {
        let slo = Slo::parse(limits).map_err(Fault::usage)?;
        let precision = match self.args.judging.margin.as_deref() {
            Some(text) => parse_quantity(text, &Unit::Ratio).map_err(Fault::usage)?,
            None => default_margins::HIGHEST_RATES,
        };
        let ((from, most), arrivals) = rates(self.args.amount.rate.as_deref().unwrap_or(SEARCHED))?;
        let most = most.unwrap_or(KneeSearch::default().most);
        let search =
            KneeSearch { from, most, precision: 1.0 + precision.max(0.001), ..KneeSearch::default() };
        let side = &self.sides[0];
        // A measurement is as long as a window would be.
        let duration = self.plan.duration / self.args.windows(1);
        let plan = Plan { pace: Pace::Open { rate: search.from, arrivals }, duration, ..self.plan.clone() };
        let first = Plan { duration: measurement(&plan, search.from), ..plan.clone() }.longest();
        let given = self.args.judging.budget.as_deref().map(values::duration).transpose()?;
        if given.is_some_and(|given| given < first) {
            return Err(Fault::usage(format!(
                "the first measurement, at {}/s, may take {}, which is longer than --budget: give more time, a shorter \
                 --duration, or a first rate with --rate FROM..MOST",
                grouped(search.from),
                in_words(first)
            )));
        }
        let budget = given.unwrap_or(SEARCH_TIME.max(first));
        let mut server = super::windows::started(side, self.observed.patience, &self.interrupted)?;
        let progress = self.progress();
        let mut loaded = false;
        let mut on_progress = |rate: f64, seen: &scruple_measure::load::LoadProgress| {
            loaded = true;
            progress.pass(
                &side.name,
                &format!("{}/s · {} answered", grouped(rate), grouped(seen.answered as f64)),
            );
        };
        let [least, most] = [duration, duration.mul_f64(LONGEST_MEASUREMENT)].map(in_words);
        let windows = self.args.windows(1);
        progress.note(&format!(
            "up to {} measurements: each lasts {least} (--duration, divided by {windows}), or longer if it then has fewer than \
             2,000 requests, but at most {most}; the search ends within {} (--budget)",
            search.steps,
            in_words(budget)
        ));
        let found =
            capacity(&side.target, &plan, &slo, search, Some(budget), &self.interrupted, &mut on_progress);
        progress.clear();
        let ended = server_loader::status(&mut server);
        let known = loaded || server.is_some();
        drop(server);
        let found = found.map_err(|error| server_loader::fault(&error, &side.name, ended, known))?;
        let mut arms: Vec<(f64, Arm, Vec<&LoadResult>)> = Vec::new();
        for tally in &found.tallies {
            let plan = Plan { pace: Pace::Open { rate: tally.rate, arrivals }, ..plan.clone() };
            let mut arm = side.arm(&plan);
            arm.name = format!("{} rate={}", side.name, grouped(tally.rate));
            arm.params.insert("rate".to_owned(), Parameter::Number(tally.rate));
            arms.push((tally.rate, arm, Vec::new()));
        }
        for (block, point) in found.points.iter().enumerate() {
            if let Some((_, arm, loads)) = arms.iter_mut().find(|(rate, ..)| *rate == point.rate) {
                super::windows::add_window(arm, &point.load, block as u32);
                loads.push(&point.load);
            }
        }
        let servers = arms
            .iter()
            .map(|(_, arm, loads)| {
                ServerResults::of(&arm.name, Pool::of(loads.iter().map(|load| (*load, true))))
            })
            .collect();
        run.state = if found.interrupted { RunState::Interrupted } else { RunState::Complete };
        let store = open_store::for_run(&self.args.store)?;
        let arms = arms.into_iter().map(|(_, arm, _)| arm).collect();
        let loading = Loading::taken(arms, run, store)?;
        let stop = found.interrupted.then(|| Fault {
            code: Code::Interrupted,
            message: "interrupted; the results so far are shown above".to_owned(),
        });
        let capacity = Some(RateSearch { limits: limits.to_owned(), found });
        let division = Division { windows: 1, turns: 1, weighed: false };
        Ok((loading, Loads { plan, division, servers, capacity, show_map: false }, stop))
    }
}

/// Calls `once` this many times. Returns the last result, or the first error.
fn repeated<T, E>(times: u32, mut once: impl FnMut(u32) -> Result<T, E>) -> Result<T, E> {
    let mut last = once(0)?;
    for block in 1..times {
        last = once(block)?;
    }
    Ok(last)
}

/// Creates one reading, or an absent one with the reason.
fn reading(key: &str, value: Result<f64, &String>, source: &str) -> Option<Reading> {
    let metric = metric(key)?;
    Some(match value {
        Ok(value) => Reading::of(metric, value, source),
        Err(why) => Reading::absent(metric, why.as_str()),
    })
}

fn script(path: &Path) -> Result<LoadScript, Fault> {
    let unread =
        |error: String| Fault::usage(format!("‘{}’ is not a script of windows: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| unread(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unread(error.to_string()))
}

/// Returns the exit code of a load.
///
/// # Errors
/// A server went away, requests failed, or nothing is known of a server.
pub fn concluded(args: &LoadArgs, loads: &Loads, errors_limited: bool, code: Code) -> Result<Code, Fault> {
    for server in &loads.servers {
        if server.pool.gone && !args.judging.ignore_failure {
            return Err(Fault::program(server_loader::gone(&server.name, server.ended.as_deref())));
        }
    }
    if let Some(sought) = &loads.capacity {
        return Ok(if sought.found.found.settled { code } else { Code::Unknown });
    }
    if loads.servers.iter().any(|server| server.pool.aborted) {
        return Ok(Code::GateFailed);
    }
    // A limit on errors says how many failed requests are accepted.
    for server in &loads.servers {
        let (failed, due) = (server.pool.counts.failures.total(), server.pool.counts.due);
        if failed > 0 && !errors_limited && !args.judging.ignore_failure {
            return Err(Fault::program(format!(
                "{} of {} requests to ‘{}’ failed (-i accepts that; --limit 'load.errors<1%' says how many may)",
                grouped(failed as f64),
                grouped(due.max(failed) as f64),
                server.name
            )));
        }
        if server.void > 0 && server.void == server.pool.windows && code != Code::GateFailed {
            return Err(Fault {
                code: Code::Unknown,
                message: format!(
                    "every window of ‘{}’ is void: the generator was late or had no core, so rates and response times are not those of the server; give it a core of its own (--threads 1@CORE), or load when the machine is less busy",
                    server.name
                ),
            });
        }
    }
    Ok(code)
}
