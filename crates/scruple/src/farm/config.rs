//! `[farm]` in `scruple.toml`: the machines that measure.

use serde::Deserialize;
use std::path::PathBuf;

/// The settings of the farm.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [farm] with a kind")]
pub struct FarmEntry {
    /// How units are distributed; `None` if this process measures itself, without units.
    pub kind: Option<DispatchKind>,
    /// The folder that all nodes see. The default is a folder in the user's cache.
    pub folder: Option<PathBuf>,
    /// The folder on each node for its own builds and artefacts. The default is a folder in the user's cache.
    pub scratch: Option<PathBuf>,
    /// Where versions are built.
    #[serde(default)]
    pub builds: BuildPlace,
    /// The Slurm feature that all nodes must have, so that they are machines of one class.
    pub constraint: Option<String>,
    /// The Slurm partition.
    pub partition: Option<String>,
    /// The machines for ssh.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Additional options of `sbatch` or `ssh`.
    #[serde(default)]
    pub options: Vec<String>,
    /// The largest number of units under way at the same time. The default is the number of nodes.
    pub nodes: Option<u32>,
    /// The path of Scruple on the nodes. The default is the path of this program.
    pub program: Option<PathBuf>,
    /// Whether machines of several classes may take part.
    #[serde(default)]
    pub mixed: bool,
}

/// How units are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DispatchKind {
    /// This machine does the units one after another.
    Here,
    /// GNU parallel distributes the units to a few machines over ssh.
    Ssh,
    /// Slurm distributes the units.
    Slurm,
}

/// Where versions are built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildPlace {
    /// Versions are built on the nodes, by units of their own.
    #[default]
    Nodes,
    /// Versions are built on the machine that distributes the work, for example because only that one has a compiler.
    Here,
}
