//! Gates the working tree against the merge base: builds both, and weighs what the configuration or the command line
//! names.

use super::args::RevisionArgs;
use super::conclude::{conclude, why_stopped};
use super::origins;
use super::request::{check_requests, deciding, needed_metrics, wants_instructions};
use super::summary::SummaryContext;
use super::weighed_run::WeighedRun;
use crate::bench;
use crate::bench::suite::{BenchSide, CaseSelection, Suite, SuiteEffort};
use crate::cli::values;
use crate::command::args::SamplingArgs;
use crate::command::arms::Prepared;
use crate::command::verb::{ReadingSource, RequestedInstruments};
use crate::compare::weighing::RevisionSettings;
use crate::config::Config;
use crate::fault::{Code, Fault};
use crate::git::Repository;
use crate::history::verb::start_launcher;
use crate::interruption;
use crate::new_run::{self, Passes};
use crate::paths::{self, WorkFolder};
use crate::progress::Progress;
use crate::render::output;
use crate::run_report::{limit_applies, metrics_and_limits};
use crate::store::open_store;
use crate::versions::args::recipe;
use crate::versions::requested_subjects::{RequestedSubjects, files_outside_builds};
use crate::versions::two_revisions::{self, Remarks, Revisions};
use crate::versions::{self, BuildStarter, SubjectTemplate};
use scruple_core::gate::GateRules;
use scruple_core::limit::Limit;
use scruple_core::metric::Metric;
use scruple_core::run::Terms;
use scruple_core::subject::{Arm, Role};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The usual target branches of changes, in the order in which they are tried.
const MAIN: [&str; 5] = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];

/// The time limit of a batch of a case.
const CASE_LIMIT: Duration = Duration::from_secs(60);

/// Builds both revisions, weighs them, and judges the difference.
pub fn check(args: &RevisionArgs) -> Result<Code, Fault> {
    check_requests(&args.results, &args.gate.gate)?;
    let launcher = start_launcher()?;
    let source = ReadingSource::open(None)?;
    let config = Config::find()?;
    let recipe = recipe(&args.build, config.recipe()?, &config)?;
    let wanted =
        RequestedSubjects { verb: "check", command: &args.command, bench: args.bench, names: &args.names };
    let subjects = wanted.subjects(&config)?;
    let (left_behind, shared) = files_outside_builds(&recipe, &subjects, &config)?;
    output::warn_of_all(&left_behind);
    let limits = metrics_and_limits::parse_limits(&args.limit, &[]).ok();
    let place = versions::place_of(args.build.repo.as_deref())?;
    let revisions = revisions(args, &place)?;
    let limit = values::duration(&args.build.time_limit)?;
    let terms = Terms { margin: values::margin(&args.margin)?, ..Terms::default() };
    let interrupted = interruption::flag()?;
    let starter = BuildStarter { launcher, weighing: source.pid(), interrupted: interrupted.clone() };
    let clean = recipe.clean;
    let mut built =
        two_revisions::build(&place, &revisions, recipe.clone(), &subjects, Some(limit), starter)?;
    built.remarks.extend(shared);
    let rules = GateRules { metrics: args.gate.gate.clone(), accepted: built.accepted.clone() };
    let mut context = SummaryContext {
        labels: Some(built.labels.clone()),
        launches_given: args.runs.is_some(),
        ..SummaryContext::named(&args.store)
    };
    // An absolute limit may be exceeded although both revisions have the same build. Limits on metrics that a suite brings
    // cannot be read yet, and may be absolute.
    let may_be_absolute = has_absolute(limits) || has_absolute(config.limits(&[]).ok());
    if built.same_build && !may_be_absolute {
        context.not_measured = Some(why_not_measured(&built.remarks));
        return conclude(&[], &rules, context, &args.results);
    }
    let (commits, remarks) = (built.commits.clone(), built.remarks);
    let (benches, commands) = separate_benches(&subjects, built.prepared);
    let mut weighed = Vec::new();
    let mut brought = Vec::new();
    for (name, pair) in benches {
        // As in a history: cases of different programs may have the same name.
        let prefix = (subjects.len() > 1).then_some(name);
        let sides = suite_sides(pair, &built.labels, prefix.as_deref());
        let head = (terms.clone(), &remarks);
        weighed.push(suite(args, &config, sides, head, interrupted.clone(), &mut brought)?);
    }
    let (own, configured) =
        (metrics_and_limits::parse_limits(&args.limit, &brought)?, config.limits(&brought)?);
    if !commands.is_empty() {
        let asked = needed_metrics(&args.gate.gate, &[]);
        let all: Vec<Limit> = own.iter().chain(&configured).cloned().collect();
        let sampling = sampling(args);
        let weighing = RevisionSettings {
            source,
            sampling: &sampling,
            terms: Terms { limits: all.clone(), ..terms },
            store: &args.store,
            interrupted,
            asked: RequestedInstruments::by(&asked, &all),
            quiet: args.results.json,
            clean,
        };
        let (passes, result) = weighing.weigh(commands, remarks)?;
        let fault = why_stopped(result, &passes.writer.fault);
        weighed.push(WeighedRun { run: passes.run, limits: Vec::new(), fault });
    }
    // A part of the subjects need not have everything that the configuration limits.
    let of_all = args.command.is_empty() && args.names.is_empty();
    check_subjects(&weighed, &own, if of_all { &configured } else { &[] })?;
    add_limits(&mut weighed, own.iter().chain(&configured));
    // The lock on the builds is released, because an explanation builds again or uses the kept builds.
    drop(built.hold);
    let second = (built.labels[1] != two_revisions::WORKING_TREE).then_some(commits[1].as_str());
    let at = origins::WeighedSubjects {
        place: &place,
        first: &commits[0],
        second,
        recipe: &recipe,
        build: &args.build,
        subjects: &subjects,
        limit,
    };
    context.origins = origins::origins(&weighed, &rules, &at, values::duration(&args.budget)?);
    conclude(&weighed, &rules, context, &args.results)
}

/// Whether one of these limits is absolute, or may be because they cannot be read.
fn has_absolute(limits: Option<Vec<Limit>>) -> bool {
    limits.is_none_or(|all| all.iter().any(|one| !one.bound.is_relative()))
}

/// Says why two revisions with the same build are not measured: the remark on that first, and then the others.
fn why_not_measured(remarks: &Remarks) -> String {
    let (same, others): (Vec<_>, Vec<_>) = remarks.iter().partition(|(code, _)| *code == "same-build");
    let texts: Vec<&str> = same.into_iter().chain(others).map(|(_, text)| text.as_str()).collect();
    texts.join("; ")
}

/// Checks that the subjects of limits were weighed.
fn check_subjects(weighed: &[WeighedRun], own: &[Limit], configured: &[Limit]) -> Result<(), Fault> {
    let arms: Vec<&Arm> = weighed.iter().flat_map(|one| one.run.arms_of(Role::Subject)).collect();
    metrics_and_limits::check_limits(own, arms.iter().copied())?;
    metrics_and_limits::check_limits(configured, arms.iter().copied())
}

/// Adds to each run the limits that apply to one of its arms.
fn add_limits<'a>(weighed: &mut [WeighedRun], limits: impl Iterator<Item = &'a Limit> + Clone) {
    for one in weighed {
        let arms = &one.run.arms;
        let applies = |limit: &&Limit| arms.iter().any(|arm| limit_applies(limit, arm));
        one.limits.extend(limits.clone().filter(applies).cloned());
    }
}

/// The merge base, and the working tree.
fn revisions(args: &RevisionArgs, place: &str) -> Result<Revisions, Fault> {
    let written = paths::written(&args.results, &args.store);
    Ok(Revisions { reference: base(args, place)?, base: true, other: None, written })
}

/// Returns the branch that the user named, or the first usual one that exists.
fn base(args: &RevisionArgs, place: &str) -> Result<String, Fault> {
    if let Some(base) = &args.base {
        return Ok(base.clone());
    }
    let repository = Repository::at(Path::new(place));
    MAIN.iter().find(|name| repository.commit(name).is_ok()).map(|name| (*name).to_owned()).ok_or_else(|| {
        Fault::usage(match repository.is_empty() {
            true => format!("‘{place}’ has no commits yet"),
            false => format!(
                "‘{place}’ has none of the branches {}: name the one to compare with, such as --base develop",
                MAIN.join(", ")
            ),
        })
    })
}

type NamedPairs = Vec<(String, [Prepared; 2])>;

/// Separates the arms of bench programs, in pairs with their names, from those of commands.
fn separate_benches(subjects: &[SubjectTemplate], prepared: Vec<Prepared>) -> (NamedPairs, Vec<Prepared>) {
    let (mut benches, mut commands) = (Vec::new(), Vec::new());
    let mut rest = prepared.into_iter();
    for subject in subjects {
        let (Some(old), Some(new)) = (rest.next(), rest.next()) else { break };
        match subject.bench {
            true => benches.push((subject.name.clone(), [old, new])),
            false => commands.extend([old, new]),
        }
    }
    (benches, commands)
}

/// The two versions of a bench program.
fn suite_sides(pair: [Prepared; 2], labels: &[String; 2], prefix: Option<&str>) -> Vec<BenchSide> {
    let sides = pair.into_iter().zip(labels).map(|(one, label)| BenchSide {
        folder: Some(one.job.folder),
        env: one.job.env,
        prefix: prefix.map(str::to_owned),
        ..BenchSide::new(Some(label.clone()), one.job.program, one.job.argv)
    });
    sides.collect()
}

fn suite(
    args: &RevisionArgs,
    config: &Config,
    sides: Vec<BenchSide>,
    (terms, remarks): (Terms, &Remarks),
    interrupted: Arc<AtomicBool>,
    brought: &mut Vec<Metric>,
) -> Result<WeighedRun, Fault> {
    let work = WorkFolder::make()?;
    let programs: Vec<&Path> = sides.iter().map(|side| side.program.path.as_path()).collect();
    let mut run = new_run::empty_run(args.seed, args.store.label.as_deref(), terms, &programs);
    remarks.iter().for_each(|(code, text)| run.warn(code, text.clone()));
    let effort = SuiteEffort {
        processes: (6, 24),
        blocks: 40,
        exact_processes: false,
        exact_blocks: false,
        answer_within: None,
        budget: values::duration(&args.budget)?,
        case_limit: CASE_LIMIT,
        passes: Passes::All,
        list_only: false,
        lists_in_first: false,
        counts_decide: deciding(&args.gate.gate).counts,
    };
    let mut suite = Suite::open(sides, run, &CaseSelection::default(), effort, interrupted, work.path())?;
    brought.extend(suite.brought());
    // A limit on a metric that only a later suite brings cannot be parsed yet, and is not one of this suite.
    let own = args.limit.iter().filter_map(|text| Limit::parse_among(text, brought).ok());
    let configured = config.limits(brought).unwrap_or_default();
    suite.record.run.terms.limits =
        suite.cases.declared.limits.iter().cloned().chain(own).chain(configured).collect();
    if let Some(store) = open_store::for_run(&args.store)? {
        suite.keep_in(store);
    }
    if wants_instructions(&needed_metrics(&args.gate.gate, &[])) {
        suite.count_instructions()?;
    }
    if !args.results.json {
        suite.show_progress(Progress::new(), Box::new(bench::verb::partial_results));
    }
    let result = suite.take();
    drop(work);
    let fault = bench::verb::ended(&suite, result);
    let limits = suite.cases.declared.limits.clone();
    Ok(WeighedRun { run: suite.record.run, limits, fault })
}

fn sampling(args: &RevisionArgs) -> SamplingArgs {
    let gate = deciding(&args.gate.gate);
    SamplingArgs {
        runs: args.runs,
        seed: args.seed,
        gate,
        ..SamplingArgs::within(&args.budget, &args.margin)
    }
}
