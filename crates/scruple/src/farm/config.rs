//! `[farm]` of `scruple.toml`: which machines measure.

use serde::Deserialize;
use std::path::PathBuf;

/// What the file says of the farm.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarmEntry {
    /// What hands out the work; none where this process does it itself, without units.
    pub kind: Option<Kind>,
    /// The folder that all nodes see; below the user's cache where none is named.
    pub folder: Option<PathBuf>,
    /// The folder of each node's own for builds and artefacts; below the user's cache where none is named.
    pub scratch: Option<PathBuf>,
    /// Where versions are built.
    #[serde(default)]
    pub builds: Builds,
    /// Slurm: the feature that all nodes must have, so that they are machines of one class.
    pub constraint: Option<String>,
    /// Slurm: the partition.
    pub partition: Option<String>,
    /// Ssh: the machines.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Further options of `sbatch`, or of `ssh`.
    #[serde(default)]
    pub options: Vec<String>,
    /// How many units are to be under way at once; as many as there are nodes where it is not said.
    pub nodes: Option<u32>,
    /// The program on the nodes; this one where it is not said.
    pub program: Option<PathBuf>,
    /// Whether machines of several classes may take part.
    #[serde(default)]
    pub mixed: bool,
}

/// What hands out the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This machine, one unit after another.
    Here,
    /// A few machines over ssh, by GNU parallel.
    Ssh,
    /// Slurm.
    Slurm,
}

/// Where versions are built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Builds {
    /// On the nodes, by units of their own.
    #[default]
    Nodes,
    /// On the machine that hands out the work, such as the only one with a compiler.
    Here,
}
