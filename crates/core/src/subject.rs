//! What is weighed, and the arms of a comparison.

use crate::protocol::Timing;
use crate::sample::{Figure, Sample};
use crate::words::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is weighed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Subject {
    /// A program with its arguments.
    Command {
        /// The words, as executed; with a shell, the shell's words.
        argv: Vec<String>,
    },
    /// A function that a bench program declared.
    Case {
        /// The path of the case, groups divided by `/`.
        name: String,
        /// The bench program and its arguments.
        program: Vec<String>,
        /// What the tare of this case looks like.
        #[serde(default)]
        shape: String,
        /// What the time of an iteration is, where the program says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timing: Option<Timing>,
    },
    /// The requests that a server answers under load.
    Request {
        /// Where they go.
        url: String,
        /// The words of the server's command where Scruple started it; else empty.
        #[serde(default)]
        server: Vec<String>,
        /// Requests per second of an open loop; none where connections send as fast as they are answered.
        #[serde(default)]
        rate: Option<f64>,
        /// Connections.
        connections: u32,
    },
}

words! {
    /// What an arm is there for.
    pub enum Role {
        /// Something the user wants to know about.
        Subject = "subject",
        /// The harness's own overhead: the launch of an empty program, or an identity body.
        Tare = "tare",
        /// The shell that runs the commands, running nothing.
        Shell = "shell",
        /// A second copy of the reference, which shows what "no difference" looks like here and now.
        Twin = "twin",
        /// A well-known program beside the subjects, shown and never judged.
        Yardstick = "yardstick",
        /// A part of a subject, such as a kind of the requests that it answers: limits may name it, nothing is compared
        /// with it.
        Part = "part",
    }
}

/// The value of a parameter: numbers are kept apart, because growth can be fitted over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A number.
    Number(f64),
    /// Any other text.
    Text(String),
}

impl Parameter {
    /// A number where the text is one.
    pub fn parse(text: &str) -> Parameter {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Parameter::Number(number),
            _ => Parameter::Text(text.to_owned()),
        }
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Parameter::Number(number) => write!(f, "{number}"),
            Parameter::Text(text) => f.write_str(text),
        }
    }
}

/// One subject at one version inside a comparison, with what was read of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// The name shown in tables.
    pub name: String,
    /// What is weighed.
    pub subject: Subject,
    /// A commit, a tag, a label; none where the arm is simply what is there.
    pub version: Option<String>,
    /// The parameters of this arm.
    pub params: BTreeMap<String, Parameter>,
    /// What the arm is there for.
    pub role: Role,
    /// What was read, by metric key.
    pub figures: BTreeMap<String, Figure>,
}

impl Arm {
    /// An arm of which nothing has been read yet.
    pub fn new(name: impl Into<String>, subject: Subject, role: Role) -> Arm {
        Arm {
            name: name.into(),
            subject,
            version: None,
            params: BTreeMap::new(),
            role,
            figures: BTreeMap::new(),
        }
    }

    /// The sample of one metric, where there is one.
    pub fn sample(&self, key: &str) -> Option<&Sample> {
        match self.figures.get(key) {
            Some(Figure::Sample(sample)) => Some(sample),
            _ => None,
        }
    }

    /// Why a metric is absent, where a reason is known.
    pub fn absent(&self, key: &str) -> Option<&str> {
        match self.figures.get(key) {
            Some(Figure::Absent { absent }) => Some(absent),
            _ => None,
        }
    }
}
