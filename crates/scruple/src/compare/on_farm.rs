//! `scruple compare REV1 REV2` on the nodes of a farm: both revisions are built once, and every node weighs both of
//! them side by side.

use super::args::CompareArgs;
use super::weighing::{RevisionSettings, RevisionsRequest, remark_on_break_even};
use crate::command::passes::CommandPasses;
use crate::command::verb::{self, FinishedCommands, ReadingSource};
use crate::config::Config;
use crate::farm::send_command_line::{NodeChoice, NodeWork, hand_out};
use crate::farm::unit_data::{UnitOutcome, Versions};
use crate::farm::{Farm, two_versions};
use crate::fault::{Code, Fault};
use crate::history::verb::start_launcher;
use crate::interruption;
use crate::new_run;
use crate::progress::Progress;
use crate::run_report::metrics_and_limits;
use crate::store::open_store;
use crate::versions::build::VersionBuilder;
use crate::versions::build_process::BuildLauncher;
use crate::versions::cache::Cache;
use crate::versions::two_revisions::ChosenVersions;
use scruple_core::run::Run;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Has both versions of `chosen` built and weighed, stores the run, and prints the report. `clean` says that builds
/// begin clean, so that their times can be compared.
pub fn compare(
    args: &CompareArgs,
    config: &Config,
    mut farm: Farm,
    (place, chosen, clean): (&str, ChosenVersions, bool),
    RevisionsRequest { subjects, terms, limits, .. }: RevisionsRequest,
    interrupted: &Arc<AtomicBool>,
) -> Result<Code, Fault> {
    metrics_and_limits::check_limits(&limits, chosen.arms(&subjects).iter())?;
    let mut head = new_run::empty_run(args.seed, args.store.label.as_deref(), terms, &[]);
    chosen.remarks.iter().for_each(|(code, text)| head.warn(code, text.clone()));
    let store = open_store::for_run(&args.store)?;
    let progress = if args.results.json { Progress::hidden() } else { Progress::new() };
    let versions = two_versions::build(chosen, place, &farm)?;
    let work = NodeWork { head: &head, by: NodeChoice::EachNode, versions: Some(&versions) };
    let mut measured = hand_out(&mut farm, config, &work, &progress, interrupted)?;
    if clean {
        remark_on_break_even(&mut measured.run);
    }
    let (run, writer) = measured.store_in(store)?;
    verb::conclude(FinishedCommands { run, writer, result: Ok(()), limits }, &args.results, &args.metrics)
}

/// Weighs both versions on this node. `lock` locks the folder of builds for these launchers; it returns `None` if the
/// result of the unit exists. `outcome` returns the outcome of another unit.
pub fn weigh_on_node(
    args: &CompareArgs,
    versions: &Versions,
    first: bool,
    lock: impl FnOnce(&[i32], &Arc<AtomicBool>) -> Result<Option<Cache>, Fault>,
    outcome: impl Fn(&str) -> Result<UnitOutcome, Fault>,
) -> Result<Option<Run>, Fault> {
    // Launchers are forked first, while the process is small and has one thread.
    let (builds, source) = (start_launcher()?, ReadingSource::open(None)?);
    let interrupted = interruption::flag()?;
    let asked = RevisionsRequest::by(args, &Config::find()?)?;
    let launchers: Vec<i32> = [builds.pid()].into_iter().chain(source.pid()).collect();
    let Some(cache) = lock(&launchers, &interrupted)? else { return Ok(None) };
    let launcher = BuildLauncher::new(builds, interrupted.clone());
    let builder = VersionBuilder::new(cache, launcher, versions.recipe.clone(), versions.origin.clone());
    let limit = Some(asked.time_limit);
    let (prepared, remarks) =
        two_versions::fetch(&builder, versions, &asked.subjects, limit, first, outcome)?;
    // The run of all nodes together says whether a build pays off, so `clean` stays false.
    let weighing = RevisionSettings { quiet: true, ..asked.weighing(args, source, interrupted) };
    let (CommandPasses { run, .. }, result) = weighing.weigh(prepared, remarks)?;
    result?;
    Ok(Some(run))
}
