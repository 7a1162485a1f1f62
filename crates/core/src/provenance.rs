//! Where a run was taken: everything that decides whether two runs may be compared.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The circumstances of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// A short name for machines that may share a series: processor, cores, architecture.
    pub machine_class: String,
    /// The processor's name.
    pub cpu: String,
    /// The cores the process may use.
    pub cores: u32,
    /// The memory of the machine, in bytes.
    pub memory: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The name of the operating system.
    pub os: String,
    /// The one-minute load average when the run began.
    pub load: f64,
    /// The hypervisor, where one is visible.
    pub virtualized: Option<String>,
    /// The frequency governor, where one is visible.
    pub governor: Option<String>,
    /// The commit of the working folder's repository.
    pub commit: Option<String>,
    /// Whether the working tree differed from that commit.
    pub dirty: Option<bool>,
    /// The working folder.
    pub folder: String,
    /// The environment variables that commonly change what is measured, where set.
    pub environment: BTreeMap<String, String>,
    /// The digest of each measured program's file, by path.
    pub programs: BTreeMap<String, String>,
    /// The compilers recorded in the file of each measured program, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub toolchains: BTreeMap<String, String>,
    /// The digest of each shared library that a measured program loads at its start, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub libraries: BTreeMap<String, String>,
    /// The other tool that took the readings, where they were imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The nodes of a farm that took the readings, each with its blocks; none where one machine took them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// A machine of a farm, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name in the farm.
    pub name: String,
    /// Its machine class.
    pub class: String,
    /// The first and the last block of each row of blocks that were timed there.
    pub blocks: Vec<(u32, u32)>,
}

impl Node {
    /// Whether a block was timed there.
    pub fn has(&self, block: u32) -> bool {
        self.blocks.iter().any(|(first, last)| (*first..=*last).contains(&block))
    }
}

impl Provenance {
    /// Notes that a node has timed so many blocks from the first one on.
    pub fn took(&mut self, name: &str, class: &str, first: u32, count: u32) {
        let place = self.nodes.iter().position(|node| node.name == name).unwrap_or_else(|| {
            self.nodes.push(Node { name: name.to_owned(), class: class.to_owned(), blocks: Vec::new() });
            self.nodes.len() - 1
        });
        if count > 0 {
            self.nodes[place].blocks.push((first, first + count - 1));
        }
    }

    /// The instruction set, which is the last part of a machine class; none where no machine is known, or where another
    /// tool took the readings: such a class ends in the name of a host.
    pub fn architecture(&self) -> Option<&str> {
        match self.tool {
            Some(_) => None,
            None => self.machine_class.rsplit_once('/').map(|(_, architecture)| architecture),
        }
    }
}
