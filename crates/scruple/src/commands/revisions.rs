//! `scruple compare REV1 REV2 -- COMMAND`: two revisions, built and weighed side by side.

use super::history::{recipe, start_launcher, subjects};
use super::run::{self, Source};
use super::{output, start};
use crate::arms;
use crate::cli::{CompareArgs, SamplingArgs};
use crate::config::Config;
use crate::fault::{Code, Fault};
use crate::history::pair::{self, Revisions};
use crate::history::{self, Starter};
use crate::place::{self, WorkFolder};
use crate::progress::Progress;
use crate::session::Session;
use scruple_core::compare::Verdict;
use scruple_core::judge;
use scruple_core::run::{Run, Terms};
use scruple_core::stats::quantile::median;
use scruple_core::unit::{Unit, grouped, quantity};
use scruple_measure::empty;
use std::path::Path;

/// Builds both, weighs them, stores the run, prints the report.
pub fn compare(args: &CompareArgs) -> Result<Code, Fault> {
    output::check_metrics(&args.metrics)?;
    output::check_exports(&args.results)?;
    let budgets = output::budgets(&args.limit, &[])?;
    let launcher = start_launcher()?;
    let source = Source::open(None)?;
    let config = Config::find()?;
    let recipe = recipe(&args.build, config.history()?)?;
    let clean = recipe.clean;
    let subjects = subjects(&args.command, None, &config)?;
    let [subject] = subjects.as_slice() else {
        return Err(Fault::usage(format!(
            "scruple.toml has {} commands: name the one to compare behind --",
            subjects.len()
        )));
    };
    let sampling = sampling(args);
    let effort = run::effort(&sampling)?;
    let terms = Terms { margin: arms::margin(&sampling.margin)?, ..Terms::default() };
    let revisions = Revisions {
        reference: args.base.clone().or_else(|| args.reference.clone()).unwrap_or_default(),
        base: args.base.is_some(),
        other: args.run.clone(),
    };
    let place = history::place_of(args.build.repo.as_deref())?;
    let limit = Some(arms::duration(&args.build.time_limit)?);
    let interrupted = start::interruption_flag()?;
    let starter = Starter { launcher, weighing: source.pid(), interrupted: interrupted.clone() };
    let built = pair::build(&place, &revisions, recipe, subject, limit, starter)?;
    let (mut prepared, remarks) = (built.prepared, built.remarks);
    output::check_limits(&budgets, prepared.iter().map(|one| &one.arm))?;
    let work = WorkFolder::make()?;
    let path = empty::write_empty_program(work.path())
        .map_err(|error| Fault::usage(format!("cannot write into ‘{}’: {error}", work.path().display())))?;
    prepared.push(arms::tare_arm(path, &prepared[0].job));
    let programs: Vec<&Path> = prepared.iter().map(|one| one.job.program.path.as_path()).collect();
    let mut run = start::empty_run(sampling.seed, args.store.label.as_deref(), terms, &programs);
    remarks.into_iter().for_each(|(code, text)| run.warn(code, text));
    let store = place::open_store(&args.store)?;
    let progress = if args.results.json { Progress::hidden() } else { Progress::new() };
    let weigher = source.into_weigher(&interrupted, &work);
    let mut session = Session::new(weigher, prepared, run, store, interrupted, false, progress)?;
    let result = session.take(&effort);
    drop(work);
    if clean {
        remark_on_break_even(&mut session.run);
    }
    run::conclude(session, result, &args.results, &args.metrics, &budgets)
}

fn sampling(args: &CompareArgs) -> SamplingArgs {
    SamplingArgs {
        warmup: 0,
        runs: args.runs,
        min_runs: None,
        max_runs: None,
        budget: args.budget.clone(),
        margin: args.margin.clone().unwrap_or_else(|| "2%".to_owned()),
        twin: false,
        seed: args.seed,
        metrics: args.metrics.clone(),
        limit: args.limit.clone(),
        time_only: args.time_only,
        memory_map: false,
    }
}

/// Where one version costs more to build and the other more to run, says after how many runs they are even. Only builds
/// that began clean can be set against each other.
fn remark_on_break_even(run: &mut Run) {
    let judged = judge::compare_pairs(&judge::pairs(run), &run.terms);
    let runs = judged.iter().find(|one| one.metric == "time.wall");
    let surely =
        runs.is_some_and(|one| matches!(one.comparison.verdict, Verdict::Different | Verdict::Small));
    let [old, new, ..] = run.arms.as_slice() else { return };
    let middle =
        |arm: &scruple_core::subject::Arm, key: &str| arm.sample(key).map(|sample| median(&sample.readings));
    let by = |key: &str| Some(middle(new, key)? - middle(old, key)?);
    let (Some(build), Some(each)) = (by("build.time"), by("time.wall")) else { return };
    if !surely || build * each >= 0.0 {
        return;
    }
    let amount = |ns: f64| quantity(ns.abs(), &Unit::Nanoseconds);
    let more = |ns: f64| if ns > 0.0 { "longer" } else { "less" };
    let text = format!(
        "‘{}’ took {} {} to build and takes {} {} to run: after about {} runs for each build the two are even (each was built once)",
        new.name,
        amount(build),
        more(build),
        amount(each),
        more(each),
        grouped((build / each).abs().ceil())
    );
    run.warn("break-even", text);
}
