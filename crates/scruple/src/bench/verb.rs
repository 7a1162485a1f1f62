//! `scruple bench`: weighs the cases of a bench program.

use super::args::BenchArgs;
use super::report;
use super::suite::timing::{FEW, FIRST_BLOCKS};
use super::suite::{BenchSide, CaseSelection, KnownIterations, Suite, SuiteEffort};
use crate::cli::values;
use crate::command::verb::RequestedInstruments;
use crate::config::Config;
use crate::farm::Farm;
use crate::farm::send_command_line::{NodeChoice, NodeWork, hand_out};
use crate::fault::{Code, Fault, Stop};
use crate::interruption;
use crate::new_run::{self, Passes};
use crate::paths::{self, WorkFolder};
use crate::progress::Progress;
use crate::render::export::names;
use crate::render::output;
use crate::run_report::formats::{self, FORMATS};
use crate::run_report::{Report, metrics_and_limits, terminal};
use crate::store::open_store;
use scruple_core::environment::Environments;
use scruple_core::judge::{Nodes, Pair, bench_cases};
use scruple_core::limit::Limit;
use scruple_core::run::{Run, Terms, unlike_readings};
use scruple_core::subject::{Arm, Role};
use scruple_measure::program::Program;
use scruple_stats::sorting::SortedMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The largest number of processes that weigh a case that is not compared.
const MOST: u32 = 8;

/// The time for a first answer. What follows the last process takes the rest of the second.
const FIRST_ANSWER: Duration = Duration::from_millis(900);

/// Measures the cases, stores the run, and prints the report.
pub fn bench(args: &BenchArgs) -> Result<Code, Fault> {
    args.results.export.checked(&names(&FORMATS))?;
    let config = Config::find()?;
    let (suite, work) = opened(args, &config)?;
    if args.list {
        let names: String = suite.names().iter().map(|name| format!("{name}\n")).collect();
        output::print(&names)?;
        return Ok(Code::Fine);
    }
    let farm = Farm::of(&config)?;
    let FinishedSuite { mut suite, result, limits, baseline } = taken(args, &config, (suite, work), farm)?;
    if let Some(baseline) = &baseline {
        let unlike = unlike_readings(with_baseline(&suite.record.run, baseline).into_iter());
        suite.record.run.warn_of_unlike_readings(&unlike, &baseline.id, "this one");
    }
    conclude(&suite, result, args, &limits, baseline.as_ref())
}

/// A suite after its measurement.
pub struct FinishedSuite {
    /// The suite, with its run.
    pub suite: Suite,
    /// How the measurement ended.
    pub result: Result<(), Stop>,
    /// The limits of the command line, of the cases and of the configuration.
    pub limits: Vec<Limit>,
    baseline: Option<Run>,
}

/// Measures the cases and stores the run.
pub fn take(args: &BenchArgs) -> Result<FinishedSuite, Fault> {
    let config = Config::find()?;
    let opened = opened(args, &config)?;
    taken(args, &config, opened, None)
}

fn opened(args: &BenchArgs, config: &Config) -> Result<(Suite, WorkFolder), Fault> {
    metrics_and_limits::check_metrics(&args.metrics)?;
    let sides = sides(args, config)?;
    let terms = Terms {
        margin: values::margin(&args.margin)?,
        reference: args.comparison.reference.clone(),
        ..Terms::default()
    };
    let interrupted = interruption::flag()?;
    let work = WorkFolder::make()?;
    let programs: Vec<&Path> = sides.iter().map(|side| side.program.path.as_path()).collect();
    let run = new_run::empty_run(args.seed, args.store.label.as_deref(), terms, &programs);
    let selection = CaseSelection { filters: args.filter.clone(), threads: args.threads.clone() };
    let suite = Suite::open(sides, run, &selection, effort(args)?, interrupted, work.path())?;
    Ok((suite, work))
}

fn taken(
    args: &BenchArgs,
    config: &Config,
    (mut suite, work): (Suite, WorkFolder),
    farm: Option<Farm>,
) -> Result<FinishedSuite, Fault> {
    check_reference(args, &suite)?;
    let brought = suite.brought();
    let mut limits = metrics_and_limits::parse_limits(&args.limits.limit, &brought)?;
    let subjects = suite.record.run.arms.iter().filter(|arm| arm.role == Role::Subject);
    metrics_and_limits::check_limits(&limits, subjects)?;
    if args.passes.count_only {
        metrics_and_limits::check_no_times(&limits, &args.metrics)?;
    }
    limits.append(&mut suite.cases.declared.limits.clone());
    let configured = config.limits(&brought)?;
    if suite.cases.declared.complete {
        check_configured(&configured, config, &suite.cases.declared.names)?;
    }
    limits.extend(configured);
    suite.record.run.terms.limits.clone_from(&limits);
    let store = open_store::for_run(&args.store)?;
    let baseline = match (&args.comparison.baseline, &store) {
        (Some(name), Some(store)) => Some(store.find(name)?),
        (Some(_), None) => return Err(Fault::usage("--baseline needs a store: leave --no-store out")),
        _ => None,
    };
    if let Some(baseline) = &baseline {
        warn_of_lost(&mut suite.record.run, baseline, args);
    }
    if let Some(mut farm) = farm {
        suite.end_introduced();
        let progress = if args.results.json { Progress::hidden() } else { Progress::new() };
        let measured = hand_out(
            &mut farm,
            config,
            &NodeWork { head: &suite.record.run, by: NodeChoice::EachNode, versions: None },
            &progress,
            suite.interrupted(),
        )?;
        suite.adopt(measured, store)?;
        return Ok(FinishedSuite { suite, result: Ok(()), limits, baseline });
    }
    if let Some(store) = store {
        suite.keep_in(store);
    }
    if RequestedInstruments::by(&args.metrics, &limits).instructions {
        suite.count_instructions()?;
    }
    if !args.results.json {
        suite.show_progress(Progress::new(), Box::new(partial_results));
    }
    if let Some(baseline) = &baseline {
        suite.known_iterations = KnownIterations::those_of(baseline);
    }
    let result = suite.take();
    drop(work);
    Ok(FinishedSuite { suite, result, limits, baseline })
}

fn conclude(
    suite: &Suite,
    result: Result<(), Stop>,
    args: &BenchArgs,
    limits: &[Limit],
    baseline: Option<&Run>,
) -> Result<Code, Fault> {
    let footer = suite.stored_at().map(|place| {
        terminal::stored(&suite.record.run.id, &place, &paths::store_option(&place), output::width())
    });
    let mut report = match baseline {
        Some(baseline) => against_baseline(&suite.record.run, baseline, &args.metrics, limits),
        None => Report::of(&suite.record.run, &args.metrics, limits),
    };
    report.detail = args.detail;
    formats::write(&report, &args.results, footer.as_deref())?;
    if let Some(fault) = ended(suite, result) {
        return Err(fault);
    }
    Ok(Code::of_limits(report.kept(), args.limits.failing_limits()))
}

/// Writes the table of the results so far.
pub fn partial_results(run: &Run, width: usize) -> String {
    let report = Report::of(run, &[], &[]);
    anstream::adapter::strip_str(&report::table::partial_table(&report, width)).to_string()
}

/// Returns the failure of a suite, if there was one.
pub fn ended(suite: &Suite, result: Result<(), Stop>) -> Option<Fault> {
    match result {
        Err(Stop::Failed(fault)) => return Some(fault),
        Err(Stop::Interrupted) => return Some(Fault::interrupted_run()),
        Ok(()) => {}
    }
    if let Some(error) = &suite.record.writer.fault {
        return Some(error.after_measuring());
    }
    let failures = suite.failures();
    if let Some((name, _)) = failures.first() {
        let others =
            if failures.len() > 1 { format!(" and {} more", failures.len() - 1) } else { String::new() };
        let rest = if suite.has_measured() { "; the other cases were measured" } else { "" };
        return Some(Fault::program(format!("‘{name}’{others} failed{rest}")));
    }
    None
}

/// Checks that every limit of the configuration applies to a case of the program, selected or not, or to a command.
fn check_configured(limits: &[Limit], config: &Config, cases: &[String]) -> Result<(), Fault> {
    let meant = |limit: &Limit| {
        cases.iter().any(|case| limit.applies_to(case)) || config.commands_of(limit).next().is_some()
    };
    match limits.iter().find(|limit| !meant(limit)) {
        None => Ok(()),
        Some(limit) => Err(Fault::usage(format!(
            "scruple.toml has a limit ‘{}’, but there is no case ‘{}’: `scruple bench --list` shows the names",
            limit.text, limit.arm
        ))),
    }
}

/// Adds a remark on the cases of the baseline that this run does not have, unless only some cases were selected.
fn warn_of_lost(run: &mut Run, baseline: &Run, args: &BenchArgs) {
    let has: BTreeSet<&str> = run.arms_of(Role::Subject).map(|arm| arm.name.as_str()).collect();
    let of_baseline: Vec<&str> = baseline.arms_of(Role::Subject).map(|arm| arm.name.as_str()).collect();
    let lost: Vec<&str> = of_baseline.iter().copied().filter(|name| !has.contains(name)).collect();
    let selected = !args.filter.is_empty() || !args.threads.is_empty();
    if !selected || lost.len() == of_baseline.len() {
        run.warn_of_not_compared(&lost, &baseline.id, "this one");
    }
}

/// Each case of a stored run that this run has as well, and that of this run.
fn with_baseline<'a>(run: &'a Run, baseline: &'a Run) -> Vec<(&'a Arm, &'a Arm)> {
    let subjects: SortedMap<&str, &Arm> =
        SortedMap::from_iter(baseline.arms_of(Role::Subject).map(|arm| (arm.name.as_str(), arm)));
    let both = |arm: &'a Arm| Some((*subjects.get(arm.name.as_str())?, arm));
    run.arms_of(Role::Subject).filter_map(both).collect()
}

/// Compares each case with the case of the same name in a stored run.
fn against_baseline<'a>(run: &'a Run, baseline: &Run, metrics: &[String], limits: &[Limit]) -> Report<'a> {
    let pairs: Vec<Pair<'_>> = with_baseline(run, baseline)
        .into_iter()
        .map(|(reference, arm)| {
            let nodes = Nodes { reference: &baseline.provenance.nodes, arm: &run.provenance.nodes };
            let tares = bench_cases::tare_of(baseline, reference).zip(bench_cases::tare_of(run, arm));
            Pair { reference, arm, paired: false, tares, nodes }
        })
        .collect();
    Report::of_pairs(run, &pairs, metrics, limits, Some(Environments::of(baseline, run)))
}

/// Returns the programs to weigh: those of the command line, or those of the configuration.
fn sides(args: &BenchArgs, config: &Config) -> Result<Vec<BenchSide>, Fault> {
    let folder = std::env::current_dir()
        .map_err(|error| Fault::usage(format!("cannot determine the working folder: {error}")))?;
    let mut words = args.program.clone();
    if words.is_empty() {
        words = config.bench_program()?;
    }
    let mut lines = Vec::new();
    for (index, against) in args.comparison.against.iter().enumerate() {
        let (name, command) = named_program(against, index);
        let words = shell_words::split(command)
            .map_err(|_| Fault::usage(format!("‘{against}’ has a quote that does not end: close it")))?;
        lines.push((Some(name), words));
    }
    lines.push(((!args.comparison.against.is_empty()).then(|| args.comparison.name.clone()), words));
    lines
        .into_iter()
        .map(|(label, words)| {
            let first = words
                .first()
                .ok_or_else(|| Fault::usage("name a bench program after `--`, or in scruple.toml"))?;
            let program = Program::find(first.as_ref(), &folder)
                .map_err(|error| Fault::usage(format!("cannot bench ‘{first}’: {error}")))?;
            Ok(BenchSide::new(label, program, words.iter().map(Into::into).collect()))
        })
        .collect()
}

/// Parses `NAME=PROGRAM`. A program without a name is called ‘old’, ‘old2’, and so on.
fn named_program(text: &str, index: usize) -> (String, &str) {
    match text.split_once('=') {
        Some((name, program)) if !name.is_empty() && !name.contains(['/', ' ']) => (name.to_owned(), program),
        _ if index == 0 => ("old".to_owned(), text),
        _ => (format!("old{}", index + 1), text),
    }
}

fn check_reference(args: &BenchArgs, suite: &Suite) -> Result<(), Fault> {
    match &args.comparison.reference {
        Some(name) if !suite.names().contains(&name.as_str()) => Err(Fault::usage(format!(
            "there is no case ‘{name}’ to compare with: `scruple bench --list` shows the names"
        ))),
        _ => Ok(()),
    }
}

fn effort(args: &BenchArgs) -> Result<SuiteEffort, Fault> {
    let compared = !args.comparison.against.is_empty();
    let (processes, blocks, budget) = match args.effort.quick {
        true => ((FEW, MOST), FIRST_BLOCKS, Duration::from_secs(2)),
        false if compared => ((6, 24), 40, Duration::from_secs(10)),
        false => ((5, MOST), 30, Duration::from_secs(10)),
    };
    let processes = args.effort.processes.map_or(processes, |n| (n.max(1), n.max(1)));
    // The default budget does not cut short a requested number of blocks or processes; only an explicit budget does.
    let unhurried = args.effort.budget.is_none();
    Ok(SuiteEffort {
        processes,
        blocks: args.effort.blocks.unwrap_or(blocks).max(1),
        exact_processes: unhurried && args.effort.processes.is_some(),
        exact_blocks: unhurried && args.effort.blocks.is_some(),
        answer_within: (args.effort.quick && args.effort.processes.is_none()).then_some(FIRST_ANSWER),
        budget: args.effort.budget.as_deref().map_or(Ok(budget), values::duration)?,
        case_limit: values::duration(&args.case_limit)?,
        passes: Passes::asked(args.passes.time_only, args.passes.count_only),
        list_only: args.list,
        lists_in_first: !args.list,
        counts_decide: args.counts_decide,
    })
}
