//! Runs command lines of `scruple run`, `bench`, `load` and `compare` on a farm. Each node runs the whole line, so that
//! both sides of every comparison are on one node, and the readings of the nodes are merged into one run.

use super::dispatch::{Farm, WorkOrder};
use super::folder::UnitFolder;
use super::machine_classes::{UnitMachine, check_classes};
use super::merge::merged;
use super::same_version::VERSION;
use super::two_versions::VersionsForNodes;
use super::unit_data::{CommandLine, UnitFile, UnitOutcome, UnitResult, WorkUnit, parse, text};
use crate::config::Config;
use crate::digest::digest;
use crate::fault::Fault;
use crate::lock::Lock;
use crate::paths;
use crate::progress::Progress;
use crate::render::page::Section;
use crate::store::{RunWriter, Store};
use crate::versions::environment;
use scruple_core::provenance::Provenance;
use scruple_core::run::Run;
use scruple_stats::sorting;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The time after which the units of a command line are removed if no process waits for them.
const ABANDONED_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long the lock of a command line may be held by a process that does not wait for its results.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// The results of the nodes for a command line.
pub struct MeasuredByNodes {
    /// The merged run, which is complete.
    pub run: Run,
    /// The cases or servers that failed on some node, each with the node and the reason.
    pub failed: Vec<(String, String)>,
    /// The sections of the run's page from each node.
    sections: Vec<Section>,
    folder: UnitFolder,
    lock: Lock,
}

impl MeasuredByNodes {
    /// Stores the run, if there is a store, and removes the units and their results. If the store refuses the run, the
    /// results stay, so that the same command line tries again.
    pub fn store_in(self, store: Option<Store>) -> Result<(Run, RunWriter), Fault> {
        let mut writer = RunWriter::begin(store, &self.run)?;
        if !self.sections.is_empty() {
            writer.keep_sections(&self.run, &self.sections);
        }
        writer.finish(&self.run);
        if writer.fault.is_none() {
            self.folder.remove();
            self.lock.remove();
            if let Some(lines) = self.folder.path().parent() {
                UnitFolder::sweep(lines, ABANDONED_AFTER)?;
            }
        }
        Ok((self.run, writer))
    }
}

/// Which nodes run a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// Every node runs it.
    EachNode,
    /// One node runs it.
    OneNode,
    /// Pairs of nodes run it, one of which has the servers of a load. If that is not possible, every node runs it.
    Pairs,
}

/// The work that nodes are to do.
pub struct NodeWork<'a> {
    /// The run without arms.
    pub head: &'a Run,
    /// Which nodes run the command line.
    pub by: NodeChoice,
    /// The versions that nodes build and weigh, if the command line compares versions.
    pub versions: Option<&'a VersionsForNodes>,
}

/// Has nodes of a farm run the command line of this process. If the same line was sent before and its run is not in the
/// store yet, that run is continued.
pub fn hand_out(
    farm: &mut Farm,
    config: &Config,
    NodeWork { head, by, versions }: &NodeWork<'_>,
    progress: &Progress,
    interrupted: &Arc<AtomicBool>,
) -> Result<MeasuredByNodes, Fault> {
    let words = words()?;
    let configuration = configuration(config)?;
    let mut provenance = head.provenance.clone();
    environment::record(&mut provenance);
    let environment = environment::as_text(&environment::recorded(&provenance));
    let programs = head.provenance.programs.clone();
    let here = PathBuf::from(&head.provenance.folder);
    let shared = match &farm.folder {
        Some(folder) => folder.clone(),
        None => paths::farm_folder()?,
    };
    let built = match versions {
        Some(versions) => text(&versions.versions)?,
        None => String::new(),
    };
    // Units that another version of Scruple sent can be finished only by that version.
    let key = digest(&format!(
        "{VERSION} {words:?} {here:?} {configuration:?} {programs:?} {environment:?} {built}"
    ));
    let path = shared.join("lines").join(&key);
    let lock = lock(&path)?;
    let folder = UnitFolder::make(path)?;
    let head = resumed_head(&folder, head)?;
    let (places, in_pairs) = places(farm, *by)?;
    let line = CommandLine {
        scruple: VERSION.to_owned(),
        words,
        folder: here,
        configuration,
        programs,
        seed: head.seed,
        number: 0,
        versions: versions.map(|versions| versions.versions.clone()),
    };
    let builds = versions.map_or(&[][..], |versions| &versions.builds);
    let stages = [write_builds(&folder, builds)?, write_lines(&folder, &line, places as u32)?];
    folder.clear_failures(&stages.concat());
    let [_, units] = &stages;
    let measure = match (in_pairs, places) {
        (true, 1) => "1 node has the servers, and another loads them".to_owned(),
        (true, _) => format!("{places} nodes have servers, each of them loaded by another node"),
        (false, 1) => "1 node measures everything".to_owned(),
        (false, _) => format!("{places} nodes measure, each of them everything"),
    };
    progress.say(&format!("{measure}; if this run ends early, the same command line continues it"));
    farm.run(&WorkOrder {
        folder: &folder,
        stages: &stages,
        pairs: in_pairs,
        environment: &environment,
        progress,
        interrupted,
    })?;
    let CollectedUnits { mut measured, failed, sections } = collect(&folder, units)?;
    if !farm.entry.mixed {
        let machines: Vec<UnitMachine> = measured.iter().map(MeasuredUnit::machine).collect();
        check_classes(&machines, None)?;
    }
    // The blocks of one node are consecutive, whichever units it did.
    sorting::by(&mut measured, |left, right| left.node.cmp(&right.node));
    let run = merged(head, measured.into_iter().map(|unit| (unit.node, unit.machine, unit.run)));
    Ok(MeasuredByNodes { run, failed, sections, folder, lock })
}

/// Locks the results of a command line: a second process that waited for them would count them again.
fn lock(path: &Path) -> Result<Lock, Fault> {
    // A process that removes old units holds the lock for a moment.
    let began = Instant::now();
    let over = || Ok(began.elapsed() > LOCK_WAIT);
    Lock::wait(&path.with_extension("lock"), over)?.ok_or_else(|| {
        Fault::usage("another Scruple waits for the results of the same command line: wait for it to end")
    })
}

/// Returns how many nodes run the command line, and whether each of them has servers that another node loads.
fn places(farm: &mut Farm, by: NodeChoice) -> Result<(usize, bool), Fault> {
    let pairs = if by == NodeChoice::Pairs { farm.pairs()? } else { 0 };
    Ok(match by {
        NodeChoice::OneNode => (1, false),
        NodeChoice::Pairs if pairs > 0 => (pairs, true),
        NodeChoice::EachNode | NodeChoice::Pairs => (farm.places()?.max(1), false),
    })
}

/// What a node measured.
struct MeasuredUnit {
    node: String,
    machine: Provenance,
    run: Run,
    /// The file of the result.
    result: PathBuf,
}

impl MeasuredUnit {
    /// The node's machine.
    fn machine(&self) -> UnitMachine {
        UnitMachine {
            node: self.node.clone(),
            class: self.machine.machine_class.clone(),
            result: self.result.clone(),
        }
    }
}

/// The results of all units.
struct CollectedUnits {
    measured: Vec<MeasuredUnit>,
    /// The cases or servers that failed, each with the node and the reason.
    failed: Vec<(String, String)>,
    /// The sections of the run's page.
    sections: Vec<Section>,
}

fn collect(folder: &UnitFolder, units: &[String]) -> Result<CollectedUnits, Fault> {
    let (mut measured, mut failed, mut sections) = (Vec::new(), Vec::new(), Vec::new());
    for name in units {
        let UnitResult { node, machine, found, .. } = folder.needed_result(name)?;
        let UnitOutcome::Weighed { run, failures, sections: theirs } = found else {
            return Err(Fault::internal(format!("the unit ‘{name}’ has weighed nothing")));
        };
        failed.extend(failures.into_iter().map(|(case, why)| (case, format!("{node}: {why}"))));
        let title = |title: String| if units.len() > 1 { format!("{title}, on {node}") } else { title };
        sections.extend(theirs.into_iter().map(|one| Section { title: title(one.title), ..one }));
        measured.push(MeasuredUnit { node, machine, run: *run, result: folder.result_path(name) });
    }
    Ok(CollectedUnits { measured, failed, sections })
}

/// Writes a unit for each version to build, and returns their names.
fn write_builds(folder: &UnitFolder, builds: &[WorkUnit]) -> Result<Vec<String>, Fault> {
    let write = |unit: &WorkUnit| {
        let name = folder.write_unit(&text(&UnitFile::Version(Box::new(unit.clone())))?)?;
        forget_failed_build(folder, &name)?;
        Ok(name)
    };
    builds.iter().map(write).collect()
}

/// Writes this number of units that run a command line, each with a different seed, and returns their names.
fn write_lines(folder: &UnitFolder, line: &CommandLine, count: u32) -> Result<Vec<String>, Fault> {
    let write = |number: u32| {
        let seed = line.seed.wrapping_add(u64::from(number));
        let line = CommandLine { seed, number, ..line.clone() };
        folder.write_unit(&text(&UnitFile::CommandLine(Box::new(line)))?)
    };
    (0..count).map(write).collect()
}

/// Removes the result of a unit that could not build its version, so that the build is tried again.
fn forget_failed_build(folder: &UnitFolder, name: &str) -> Result<(), Fault> {
    match folder.parsed_result(name)?.map(|result| result.found) {
        Some(UnitOutcome::NotBuilt { .. }) => {
            let path = folder.result_path(name);
            std::fs::remove_file(&path).map_err(|error| Fault::unwritable(&path, error))
        }
        _ => Ok(()),
    }
}

/// Returns the words of this process after the name of the program, without the options of the store, which nodes do
/// not have.
fn words() -> Result<Vec<String>, Fault> {
    let mut kept = Vec::new();
    let mut words = std::env::args_os().skip(1);
    let mut open = true;
    while let Some(word) = words.next() {
        let word = word.into_string().map_err(|word| {
            Fault::usage(format!("‘{}’ is not UTF-8, which [farm] needs", word.to_string_lossy()))
        })?;
        open &= word != "--";
        match word.as_str() {
            "--store" if open => _ = words.next(),
            word if open && word.starts_with("--store=") => {}
            _ => kept.push(word),
        }
    }
    Ok(kept)
}

/// Returns the digest of the configuration file, or `None` if there is no file.
pub fn configuration(config: &Config) -> Result<Option<String>, Fault> {
    let Some(path) = config.file_path() else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Fault::usage(format!("cannot read ‘{}’: {error}", path.display())))?;
    Ok(Some(digest(&text)))
}

/// Returns the head of the run that was begun with this command line, or `head` if none was begun.
fn resumed_head(folder: &UnitFolder, head: &Run) -> Result<Run, Fault> {
    let path = folder.path().join("run");
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text, &path),
        Err(_) => {
            folder.replace(&path, &text(head)?)?;
            Ok(head.clone())
        }
    }
}
