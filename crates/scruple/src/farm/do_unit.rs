//! `scruple unit`: does one unit on this machine, and publishes its result.

use super::args::UnitArgs;
use super::folder::{UnitFolder, appears};
use super::this_node::{result, take};
use super::unit_data::{
    UnitFailure, UnitFile, UnitOutcome, UnitResult, UnitWork, Versions, VersionsToWeigh, WorkUnit, text,
};
use crate::command::verb::{ReadingSource, RequestedInstruments};
use crate::digest::digest;
use crate::fault::{Code, Fault};
use crate::history::campaign::Campaign;
use crate::history::verb::start_launcher;
use crate::history::{Aim, Definition, HistoryEffort, HistoryRequest, WeighingTools};
use crate::interruption;
use crate::load::remote_server::{self, RemoteHelper};
use crate::new_run;
use crate::paths::WorkFolder;
use crate::progress::Progress;
use crate::render::output;
use crate::store::{Store, StoredHistory};
use crate::versions::VersionSelection;
use crate::versions::build::{BuildFailure, BuildOutcome, VersionBuilder};
use crate::versions::build_process::BuildLauncher;
use crate::versions::cache::end_of_log;
use scruple_core::history::VersionState;
use scruple_core::run::Run;
use scruple_measure::host::host_name;
use scruple_stats::sorting::SortedMap;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The largest part of a log that a result contains, in bytes.
const LOG: usize = 64 << 10;

/// Does the unit, unless it has a result. If a second copy of the unit runs at the same time, the first result stands.
pub fn unit(args: &UnitArgs) -> Result<Code, Fault> {
    if args.serve {
        remote_server::greet()?;
    }
    let (folder, name) = UnitFolder::of(&args.file)?;
    if folder.result(&name)?.is_some() && !args.serve {
        return Ok(Code::Fine);
    }
    let content = std::fs::read_to_string(&args.file)
        .map_err(|error| Fault::usage(format!("cannot read the unit ‘{}’: {error}", args.file.display())))?;
    if digest(&content) != name {
        return Err(Fault::usage(format!(
            "‘{}’ does not match its name: it was changed",
            args.file.display()
        )));
    }
    let node = args.node.clone().unwrap_or_else(host_name);
    let unit = match UnitFile::parse(&content, &args.file, &node) {
        Ok(unit) => unit,
        Err(fault) if args.serve => return Err(fault),
        // The machine that sent the unit shows why.
        Err(fault) => return publish(&folder, (&name, &node), || Err(fault)),
    };
    match unit {
        UnitFile::Version(unit) => version(&unit, &folder, (&name, &node)),
        UnitFile::CommandLine(line) if args.serve => super::do_command_line::serve(&line, &node),
        UnitFile::CommandLine(line) => {
            let units = line.versions.iter().flat_map(Versions::units);
            check_earlier(&folder, &AtomicBool::new(false), units)?;
            let beside =
                args.reach.clone().map(|address| RemoteHelper { words: args.beside.clone(), address });
            publish(&folder, (&name, &node), || {
                super::do_command_line::weighed(&line, &folder, (&name, &node), beside.as_ref())
            })
        }
    }
}

/// Checks that earlier units have results. A missing result means that the order of stages was lost. This is not a
/// failure of the unit, which may run later.
fn check_earlier<'a>(
    folder: &UnitFolder,
    interrupted: &AtomicBool,
    mut units: impl Iterator<Item = &'a String>,
) -> Result<(), Fault> {
    units.try_for_each(|unit| match appears(interrupted, || Ok(folder.result(unit)?.is_some()))? {
        true => Ok(()),
        false => {
            Err(Fault::usage(format!("the unit ‘{unit}’, which comes before this one, has no result yet")))
        }
    })
}

/// Does the work of a unit of a history.
fn version(unit: &WorkUnit, folder: &UnitFolder, (name, node): (&str, &str)) -> Result<Code, Fault> {
    // Launchers are forked first, while the process is small and has one thread.
    let builds = start_launcher()?;
    let source = ReadingSource::open(None)?;
    let flag = interruption::flag()?;
    if let UnitWork::Measure(measure) = &unit.work {
        check_earlier(folder, &flag, measure.builds.values())?;
    }
    publish(folder, (name, node), || {
        let launchers = [builds.pid()].into_iter().chain(source.pid()).collect::<Vec<i32>>();
        let there = || folder.result(name).map(|result| result.is_some());
        let Some(cache) = take(&unit.place, &launchers, &flag, there)? else { return Ok(None) };
        let launcher = BuildLauncher::new(builds, flag.clone());
        let builder = VersionBuilder::new(cache, launcher, unit.recipe.clone(), unit.origin.clone());
        match &unit.work {
            UnitWork::Build { commit, tree } => build(builder, &unit.shared, commit, tree),
            UnitWork::Measure(measure) => self::measure(builder, source, unit, measure, folder, &flag),
        }
        .map(|found| Some(result(node, found)))
    })
}

/// Does the work, and publishes the result or the reason why the unit cannot be done. Publishes nothing if `work` finds
/// that the result already exists.
fn publish(
    folder: &UnitFolder,
    (name, node): (&str, &str),
    work: impl FnOnce() -> Result<Option<UnitResult>, Fault>,
) -> Result<Code, Fault> {
    match work() {
        Ok(None) => Ok(Code::Fine),
        Ok(Some(result)) => {
            if !folder.publish(name, &text(&result)?)? {
                output::warn("another copy of this unit was finished first, and its result is used");
            }
            Ok(Code::Fine)
        }
        Err(fault) if fault.code == Code::Interrupted => Err(fault),
        Err(fault) => {
            folder.fail(
                name,
                &UnitFailure {
                    node: node.to_owned(),
                    of_program: fault.code == Code::ProgramFailed,
                    why: fault.to_string(),
                },
            )?;
            Err(fault)
        }
    }
}

fn build(mut builder: VersionBuilder, shared: &Path, commit: &str, tree: &str) -> Result<UnitOutcome, Fault> {
    match builder.build(commit, tree)? {
        BuildOutcome::Ready(artefacts) => {
            builder.cache.share(shared, &artefacts.digest)?;
            Ok(UnitOutcome::Built(artefacts))
        }
        BuildOutcome::Failed(BuildFailure { state, why, .. }) => {
            let log = end_of_log(&builder.cache.log(commit), LOG).unwrap_or_default();
            Ok(UnitOutcome::NotBuilt { state, why, log })
        }
    }
}

fn measure(
    builder: VersionBuilder,
    source: ReadingSource,
    unit: &WorkUnit,
    measure: &VersionsToWeigh,
    folder: &UnitFolder,
    flag: &Arc<AtomicBool>,
) -> Result<UnitOutcome, Fault> {
    let work = WorkFolder::make()?;
    let store = Store::open(&crate::address::StoreAddress::File(work.path().join("unit.db")))?;
    let mut run: Run = new_run::empty_run(Some(measure.seed), None, measure.terms.clone(), &[]);
    run.id.clone_from(&measure.run);
    run.provenance.environment.clone_from(&measure.environment);
    let history = StoredHistory {
        identity: String::new(),
        source: unit.place.clone(),
        repository: String::new(),
        remote: None,
        range: String::new(),
        entries: measure.entries.clone(),
        unlisted: Vec::new(),
        request: None,
        run,
    };
    store.begin_history(&history)?;
    let asked = RequestedInstruments { instructions: measure.instructions, requested: measure.requested };
    let weighing = WeighingTools {
        weigher: source.into_weigher(flag, &work, &asked)?,
        progress: Progress::new(),
        work: work.path().to_owned(),
        instructions: measure.instructions,
        requested: measure.requested,
    };
    // The unit itself says what to do. Unless the user gave a number of rounds, no budget limits it.
    let effort = HistoryEffort {
        adaptive: false,
        fill: false,
        launches: measure.launches,
        rounds: measure.by_number.unwrap_or(u32::MAX),
        suspects: 0,
        budget: measure.by_number.is_none().then_some(Duration::MAX),
        builds: 1,
    };
    let request = HistoryRequest {
        place: unit.place.clone(),
        selection: VersionSelection::default(),
        as_listed: false,
        of: Definition {
            subjects: measure.subjects.clone(),
            same_output: measure.same_output,
            time_limit: measure.time_limit.unwrap_or(Duration::MAX),
            time_only: measure.time_only,
            ..Definition::default()
        },
        effort: effort.clone(),
        margin: None,
        adaptive: None,
        retry: false,
        keep_going: true,
        aim: Aim::Selection,
    };
    let parts = (weighing, flag.clone());
    let mut campaign = Campaign::new(store, history, HashMap::new(), builder, parts, &request, effort)?;
    campaign.begin_unit(&unit.shared, |commit| match measure.builds.get(commit) {
        None => Ok(None),
        Some(build) => Ok(Some(folder.needed_result(build)?.found)),
    })?;
    campaign.perform(measure)?;
    let (entries, run, logs) = campaign.into_parts();
    let logs: SortedMap<String, String> = SortedMap::from_iter(
        logs.into_iter().map(|(commit, path)| (commit, end_of_log(&path, LOG).unwrap_or_default())),
    );
    let entries = entries.into_iter().filter(|entry| entry.version.state != VersionState::Queued).collect();
    Ok(UnitOutcome::Measured { entries, arms: run.arms, warnings: run.warnings, logs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::farm::same_version::VERSION;

    #[test]
    fn a_unit_of_another_version_is_not_done_and_the_machine_that_sent_it_learns_why() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = UnitFolder::make(place.path().join("farm")).expect("made");
        // The rest of the unit may have another form than today.
        let name = folder.write_unit(r#"{"Line":{"scruple":"0.0.9","words":7}}"#).expect("written");
        let args = UnitArgs {
            file: folder.unit(&name),
            node: Some("n2".to_owned()),
            beside: Vec::new(),
            reach: None,
            serve: false,
        };
        let fault = unit(&args).expect_err("it is of another version");
        let failure = folder.failure(&name).expect("readable").expect("a reason");
        assert_eq!((failure.node.as_str(), failure.of_program, &failure.why), ("n2", false, &fault.message));
        assert_eq!(
            failure.why,
            format!(
                "the machine where the command was typed has Scruple 0.0.9, and the node ‘n2’ has {VERSION}: install \
                 the same version on all machines, and type the command again"
            )
        );
        assert_eq!(folder.result(&name).expect("readable"), None);
    }
}
