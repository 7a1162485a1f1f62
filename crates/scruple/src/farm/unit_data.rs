//! The content of a unit and of its result: plain data in JSON.

use super::same_version::{INSTALL, Writer};
use crate::fault::Fault;
use crate::render::page::Section;
use crate::store::StoredVersion;
use crate::versions::SubjectTemplate;
use crate::versions::artefacts::Artefacts;
use crate::versions::recipe::ResolvedRecipe;
use crate::versions::source_repository::ObjectSource;
use scruple_core::history::VersionState;
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, Terms, Warning};
use scruple_core::subject::Arm;
use scruple_stats::sorting::SortedMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The content of a unit's file.
#[derive(Clone, Serialize, Deserialize)]
pub enum UnitFile {
    /// The work of one unit of a history.
    Version(Box<WorkUnit>),
    /// The command line of `scruple run`, `bench`, `load` or `compare` that a node runs.
    CommandLine(Box<CommandLine>),
}

/// A command line that a node runs as a whole.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandLine {
    /// The version of Scruple that wrote the unit.
    pub scruple: String,
    /// The words of the command line after the name of the program.
    pub words: Vec<String>,
    /// The working folder of the command line.
    pub folder: PathBuf,
    /// The digest of `scruple.toml`, if the file exists.
    pub configuration: Option<String>,
    /// The digests of the programs on the machine where the user typed the line, by path.
    pub programs: SortedMap<String, String>,
    /// The seed of the run.
    pub seed: u64,
    /// The index of the unit among those of this line.
    pub number: u32,
    /// The versions that `scruple compare` weighs, or `None` with the other commands.
    pub versions: Option<Versions>,
}

/// Two versions of a repository that a node weighs side by side. They were built before.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// The absolute path or the URL of the repository.
    pub place: String,
    /// Where the objects of the repository are stored.
    pub origin: ObjectSource,
    /// How the versions were built.
    pub recipe: ResolvedRecipe,
    /// The folder of builds that artefacts are read from.
    pub shared: PathBuf,
    /// Both versions, the reference first.
    pub both: Vec<BuiltVersion>,
    /// The files that differ between them.
    pub changed: Vec<String>,
}

impl Versions {
    /// Returns the names of the units that build the versions.
    pub fn units(&self) -> impl Iterator<Item = &String> {
        self.both.iter().filter_map(|version| match &version.built {
            BuiltBy::Unit(unit) => Some(unit),
            BuiltBy::Sender(_) => None,
        })
    }
}

/// A version that was built before.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltVersion {
    /// The name of the version in the results.
    pub label: String,
    /// The id of the commit.
    pub commit: String,
    /// What built it.
    pub built: BuiltBy,
}

/// What built a version.
#[derive(Clone, Serialize, Deserialize)]
pub enum BuiltBy {
    /// The machine that sent the unit, with these artefacts.
    Sender(Artefacts),
    /// The unit with this name.
    Unit(String),
}

/// One piece of work of a history.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkUnit {
    /// The version of Scruple that wrote the unit.
    pub scruple: String,
    /// The absolute path or the URL of the repository.
    pub place: String,
    /// Where the objects of the repository are stored.
    pub origin: ObjectSource,
    /// How versions are built, for the commits of this unit.
    pub recipe: ResolvedRecipe,
    /// The folder of builds that artefacts are read from and written to.
    pub shared: PathBuf,
    /// The work of the unit.
    pub work: UnitWork,
}

/// The kinds of work.
#[derive(Clone, Serialize, Deserialize)]
pub enum UnitWork {
    /// The unit builds a version.
    Build {
        /// The commit of the version.
        commit: String,
        /// The id of the version's git tree.
        tree: String,
    },
    /// The unit weighs versions side by side.
    Measure(Box<VersionsToWeigh>),
}

/// The task of weighing versions, all on one machine.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionsToWeigh {
    /// The id of the run that the readings belong to.
    pub run: String,
    /// The seed of the run.
    pub seed: u64,
    /// The terms by which the run is judged.
    pub terms: Terms,
    /// The environment of counting launches.
    pub environment: SortedMap<String, String>,
    /// The versions, oldest first, in their known states.
    pub entries: Vec<StoredVersion>,
    /// The names of the units that build some of the versions, by commit.
    pub builds: SortedMap<String, String>,
    /// The subjects that are weighed at each version.
    pub subjects: Vec<SubjectTemplate>,
    /// The indices of the subjects that this unit weighs.
    pub part: Vec<usize>,
    /// The commits whose memory and counting passes are run.
    pub count: Vec<String>,
    /// The commits that are launched in the same blocks.
    pub beside: Vec<String>,
    /// The number of the first round.
    pub first: u32,
    /// The number of rounds.
    pub rounds: u32,
    /// The number of rounds that the user gave, if any. The memory pass then has as many launches as this allows,
    /// however long they take.
    pub by_number: Option<u32>,
    /// The number of launches of each command in all passes together, if the user gave one.
    #[serde(default)]
    pub launches: Option<u32>,
    /// Whether a version is wrong if its output differs from that of the first version.
    pub same_output: bool,
    /// Whether only time is measured.
    pub time_only: bool,
    /// Whether instructions are counted.
    pub instructions: bool,
    /// Whether requested bytes are read.
    pub requested: bool,
    /// The time limit of a launch of a command.
    pub time_limit: Option<Duration>,
}

/// The result of a unit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitResult {
    /// The version of Scruple that wrote the result.
    pub scruple: String,
    /// The name of the node in the farm.
    pub node: String,
    /// The provenance of the node.
    pub machine: Provenance,
    /// The outcome of the work.
    pub found: UnitOutcome,
}

/// The outcome of a unit's work.
#[derive(Serialize, Deserialize)]
pub enum UnitOutcome {
    /// The version was built.
    Built(Artefacts),
    /// The version could not be built.
    NotBuilt {
        /// The state of the version.
        state: VersionState,
        /// The reason.
        why: String,
        /// The output of the build steps.
        log: String,
    },
    /// The versions were weighed.
    Measured {
        /// The versions with their states.
        entries: Vec<StoredVersion>,
        /// The arms with their readings.
        arms: Vec<Arm>,
        /// The remarks on the run.
        warnings: Vec<Warning>,
        /// The output of failed versions, by commit.
        logs: SortedMap<String, String>,
    },
    /// The command line was run.
    Weighed {
        /// The run with its readings.
        run: Box<Run>,
        /// The cases or servers that failed, each with the reason.
        failures: Vec<(String, String)>,
        /// The sections of the run's page that do not follow from its readings.
        sections: Vec<Section>,
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

impl UnitFile {
    /// Parses a unit that this version of Scruple wrote. `from` is its file and `node` the name of this machine, for the
    /// error message.
    pub fn parse(unit: &str, from: &Path, node: &str) -> Result<UnitFile, Fault> {
        let by_kind: SortedMap<String, Writer> = parse(unit, from)?;
        for writer in by_kind.values() {
            let ours = format!("the node ‘{node}’");
            writer.check("the machine where the command was typed", &ours, INSTALL)?;
        }
        parse(unit, from)
    }
}

impl UnitResult {
    /// Parses a result that this version of Scruple wrote. `from` is its file, for the error message.
    pub fn parse(result: &str, from: &Path) -> Result<UnitResult, Fault> {
        #[derive(Deserialize)]
        struct ResultWriter {
            node: String,
            #[serde(flatten)]
            writer: Writer,
        }
        let ResultWriter { node, writer } = parse(result, from)?;
        let advice = format!(
            "install the same version on all machines, remove ‘{}’, and type the same command again",
            from.display()
        );
        writer.check(&format!("the node ‘{node}’"), "this machine", &advice)?;
        parse(result, from)
    }
}

/// Parses a text that another process wrote. `from` is its file, for the error message.
pub fn parse<T: DeserializeOwned>(text: &str, from: &Path) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        Fault::usage(format!(
            "cannot read ‘{0}’: {error}; it is damaged, or another version of Scruple wrote it: install the same \
             version on all machines, remove ‘{0}’, and type the same command again",
            from.display()
        ))
    })
}

/// Writes a value as a text for another process.
pub fn text(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| Fault::internal(format!("cannot write a unit: {error}")))
}

#[cfg(test)]
mod tests {
    use super::super::same_version::VERSION;
    use super::*;

    #[test]
    fn a_result_of_another_version_is_refused_with_both_versions_and_what_to_do() {
        let text = |scruple: &str| {
            format!(r#"{{{scruple}"node":"n2","machine":{{"of":"another form"}},"found":1}}"#)
        };
        let refused = |text: &str| {
            UnitResult::parse(text, Path::new("results/a")).err().expect("it is of another version").message
        };
        let rest = format!(
            "and this machine has {VERSION}: install the same version on all machines, remove ‘results/a’, and type the same command again"
        );
        assert_eq!(
            refused(&text(r#""scruple":"0.0.9","#)),
            format!("the node ‘n2’ has Scruple 0.0.9, {rest}")
        );
        assert_eq!(refused(&text("")), format!("the node ‘n2’ has an earlier version of Scruple, {rest}"));
    }
}
