//! What `--json` and `--export-json` wrote of a run: the run itself, with every reading.

use super::{ImportError, Imported, clean, moment};
use crate::show::json::SCHEMA;
use scruple_core::metric::{Pass, Quality};
use scruple_core::provenance::Provenance;
use scruple_core::run::{State, Terms, Warning};
use scruple_core::sample::{Figure, Sample};
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_core::unit::Unit;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a run is besides its readings.
#[derive(Debug)]
pub struct Identity {
    /// Its id.
    pub id: String,
    /// Its label.
    pub label: Option<String>,
    /// How it ended.
    pub state: State,
    /// Its seed.
    pub seed: u64,
    /// The words of its command line.
    pub argv: Vec<String>,
    /// How it is judged.
    pub terms: Terms,
}

#[derive(Deserialize)]
struct Document {
    scruple: Head,
    run: RunHead,
    provenance: Provenance,
    arms: Vec<OfArm>,
    #[serde(default)]
    warnings: Vec<Warning>,
}

#[derive(Deserialize)]
struct Head {
    schema: u32,
}

#[derive(Deserialize)]
struct RunHead {
    id: String,
    label: Option<String>,
    started: String,
    state: State,
    seed: u64,
    argv: Vec<String>,
    margin: f64,
    level: f64,
    looks: u32,
    #[serde(default)]
    reference: Option<String>,
}

#[derive(Deserialize)]
struct OfArm {
    name: String,
    role: Role,
    subject: Subject,
    version: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, Parameter>,
    metrics: BTreeMap<String, OfMetric>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OfMetric {
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

/// Whether a text is a document of Scruple's.
pub(super) fn recognises(text: &str) -> bool {
    text.starts_with('{') && text.contains("\"scruple\"") && text.contains("\"schema\"")
}

/// Reads a document.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    #[derive(Deserialize)]
    struct DocumentHead {
        scruple: Head,
        history: Option<serde::de::IgnoredAny>,
        run: Option<serde::de::IgnoredAny>,
    }
    let kind: DocumentHead = serde_json::from_str(text)?;
    if kind.scruple.schema > SCHEMA {
        let what = format!("it has schema {}, and this scruple knows {SCHEMA}", kind.scruple.schema);
        return Err(ImportError::at("scruple.schema", what));
    }
    if kind.history.is_some() {
        let what = "it is the report of a history; the run with its readings is what `scruple show RUN --json` writes";
        return Err(ImportError::at("history", what));
    }
    if kind.run.is_none() {
        return Err(ImportError::at("the whole text", "there is no run in it"));
    }
    let document: Document = serde_json::from_str(text)?;
    debug_assert!(document.scruple.schema <= SCHEMA, "checked above");
    let run = document.run;
    let identifier = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if run.id.is_empty() || run.id.len() > 64 || !run.id.chars().all(identifier) {
        return Err(ImportError::at("run.id", "it is no id of a run"));
    }
    let started = moment(&run.started).ok_or_else(|| ImportError::at("run.started", "it is no time"))?;
    let share = |value: f64, key: &str| match value > 0.0 && value < 1.0 {
        true => Ok(value),
        false => Err(ImportError::at(key, "it does not lie between 0 and 1")),
    };
    let terms = Terms {
        margin: share(run.margin, "run.margin")?,
        level: share(run.level, "run.level")?,
        looks: run.looks.max(1),
        reference: run.reference,
    };
    let arms = document.arms.into_iter().map(arm).collect::<Result<Vec<Arm>, ImportError>>()?;
    if arms.is_empty() {
        return Err(ImportError::at("arms", "there is not one arm in it"));
    }
    let (state, seed, argv) = (run.state, run.seed, run.argv);
    let identity =
        Identity { id: run.id, label: run.label.map(|label| clean(&label)), state, seed, argv, terms };
    Ok(Imported {
        started: Some(started),
        provenance: document.provenance,
        arms,
        warnings: document.warnings,
        identity: Some(identity),
    })
}

fn arm(one: OfArm) -> Result<Arm, ImportError> {
    let name = clean(&one.name);
    let mut figures = BTreeMap::new();
    for (key, metric) in one.metrics {
        let figure = match metric {
            OfMetric::Absent { absent } => Figure::Absent { absent },
            OfMetric::Read { unit, pass, quality, source, readings, blocks } => {
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
