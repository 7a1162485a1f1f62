//! Distributes units, and waits for their results.

mod here;
mod node_script;
mod slurm;
mod ssh;

use super::config::FarmEntry;
use super::config::{BuildPlace, DispatchKind};
use super::folder::{UnitFolder, appears};
use super::unit_data::UnitFailure;
use crate::config::Config;
use crate::fault::Fault;
use crate::paths;
use crate::progress::Progress;
use here::Here;
use node_script::NodeScript;
use scruple_stats::sorting::SortedMap;
use slurm::Slurm;
use ssh::Ssh;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest number of times that a unit is sent if it disappears without an error.
const ATTEMPTS: u32 = 3;

/// A farm according to its configuration.
pub struct Farm {
    dispatcher: Box<dyn Dispatch>,
    /// The settings of the configuration file.
    pub entry: FarmEntry,
    /// The folder that all nodes see, if one is configured.
    pub folder: Option<PathBuf>,
}

/// An order of units in stages. All units of one stage are done before any of the next.
pub struct WorkOrder<'a> {
    /// The folder that contains the units.
    pub folder: &'a UnitFolder,
    /// The names of the units in each stage.
    pub stages: &'a [Vec<String>],
    /// Whether each unit needs two nodes, one of which has the servers of a load.
    pub pairs: bool,
    /// The environment in which the units are done.
    pub environment: &'a SortedMap<String, String>,
    /// The progress display.
    pub progress: &'a Progress,
    /// The flag that the user's interruption sets.
    pub interrupted: &'a Arc<AtomicBool>,
}

/// A way to distribute units.
trait Dispatch {
    /// Returns how many units can be under way at the same time.
    fn places(&mut self) -> Result<usize, Fault>;
    /// Returns how many units that need two nodes each can be under way at the same time; 0 if none can.
    fn pairs(&mut self) -> Result<usize, Fault> {
        Ok(0)
    }
    /// Returns when each unit has a result. Also returns if a unit cannot be done or the user interrupts; no work of
    /// this order continues then.
    fn run(&mut self, order: &WorkOrder<'_>) -> Result<(), Fault>;
}

impl Farm {
    /// Returns the farm that the configuration describes, or `None` if it describes none.
    pub fn of(config: &Config) -> Result<Option<Farm>, Fault> {
        let entry = config.file.farm.clone();
        let Some(kind) = entry.kind else {
            let nodes = !entry.hosts.is_empty() || entry.constraint.is_some() || entry.partition.is_some();
            let why = "[farm] names nodes but has no kind: write kind = \"ssh\" or kind = \"slurm\"";
            return if nodes { Err(Fault::usage(why)) } else { Ok(None) };
        };
        let absolute = |path: &PathBuf| {
            std::path::absolute(config.folder().join(path))
                .map_err(|error| Fault::usage(format!("[farm]: ‘{}’: {error}", path.display())))
        };
        let folder = entry.folder.as_ref().map(absolute).transpose()?;
        let scratch = match &entry.scratch {
            Some(path) => absolute(path)?,
            None => paths::nodes_folder()?,
        };
        let script = NodeScript::new(entry.program.clone(), scratch)?;
        let dispatcher: Box<dyn Dispatch> = match kind {
            DispatchKind::Here => Box::new(Here::new(script)),
            DispatchKind::Ssh => Box::new(Ssh::new(script, &entry)?),
            DispatchKind::Slurm => Box::new(Slurm::new(script, &entry)),
        };
        Ok(Some(Farm { dispatcher, entry, folder }))
    }

    /// Returns the class of the farm's machines as far as it is known in advance, or `None` if it is the class of this
    /// machine.
    pub fn class(&self) -> Option<String> {
        match self.entry.kind {
            Some(DispatchKind::Slurm) => {
                Some(format!("slurm {:?} {:?}", self.entry.partition, self.entry.constraint))
            }
            Some(DispatchKind::Ssh) => Some(format!("ssh {:?}", self.entry.hosts)),
            _ => None,
        }
    }

    /// Whether units build the versions.
    pub fn builds_on_nodes(&self) -> bool {
        self.entry.builds == BuildPlace::Nodes
    }

    /// Returns how many units can be under way at the same time.
    pub fn places(&mut self) -> Result<usize, Fault> {
        match self.entry.nodes {
            Some(nodes) => Ok(nodes.max(1) as usize),
            None => self.dispatcher.places(),
        }
    }

    /// Returns how many units that need two nodes each can be under way at the same time; 0 if none can.
    pub fn pairs(&mut self) -> Result<usize, Fault> {
        match self.entry.nodes {
            Some(nodes) if self.dispatcher.pairs()? > 0 => Ok(nodes as usize / 2),
            _ => self.dispatcher.pairs(),
        }
    }

    /// Has all units of the order done.
    pub fn run(&mut self, order: &WorkOrder<'_>) -> Result<(), Fault> {
        self.dispatcher.run(order)
    }
}

/// Whether units that were sent for the last time have results after all, which a slow file system shows late.
fn have_results_late(order: &WorkOrder<'_>, units: &[&String]) -> Result<bool, Fault> {
    let all = || units.iter().try_fold(true, |all, name| Ok(all && order.folder.result(name)?.is_some()));
    let late = appears(order.interrupted, all)?;
    if order.interrupted.load(Ordering::Relaxed) { Err(Fault::interrupted()) } else { Ok(late) }
}

/// Returns the error of a unit that reported why it cannot be done.
fn failure(folder: &UnitFolder, names: &[String]) -> Result<(), Fault> {
    for name in names {
        if let Some(UnitFailure { node, of_program, why }) = folder.failure(name)? {
            let message = format!(
                "a unit of the farm failed on {node}; what it wrote is in ‘{}’, and the same command continues: {why}",
                folder.path().join("logs").display()
            );
            return Err(if of_program { Fault::program(message) } else { Fault::usage(message) });
        }
    }
    Ok(())
}
