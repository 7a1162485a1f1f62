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
}

impl Provenance {
    /// The instruction set, which is the last part of a machine class; none where no machine is known, or where another
    /// tool took the readings: such a class ends in the name of a host.
    pub fn architecture(&self) -> Option<&str> {
        match self.tool {
            Some(_) => None,
            None => self.machine_class.rsplit_once('/').map(|(_, architecture)| architecture),
        }
    }
}
