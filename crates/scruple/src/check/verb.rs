//! `scruple check`: weighs what the command line names, by the verb that weighs it, or the working tree and its merge
//! base.

use super::against_merge_base;
use super::args::{CheckArgs, CheckVerb, OfCommands, OfServers, OfSuites};
use super::conclude::{conclude, why_stopped};
use super::request::{check_requests, deciding, needed_metrics};
use super::summary::SummaryContext;
use super::weighed_run::WeighedRun;
use crate::bench;
use crate::command;
use crate::fault::{Code, Fault};
use crate::load;
use crate::store::StoreError;
use scruple_core::gate::GateRules;

/// Runs the gate: weighs, judges, and reports.
pub fn check(args: CheckArgs) -> Result<Code, Fault> {
    match args.verb {
        None => against_merge_base::check(&args.take),
        Some(CheckVerb::Run(of)) => commands(*of),
        Some(CheckVerb::Bench(of)) => suites(*of),
        Some(CheckVerb::Load(of)) => servers(*of),
    }
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
    let taken = load::weighing::take(&of.load, None)?;
    let fault = taken.stop.or(taken.loading.writer.fault.as_ref().map(StoreError::after_measuring));
    let weighed = WeighedRun { run: taken.loading.run, limits: taken.limits, fault };
    conclude(&[weighed], &rules(of.gate.gate), SummaryContext::named(&of.load.store), &of.load.results)
}

fn rules(gate: Vec<String>) -> GateRules {
    GateRules { metrics: gate, accepted: Vec::new() }
}
