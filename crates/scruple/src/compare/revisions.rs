//! `scruple compare REV1 REV2 -- COMMAND`: builds two revisions, and weighs them side by side.

use super::args::CompareArgs;
use super::on_farm;
use super::weighing::{RevisionSettings, RevisionsRequest};
use crate::command::passes::CommandPasses;
use crate::command::verb::{self, FinishedCommands, ReadingSource};
use crate::config::Config;
use crate::farm::Farm;
use crate::fault::{Code, Fault};
use crate::git::Repository;
use crate::history::verb::start_launcher;
use crate::interruption;
use crate::paths;
use crate::render::output;
use crate::run_report::metrics_and_limits;
use crate::versions::args::recipe;
use crate::versions::requested_subjects::files_outside_builds;
use crate::versions::two_revisions::{self, Revisions};
use crate::versions::{self, BuildStarter};
use std::path::Path;

/// Whether these are revisions of the repository, and the configuration names commands that can be weighed at them.
pub fn are_revisions(args: &CompareArgs, reference: &str, other: Option<&str>) -> Result<bool, Fault> {
    if Config::find()?.commands().is_empty() {
        return Ok(false);
    }
    let Ok(place) = versions::place_of(args.build.repo.as_deref()) else { return Ok(false) };
    let repository = Repository::at(Path::new(&place));
    let is_one = |revision: &str| repository.commit(revision).is_ok();
    Ok(is_one(reference) && other.is_none_or(is_one))
}

/// Builds both revisions, weighs them, stores the run, and prints the report.
pub fn compare(args: &CompareArgs) -> Result<Code, Fault> {
    let launcher = start_launcher()?;
    let source = ReadingSource::open(None)?;
    let config = Config::find()?;
    let asked = RevisionsRequest::by(args, &config)?;
    let recipe = recipe(&args.build, config.recipe()?, &config)?;
    let (left_behind, shared) = files_outside_builds(&recipe, &asked.subjects, &config)?;
    output::warn_of_all(&left_behind);
    let clean = recipe.clean;
    let revisions = Revisions {
        reference: args.base.clone().or_else(|| args.reference.clone()).unwrap_or_default(),
        base: args.base.is_some(),
        other: args.run.clone(),
        written: paths::written(&args.results, &args.store),
    };
    let place = versions::place_of(args.build.repo.as_deref())?;
    let interrupted = interruption::flag()?;
    let starter = BuildStarter { launcher, weighing: source.pid(), interrupted: interrupted.clone() };
    if let Some(farm) = Farm::of(&config)? {
        drop(source);
        let mut chosen = two_revisions::choose(&place, &revisions, recipe, starter)?;
        chosen.remarks.extend(shared);
        return on_farm::compare(args, &config, farm, (&place, chosen, clean), asked, &interrupted);
    }
    let limit = Some(asked.time_limit);
    let mut built = two_revisions::build(&place, &revisions, recipe, &asked.subjects, limit, starter)?;
    built.remarks.extend(shared);
    metrics_and_limits::check_limits(&asked.limits, built.prepared.iter().map(|one| &one.arm))?;
    let weighing = RevisionSettings { clean, ..asked.weighing(args, source, interrupted) };
    let (passes, result) = weighing.weigh(built.prepared, built.remarks)?;
    let CommandPasses { run, writer, .. } = passes;
    verb::conclude(
        FinishedCommands { run, writer, result, limits: asked.limits },
        &args.results,
        &args.metrics,
    )
}
