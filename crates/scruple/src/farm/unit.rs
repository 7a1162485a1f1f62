//! What a unit says, and what its result says: plain data in JSON.

use crate::fault::Fault;
use crate::history::Template;
use crate::history::artefacts::Artefacts;
use crate::history::build::Origin;
use crate::history::recipe::Resolved;
use crate::store::Entry;
use scruple_core::history::State;
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, Terms, Warning};
use scruple_core::subject::Arm;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the file of a unit holds.
#[derive(Clone, Serialize, Deserialize)]
pub enum Written {
    /// Work of a history.
    Version(Box<Unit>),
    /// A command line of `scruple run` or `scruple bench`.
    Line(Box<Line>),
}

/// A command line that a node does as a whole.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The version of Scruple that wrote it.
    pub scruple: String,
    /// Its words behind the name of the program.
    pub words: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
    /// The digest of `scruple.toml`, where there is one.
    pub configuration: Option<String>,
    /// The digests of the programs where the line was typed, by path.
    pub programs: BTreeMap<String, String>,
    /// The seed.
    pub seed: u64,
    /// Which of the units of this line it is.
    pub number: u32,
}

/// One piece of work of a history.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// The version of Scruple that wrote it.
    pub scruple: String,
    /// The absolute path or the URL of the repository.
    pub place: String,
    /// Where the objects of the repository are.
    pub origin: Origin,
    /// How versions are built, for the commits of this unit.
    pub recipe: Resolved,
    /// The folder of builds that artefacts are taken from and put into.
    pub shared: PathBuf,
    /// What is to be done.
    pub work: Work,
}

/// What a unit does.
#[derive(Clone, Serialize, Deserialize)]
pub enum Work {
    /// Builds a version.
    Build {
        /// Its commit.
        commit: String,
        /// The id of its tree.
        tree: String,
    },
    /// Weighs versions beside each other.
    Measure(Box<Measure>),
}

/// Versions to be weighed, all on one machine.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// The run that the readings are for.
    pub run: String,
    /// Its seed.
    pub seed: u64,
    /// How it is judged.
    pub terms: Terms,
    /// The environment of launches in which something is counted.
    pub environment: BTreeMap<String, String>,
    /// The versions, oldest first, as they are known so far.
    pub entries: Vec<Entry>,
    /// The units that build some of them, by commit.
    pub builds: BTreeMap<String, String>,
    /// What is weighed at each.
    pub subjects: Vec<Template>,
    /// Which of them this unit weighs, by their places.
    pub part: Vec<usize>,
    /// Commits for which the memory and counting passes are taken.
    pub count: Vec<String>,
    /// Commits that are launched beside each other.
    pub beside: Vec<String>,
    /// The number of the first round.
    pub first: u32,
    /// How many rounds.
    pub rounds: u32,
    /// How many rounds the user gave: the memory pass then has as many launches as they allow, however long they take.
    pub by_number: Option<u32>,
    /// Whether a version that prints something else than the first one is wrong.
    pub same_output: bool,
    /// Read clocks only.
    pub time_only: bool,
    /// Count instructions.
    pub instructions: bool,
    /// Read requested bytes.
    pub requested: bool,
    /// How long a command may run.
    pub time_limit: Option<Duration>,
}

/// What came of a unit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The name of the machine in the farm.
    pub node: String,
    /// The machine.
    pub machine: Provenance,
    /// What was found.
    pub found: Found,
}

/// What a unit found.
#[derive(Serialize, Deserialize)]
pub enum Found {
    /// A version that was built.
    Built(Artefacts),
    /// A version that could not be.
    NotBuilt {
        /// What became of it.
        state: State,
        /// Why.
        why: String,
        /// What the steps wrote.
        log: String,
    },
    /// Versions that were weighed.
    Measured {
        /// What has become of them.
        entries: Vec<Entry>,
        /// What was read of them.
        arms: Vec<Arm>,
        /// Remarks.
        warnings: Vec<Warning>,
        /// What failed versions wrote, by commit.
        logs: BTreeMap<String, String>,
    },
    /// A command line that was done.
    Weighed {
        /// What was read.
        run: Box<Run>,
        /// The cases that failed, with the reason.
        failures: Vec<(String, String)>,
    },
}

/// Why a unit could not be done.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitFailure {
    /// The name of the machine in the farm.
    pub node: String,
    /// Whether a measured program failed, rather than the unit itself.
    pub of_program: bool,
    /// What was tried, and what failed.
    pub why: String,
}

/// Reads what another process wrote.
pub fn parse<T: DeserializeOwned>(text: &str, from: &Path) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        Fault::usage(format!(
            "‘{}’ cannot be understood: {error}; use one Scruple on all machines",
            from.display()
        ))
    })
}

/// Writes what another process reads.
pub fn text(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Fault::internal(format!("cannot write a unit: {error}")))
}
