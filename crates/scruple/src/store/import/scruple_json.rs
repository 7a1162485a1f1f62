//! Reads what `--json` and `--export-json` wrote about a run or a history: the run with every reading, and the
//! versions.

use super::{ImportError, Imported, clean, moment};
use crate::render::json::SCHEMA;
use crate::run_report::csv;
use crate::store::{StoredHistory, StoredVersion, export};
use scruple_core::history::Version;
use scruple_core::limit::Limit;
use scruple_core::metric::{Pass, Quality};
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, RunState, Terms, Warning};
use scruple_core::sample::{Figure, Sample};
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_core::unit::Unit;
use scruple_stats::sorting::{self, SortedMap};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The properties of a run other than its readings.
#[derive(Debug)]
pub struct RunIdentity {
    /// The id of the run.
    pub id: String,
    /// The label of the run.
    pub label: Option<String>,
    /// The state in which the run ended.
    pub state: RunState,
    /// The seed of the run.
    pub seed: u64,
    /// The command line of the run.
    pub argv: Vec<String>,
    /// The terms by which the run is judged.
    pub terms: Terms,
}

/// The properties of a history other than its run.
#[derive(Debug, Deserialize)]
pub struct HistoryRange {
    repository: String,
    remote: Option<String>,
    range: String,
    versions: Vec<Version>,
}

impl HistoryRange {
    /// Returns the history in the form that the store holds. Commands for a repository do not find it; it must be named
    /// by its id or its label.
    pub fn stored(self, run: Run) -> StoredHistory {
        let repository = clean(&self.repository);
        StoredHistory {
            identity: format!("import {}", run.id),
            source: format!("import:{repository}"),
            repository,
            remote: self.remote.map(|remote| clean(&remote)),
            range: clean(&self.range),
            entries: self.versions.into_iter().map(StoredVersion::new).collect(),
            unlisted: Vec::new(),
            request: None,
            run,
        }
    }
}

#[derive(Deserialize)]
struct ScrupleFile {
    scruple: DocumentSchema,
    run: RunFields,
    provenance: Provenance,
    arms: Vec<ArmFields>,
    #[serde(default)]
    warnings: Vec<Warning>,
    #[serde(default)]
    history: Option<HistoryRange>,
}

#[derive(Deserialize)]
struct DocumentSchema {
    schema: u32,
}

#[derive(Deserialize)]
struct RunFields {
    id: String,
    label: Option<String>,
    started: String,
    state: RunState,
    seed: u64,
    argv: Vec<String>,
    margin: f64,
    level: f64,
    looks: u32,
    #[serde(default)]
    reference: Option<String>,
    #[serde(default)]
    limits: Vec<Limit>,
}

#[derive(Deserialize)]
struct ArmFields {
    name: String,
    role: Role,
    subject: Subject,
    version: Option<String>,
    #[serde(default)]
    params: SortedMap<String, Parameter>,
    metrics: SortedMap<String, MetricFields>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MetricFields {
    Absent {
        absent: String,
    },
    Read {
        unit: Unit,
        pass: Pass,
        quality: Quality,
        source: String,
        readings: Vec<f64>,
        #[serde(default)]
        blocks: Option<Vec<u32>>,
    },
}

/// Whether a text is a document that Scruple wrote.
pub(super) fn recognises(text: &str) -> bool {
    text.starts_with('{') && text.contains("\"scruple\"") && text.contains("\"schema\"")
}

/// The beginning of the table of a history.
const OF_HISTORY: &str = "position,commit,state,same_as,subject,metric,";

/// Whether a text is a table that Scruple writes for other programs: of a run, of a history, or of all readings.
pub(super) fn is_table(text: &str) -> bool {
    let head = text.lines().next().unwrap_or("");
    head.starts_with(&csv::HEAD.join(","))
        || head.starts_with(OF_HISTORY)
        || head == export::HEAD
        || (head.starts_with("{\"run\":") && head.contains(",\"arm\":") && head.contains(",\"block\":"))
}

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    if is_table(text) {
        return Err(ImportError::at(
            "the first line",
            "it belongs to a table for other programs, which is not a run",
        ));
    }
    #[derive(Deserialize)]
    struct DocumentHead {
        scruple: DocumentSchema,
        history: Option<serde::de::IgnoredAny>,
        run: Option<serde::de::IgnoredAny>,
        arms: Option<serde::de::IgnoredAny>,
    }
    let kind: DocumentHead = serde_json::from_str(text)?;
    if kind.scruple.schema > SCHEMA {
        let what = format!("it has schema {}, and this scruple knows {SCHEMA}", kind.scruple.schema);
        return Err(ImportError::at("scruple.schema", what));
    }
    if kind.history.is_some() && kind.arms.is_none() {
        let what = "an earlier scruple wrote this history, without its readings";
        return Err(ImportError::at("history", what));
    }
    if kind.run.is_none() {
        return Err(ImportError::at("the whole text", "there is no run in it"));
    }
    let document: ScrupleFile = serde_json::from_str(text)?;
    debug_assert!(document.scruple.schema <= SCHEMA, "checked above");
    let run = document.run;
    let identifier = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if run.id.is_empty() || run.id.len() > 64 || !run.id.chars().all(identifier) {
        return Err(ImportError::at("run.id", "it is not an id of a run"));
    }
    let started = moment(&run.started).ok_or_else(|| ImportError::at("run.started", "it is not a time"))?;
    let share = |value: f64, key: &str| match value > 0.0 && value < 1.0 {
        true => Ok(value),
        false => Err(ImportError::at(key, "it does not lie between 0 and 1")),
    };
    let terms = Terms {
        margin: share(run.margin, "run.margin")?,
        level: share(run.level, "run.level")?,
        looks: run.looks.max(1),
        reference: run.reference,
        limits: run.limits.into_iter().map(limit).collect(),
    };
    let arms = document.arms.into_iter().map(arm).collect::<Result<Vec<Arm>, ImportError>>()?;
    if arms.is_empty() && document.history.is_none() {
        return Err(ImportError::at("arms", "it has no arms"));
    }
    if let Some(range) = &document.history {
        check_versions(&range.versions, &arms)?;
    }
    let (state, seed, argv) = (run.state, run.seed, run.argv);
    let identity =
        RunIdentity { id: run.id, label: run.label.map(|label| clean(&label)), state, seed, argv, terms };
    Ok(Imported {
        started: Some(started),
        provenance: document.provenance,
        arms,
        warnings: document.warnings,
        identity: Some(identity),
        history: document.history,
    })
}

/// Checks that versions have different commits, and that every arm belongs to one of them.
fn check_versions(versions: &[Version], arms: &[Arm]) -> Result<(), ImportError> {
    let ids: BTreeSet<&str> = sorting::set(versions.iter().map(|version| version.commit.as_str()));
    if ids.len() < versions.len() {
        return Err(ImportError::at("history.versions", "two versions have the same commit"));
    }
    match arms.iter().find(|arm| !arm.version.as_deref().is_some_and(|version| ids.contains(version))) {
        Some(arm) => Err(ImportError::of(&arm.name, "its version is not in history.versions".to_owned())),
        None => Ok(()),
    }
}

fn limit(one: Limit) -> Limit {
    let against = one.against.map(|case| clean(&case));
    Limit { arm: clean(&one.arm), metric: clean(&one.metric), text: clean(&one.text), against, ..one }
}

fn arm(one: ArmFields) -> Result<Arm, ImportError> {
    let name = clean(&one.name);
    let mut figures = SortedMap::new();
    for (key, metric) in one.metrics {
        let figure = match metric {
            MetricFields::Absent { absent } => Figure::Absent { absent },
            MetricFields::Read { unit, pass, quality, source, readings, blocks } => {
                let blocks = blocks.unwrap_or_else(|| (0..readings.len() as u32).collect());
                if blocks.len() != readings.len() || readings.is_empty() {
                    let what = format!("{key} does not have one block for each of its readings");
                    return Err(ImportError::of(&name, what));
                }
                Figure::Sample(Sample { unit, pass, quality, source, readings, blocks })
            }
        };
        figures.insert(key, figure);
    }
    let (subject, version, params, role) = (one.subject, one.version, one.params, one.role);
    Ok(Arm { version, params, figures, ..Arm::new(name, subject, role) })
}
