//! Where and how a run was taken: everything that decides whether two runs may be compared.

use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};

/// The circumstances of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// A short name for machines that may share a series: processor, cores, architecture.
    pub machine_class: String,
    /// The name of the processor.
    pub cpu: String,
    /// The number of cores that the process may use.
    pub cores: u32,
    /// The memory of the machine, in bytes.
    pub memory: u64,
    /// The release of the kernel.
    pub kernel: String,
    /// The name of the operating system.
    pub os: String,
    /// The one-minute load average when the run began.
    pub load: f64,
    /// The hypervisor; absent where none is visible.
    pub virtualized: Option<String>,
    /// The frequency governor; absent where none is visible.
    pub governor: Option<String>,
    /// The commit of the repository that contains the working folder.
    pub commit: Option<String>,
    /// Whether the working tree differed from that commit.
    pub dirty: Option<bool>,
    /// The working folder.
    pub folder: String,
    /// The environment variables that commonly change costs, as far as they were set.
    pub environment: SortedMap<String, String>,
    /// The digest of the file of each weighed program, by path.
    pub programs: SortedMap<String, String>,
    /// The compilers that the file of each weighed program records, by path.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub toolchains: SortedMap<String, String>,
    /// The digest of each shared library that a weighed program loads at its start, by name.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub libraries: SortedMap<String, String>,
    /// The digest of the code that bench programs loaded while they ran; absent if it is unknown, or if all code is in
    /// the files of the programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The other tool that took the readings, where they were imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The nodes of a farm that took the readings, each with its blocks; empty where one machine took them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// A machine of a farm, and the blocks that it timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The name of the node in the farm.
    pub name: String,
    /// The machine class of the node.
    pub class: String,
    /// The first and the last block of each row of consecutive blocks that the node timed.
    pub blocks: Vec<(u32, u32)>,
}

impl Node {
    /// Whether the node timed this block.
    pub fn has(&self, block: u32) -> bool {
        self.blocks.iter().any(|(first, last)| (*first..=*last).contains(&block))
    }
}

impl Provenance {
    /// Notes that a node timed `count` consecutive blocks, beginning with `first`.
    pub fn took(&mut self, name: &str, class: &str, first: u32, count: u32) {
        let place = self.nodes.iter().position(|node| node.name == name).unwrap_or_else(|| {
            self.nodes.push(Node { name: name.to_owned(), class: class.to_owned(), blocks: Vec::new() });
            self.nodes.len() - 1
        });
        if count > 0 {
            self.nodes[place].blocks.push((first, first + count - 1));
        }
    }

    /// The instruction set, which is the last part of a machine class. `None` where no machine is known, or where
    /// another tool took the readings: the class then ends in the name of a host.
    pub fn architecture(&self) -> Option<&str> {
        match self.tool {
            Some(_) => None,
            None => self.machine_class.rsplit_once('/').map(|(_, architecture)| architecture),
        }
    }
}

/// The beginning of a commit's id, as people read it.
pub fn short_commit(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
