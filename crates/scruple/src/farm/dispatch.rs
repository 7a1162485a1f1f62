//! What hands out units and waits for their results.

mod here;
mod script;
mod slurm;
mod ssh;

use super::FarmEntry;
use super::config::{Builds, Kind};
use super::folder::Folder;
use super::unit::UnitFailure;
use crate::config::Config;
use crate::fault::Fault;
use crate::paths;
use crate::progress::Progress;
use here::Here;
use script::Script;
use slurm::Slurm;
use ssh::Ssh;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A unit is sent at most so often, where it vanishes without a word.
const ATTEMPTS: u32 = 3;

/// A farm as it is configured.
pub struct Farm {
    dispatcher: Box<dyn Dispatch>,
    /// What the file says.
    pub entry: FarmEntry,
    /// The folder that all nodes see, where one is named.
    pub folder: Option<PathBuf>,
}

/// Units to be done, in stages: all of one stage before any of the next.
pub struct Order<'a> {
    /// Where they are.
    pub folder: &'a Folder,
    /// Their names.
    pub stages: &'a [Vec<String>],
    /// The environment that they are done in.
    pub environment: &'a BTreeMap<String, String>,
    /// What is told meanwhile.
    pub progress: &'a Progress,
    /// Set by the user's interruption.
    pub interrupted: &'a Arc<AtomicBool>,
}

/// Hands out units.
trait Dispatch {
    /// How many can be under way at once.
    fn places(&mut self) -> Result<usize, Fault>;
    /// Comes back when each unit has a result; or when one cannot be done, or the user interrupts, and then nothing of
    /// this order goes on.
    fn run(&mut self, order: &Order<'_>) -> Result<(), Fault>;
}

impl Farm {
    /// The farm that the configuration names; none where it names none.
    pub fn of(config: &Config) -> Result<Option<Farm>, Fault> {
        let entry = config.file.farm.clone();
        let Some(kind) = entry.kind else { return Ok(None) };
        let absolute = |path: &PathBuf| {
            std::path::absolute(config.folder().join(path))
                .map_err(|error| Fault::usage(format!("[farm]: ‘{}’: {error}", path.display())))
        };
        let folder = entry.folder.as_ref().map(absolute).transpose()?;
        let scratch = match &entry.scratch {
            Some(path) => absolute(path)?,
            None => paths::nodes_folder()?,
        };
        let script = Script::new(entry.program.clone(), scratch)?;
        let dispatcher: Box<dyn Dispatch> = match kind {
            Kind::Here => Box::new(Here::new(script)),
            Kind::Ssh => Box::new(Ssh::new(script, &entry)?),
            Kind::Slurm => Box::new(Slurm::new(script, &entry)),
        };
        Ok(Some(Farm { dispatcher, entry, folder }))
    }

    /// The class of its machines as far as it is known beforehand: none where it is this machine's.
    pub fn class(&self) -> Option<String> {
        match self.entry.kind {
            Some(Kind::Slurm) => {
                Some(format!("slurm {:?} {:?}", self.entry.partition, self.entry.constraint))
            }
            Some(Kind::Ssh) => Some(format!("ssh {:?}", self.entry.hosts)),
            _ => None,
        }
    }

    /// Whether versions are built by units.
    pub fn builds_on_nodes(&self) -> bool {
        self.entry.builds == Builds::Nodes
    }

    /// How many units can be under way at once.
    pub fn places(&mut self) -> Result<usize, Fault> {
        match self.entry.nodes {
            Some(nodes) => Ok(nodes.max(1) as usize),
            None => self.dispatcher.places(),
        }
    }

    /// Has all units of the order done.
    pub fn run(&mut self, order: &Order<'_>) -> Result<(), Fault> {
        self.dispatcher.run(order)
    }
}

/// The error of a unit that says why it cannot be done.
fn failure(folder: &Folder, names: &[String]) -> Result<(), Fault> {
    for name in names {
        if let Some(UnitFailure { node, of_program, why }) = folder.failure(name)? {
            let message = format!(
                "a unit of the farm failed on {node}: {why}; what it wrote is in ‘{}’. The same command goes on",
                folder.path().join("logs").display()
            );
            return Err(if of_program { Fault::program(message) } else { Fault::usage(message) });
        }
    }
    Ok(())
}
