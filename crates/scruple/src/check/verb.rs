//! `scruple check`: converts what was weighed into a summary, and writes it to all requested outputs.

use super::against_merge_base;
use super::args::{CheckArgs, CheckVerb, OfCommands, OfServers, OfSuites};
use super::origins::Origins;
use super::report;
use super::summary::{GateSummary, WeighedRun};
use crate::bench;
use crate::cli::shared_args::{ResultArgs, StoreArgs};
use crate::command;
use crate::command::passes::{Deciding, Stop};
use crate::fault::{Code, Fault};
use crate::load;
use crate::paths;
use crate::render::export::{names, writer};
use crate::render::metric_words::declared;
use crate::render::output;
use crate::run_report::metrics_and_limits;
use crate::store::StoreError;
use scruple_core::gate::GateRules;
use scruple_core::metric::{METRICS, Pass};
use std::path::Path;

/// The metric that is otherwise only counted on request. It is among those that decide by default.
const INSTRUCTIONS: &str = "instructions";

/// Runs the gate: weighs, judges, and reports.
pub fn check(args: CheckArgs) -> Result<Code, Fault> {
    match args.verb {
        None => against_merge_base::check(&args.take),
        Some(CheckVerb::Run(of)) => commands(*of),
        Some(CheckVerb::Bench(of)) => suites(*of),
        Some(CheckVerb::Load(of)) => servers(*of),
    }
}

/// Returns the metrics that a gate needs: those to show, and those that decide. By default instructions are among them.
pub fn needed_metrics(gate: &[String], metrics: &[String]) -> Vec<String> {
    let mut all: Vec<String> = metrics.iter().chain(gate).cloned().collect();
    if gate.is_empty() {
        all.push(INSTRUCTIONS.to_owned());
    }
    all
}

fn commands(mut of: OfCommands) -> Result<Code, Fault> {
    check_requests(&of.run.results, &of.gate.gate)?;
    let scans = !of.run.scan.parameter_scan.is_empty() || !of.run.scan.parameter_list.is_empty();
    if of.run.commands.len() == 1 && !scans && of.run.sampling.limit.is_empty() {
        return Err(Fault::usage(
            "one command has nothing to be compared with: name the old one and then the new one, or give a --limit",
        ));
    }
    of.run.sampling.gate = deciding(&of.gate.gate);
    of.run.sampling.metrics = needed_metrics(&of.gate.gate, &of.run.sampling.metrics);
    let taken = command::verb::take(&of.run)?;
    let fault = why_stopped(taken.result, &taken.writer.fault);
    let weighed = WeighedRun { run: taken.run, limits: taken.limits, fault };
    let launches_given = of.run.sampling.runs.is_some();
    let context = SummaryContext { launches_given, ..SummaryContext::named(&of.run.store) };
    conclude(&[weighed], &rules(of.gate.gate), context, &of.run.results)
}

fn suites(mut of: OfSuites) -> Result<Code, Fault> {
    check_requests(&of.bench.results, &of.gate.gate)?;
    if of.bench.comparison.baseline.is_some() || of.bench.list {
        return Err(Fault::usage(
            "a gate weighs both sides now: name the other build with --against, and leave --baseline and --list out",
        ));
    }
    of.bench.counts_decide = deciding(&of.gate.gate).counts;
    of.bench.metrics = needed_metrics(&of.gate.gate, &of.bench.metrics);
    let taken = bench::verb::take(&of.bench)?;
    let fault = bench::verb::ended(&taken.suite, taken.result);
    let weighed = WeighedRun { run: taken.suite.record.run, limits: taken.limits, fault };
    conclude(&[weighed], &rules(of.gate.gate), SummaryContext::named(&of.bench.store), &of.bench.results)
}

fn servers(of: OfServers) -> Result<Code, Fault> {
    check_requests(&of.load.results, &of.gate.gate)?;
    let judging = &of.load.judging;
    if judging.against.is_empty() && judging.limit.is_empty() && of.load.request.scenario.is_none() {
        return Err(Fault::usage(
            "one server has nothing to be compared with: name the old one with --against, or give a --limit",
        ));
    }
    let taken = load::verb::take(&of.load, None)?;
    let fault = taken.stop.or(taken.loading.writer.fault.as_ref().map(StoreError::after_measuring));
    let weighed = WeighedRun { run: taken.loading.run, limits: taken.limits, fault };
    conclude(&[weighed], &rules(of.gate.gate), SummaryContext::named(&of.load.store), &of.load.results)
}

/// Checks the requested outputs and metrics before anything is weighed.
pub fn check_requests(results: &ResultArgs, gate: &[String]) -> Result<(), Fault> {
    metrics_and_limits::check_metrics(gate)?;
    results.export.checked(&names(&report::FORMATS)).map(|_| ())
}

fn rules(gate: Vec<String>) -> GateRules {
    GateRules { metrics: gate, accepted: Vec::new() }
}

/// Returns why a measurement of commands ended early, if it did.
pub fn why_stopped(result: Result<(), Stop>, unstored: &Option<StoreError>) -> Option<Fault> {
    match result {
        Err(Stop::Failed(fault)) => Some(fault),
        Err(Stop::Interrupted) => Some(Fault {
            code: Code::Interrupted,
            message: "interrupted: the readings so far decide nothing".to_owned(),
        }),
        Ok(()) => unstored.as_ref().map(StoreError::after_measuring),
    }
}

/// The information that a summary needs in addition to the runs.
#[derive(Default)]
pub struct SummaryContext {
    /// The names of the versions, the reference first.
    pub labels: Option<[String; 2]>,
    /// The name that identifies the gate's comment on a pull request.
    pub name: Option<String>,
    /// Why no measurement was needed, if none was made.
    pub not_measured: Option<String>,
    /// The functions that regressions come from.
    pub origins: Origins,
    /// Whether the command line gave the number of launches.
    pub launches_given: bool,
    /// The option with which another command finds the store, after a space; `None` if nothing is stored.
    pub store_option: Option<String>,
}

impl SummaryContext {
    /// What the options about the store say of the gate.
    pub fn named(store: &StoreArgs) -> SummaryContext {
        let address = || paths::store_address(store.store.as_deref()).ok();
        let store_option = (!store.no_store).then(address).flatten().map(|place| paths::store_option(&place));
        SummaryContext { name: store.label.clone(), store_option, ..SummaryContext::default() }
    }
}

/// Writes the summary, and returns the exit code of the gate. Failures of runs are reported after the summary.
pub fn conclude(
    weighed: &[WeighedRun],
    rules: &GateRules,
    context: SummaryContext,
    results: &ResultArgs,
) -> Result<Code, Fault> {
    let summary = GateSummary::of(weighed, rules, context);
    let files = results.export.checked(&names(&report::FORMATS))?;
    let file_on_stdout = files.iter().any(|file| file.path == Path::new("-"));
    let texts = files.iter().filter_map(|file| {
        let text = writer(&report::FORMATS, &file.format)?;
        Some((file.path.as_path(), text(&summary, weighed)))
    });
    let unwritten = output::write_files(texts)?;
    let text = match results.json {
        true => report::json::text(&summary),
        false => report::terminal::text(&summary, output::width()),
    };
    output::print_beside(file_on_stdout, &text)?;
    if let Some(fault) = weighed.iter().find_map(|one| one.fault.as_ref()).or(unwritten.as_ref()) {
        return Err(Fault { code: fault.code, message: fault.message.clone() });
    }
    Ok(summary.kept.into())
}

/// Returns which of the metrics that are measured decide a gate with these keys and families.
pub fn deciding(gate: &[String]) -> Deciding {
    let of = |pass: Pass| {
        METRICS
            .iter()
            .filter(move |metric| metric.pass == pass && gate.iter().any(|pattern| metric.matches(pattern)))
    };
    Deciding {
        counts: gate.is_empty() || of(Pass::Counting).next().is_some(),
        times: of(Pass::Timing).map(|metric| metric.key.clone().into_owned()).collect(),
    }
}

/// Whether these metrics include instructions.
pub fn wants_instructions(asked: &[String]) -> bool {
    asked.iter().any(|pattern| pattern != "all" && declared(INSTRUCTIONS).matches(pattern))
}
