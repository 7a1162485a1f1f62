//! The bench protocol: requests as words, replies as lines of JSON; a strict writer and a tolerant reader.
//!
//! `sdk/PROTOCOL.md` specifies it. Unknown keys are ignored; missing values are absent.

use crate::metric::Quality;
use crate::subject::Parameter;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The version of the protocol that Scruple speaks.
pub const VERSION: u32 = 1;

/// The loop of a case that a batch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum LoopKind {
    /// The case's body.
    #[serde(rename = "c")]
    Case,
    /// The same loop around an identity or constant body.
    #[serde(rename = "t")]
    Tare,
}

/// One requested batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The case.
    pub id: u32,
    /// Body or tare.
    pub kind: LoopKind,
    /// The iterations of each thread; for concurrency cases the elements.
    pub iterations: u64,
    /// The threads.
    pub threads: u32,
}

/// A request to a bench program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Ask for the program's description.
    Hello,
    /// Ask for the cases.
    Cases,
    /// Run these batches in this order.
    Block(Vec<Batch>),
    /// Run the body once and report the result of its check.
    Once(u32),
    /// Set the case up again.
    Reset(u32),
    /// Tear down and exit.
    Bye,
}

impl Request {
    /// The line, without its end.
    pub fn line(&self) -> String {
        match self {
            Request::Hello => format!("hello {VERSION}"),
            Request::Cases => "cases".to_owned(),
            Request::Once(id) => format!("once {id}"),
            Request::Reset(id) => format!("reset {id}"),
            Request::Bye => "bye".to_owned(),
            Request::Block(batches) => {
                let mut line = "block".to_owned();
                for batch in batches {
                    let kind = if batch.kind == LoopKind::Case { 'c' } else { 't' };
                    let _ = write!(line, " {}:{kind}:{}", batch.id, batch.iterations);
                    if batch.threads > 1 {
                        let _ = write!(line, ":{}", batch.threads);
                    }
                }
                line
            }
        }
    }
}

/// The description of a program.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    /// The version it speaks.
    pub scruple: u32,
    /// The SDK and its version.
    #[serde(default)]
    pub sdk: String,
    /// The language.
    #[serde(default)]
    pub language: String,
    /// The compiler or runtime and its version.
    #[serde(default)]
    pub runtime: String,
    /// The counters it reports.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// Its capabilities besides single-threaded cases.
    #[serde(default)]
    pub features: Vec<String>,
}

/// A counter or an extra reading of a case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Counter {
    /// The metric's key.
    pub key: String,
    /// The unit's name.
    pub unit: String,
    /// The quality of its readings.
    #[serde(default = "estimated")]
    pub quality: Quality,
    /// Whether a reading covers the whole batch, instead of being a difference to divide by its iterations.
    #[serde(default, rename = "per", deserialize_with = "is_per_batch")]
    pub per_batch: bool,
    /// The step in which it counts, where that is coarse.
    pub granularity: Option<f64>,
}

fn estimated() -> Quality {
    Quality::Estimated
}

fn is_per_batch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "batch" => Ok(true),
        "iteration" => Ok(false),
        other => Err(D::Error::custom(format!("a counter is per iteration or per batch, not per ‘{other}’"))),
    }
}

/// A case as its program declares it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Case {
    /// The number, consecutive from 0.
    pub id: u32,
    /// The path, groups divided by `/`.
    pub name: String,
    /// The group, where it is not the name up to its last `/`.
    pub group: Option<String>,
    /// The form of the tare.
    pub shape: Option<String>,
    /// The parameters that distinguish cases of one name.
    #[serde(default)]
    pub params: BTreeMap<String, Parameter>,
    /// The work of one iteration.
    pub throughput: Option<Throughput>,
    /// The kind of time that an iteration takes, where the program declares it.
    #[serde(default, deserialize_with = "known_timing")]
    pub timing: Option<Timing>,
    /// The numbers of threads to run with.
    #[serde(default = "one_thread")]
    pub threads: Vec<u32>,
    /// Limits by metric.
    #[serde(default)]
    pub budgets: BTreeMap<String, CaseBudget>,
    /// Tags for selection.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether the case needs its own processes.
    #[serde(default)]
    pub fresh: bool,
    /// Whether allocations are those of the first iteration in a process, not of a later one.
    #[serde(default)]
    pub first: bool,
    /// Whether every iteration gets its own input, made before the batch.
    #[serde(default)]
    pub per_iteration_input: bool,
    /// The most iterations of one batch.
    pub max_iterations: Option<u64>,
    /// The time of one batch in nanoseconds.
    pub time_limit: Option<u64>,
    /// Whether `once` performs a check.
    #[serde(default)]
    pub checked: bool,
    /// `file:line`.
    pub source: Option<String>,
    /// The shape of a concurrency case.
    pub concurrency: Option<Concurrency>,
    /// Extra readings of this case.
    #[serde(default)]
    pub readings: Vec<Counter>,
}

fn one_thread() -> Vec<u32> {
    vec![1]
}

/// What the time of an iteration covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// From argument to result: every iteration waits for the result of the one before.
    Latency,
    /// From one result to the next: iterations do not wait for each other, and may overlap.
    Throughput,
}

impl Timing {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Timing::Latency => "latency",
            Timing::Throughput => "throughput",
        }
    }
}

/// An unknown word counts as absent.
fn known_timing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timing>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    Ok([Timing::Latency, Timing::Throughput]
        .into_iter()
        .find(|timing| word.as_deref() == Some(timing.word())))
}

/// The work of one iteration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Throughput {
    /// `bytes` or `items`.
    pub unit: String,
    /// The amount.
    pub amount: f64,
}

/// A limit that a case declares, a number in the metric's unit or a change such as `+5%`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CaseBudget {
    /// The most allowed.
    pub max: Option<Parameter>,
    /// The least allowed.
    pub min: Option<Parameter>,
    /// What a change is relative to: `baseline`, or the name of a case.
    pub against: Option<String>,
}

/// The shape of a concurrency case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Concurrency {
    /// Threads that put.
    pub producers: u32,
    /// Threads that take.
    pub consumers: u32,
    /// The bound of the queue; none where it has none.
    pub capacity: Option<u64>,
}

/// The readings of one batch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BatchReply {
    /// The case.
    pub id: u32,
    /// Body or tare.
    pub kind: LoopKind,
    /// All iterations of the batch.
    pub iterations: u64,
    /// What the time of an iteration covers, where that was not known beforehand.
    #[serde(default, deserialize_with = "known_timing")]
    pub timing: Option<Timing>,
    /// Each thread's part, where there are several.
    #[serde(default)]
    pub threads: Vec<ThreadReply>,
    /// All other readings, by key, for the whole batch.
    #[serde(flatten)]
    pub readings: BTreeMap<String, Loose>,
}

impl BatchReply {
    /// A reading for the whole batch.
    pub fn reading(&self, key: &str) -> Option<f64> {
        match self.readings.get(key) {
            Some(Loose::Number(number)) if number.is_finite() => Some(*number),
            _ => None,
        }
    }
}

/// One thread's part of a batch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ThreadReply {
    /// Its iterations.
    pub iterations: u64,
    /// Its elapsed time in nanoseconds.
    #[serde(rename = "time.wall")]
    pub wall: Option<f64>,
    /// Its processor time in nanoseconds.
    #[serde(rename = "time.cpu")]
    pub cpu: Option<f64>,
    /// `producer` or `consumer`.
    pub role: Option<String>,
}

/// A number, or another value, which is ignored.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Loose {
    /// A number.
    Number(f64),
    /// Anything else.
    Other(serde::de::IgnoredAny),
}

/// An error that a program reports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Complaint {
    /// The message for people.
    pub error: String,
    /// The kind, one of those that the protocol lists.
    #[serde(default)]
    pub kind: String,
    /// The case that it concerns.
    pub id: Option<u32>,
    /// Whether the program exits after it.
    #[serde(default)]
    pub fatal: bool,
}

impl Complaint {
    /// The message, with the numbers of cases replaced by their names where `known` has them.
    pub fn told(&self) -> String {
        match self.kind.as_str() {
            "livelock" | "deadlock" => format!("{}: {}", self.kind, self.error),
            _ => self.error.clone(),
        }
    }
}

/// The result of `once`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OnceReply {
    /// The case.
    pub once: u32,
    /// Whether it returned and its check passed.
    pub ok: bool,
    /// The message of a failed check.
    pub why: Option<String>,
    /// A short string by which outputs are compared.
    pub digest: Option<String>,
    /// Readings that the case declared.
    #[serde(flatten)]
    pub readings: BTreeMap<String, Loose>,
}

/// One reply line.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// An error, which may replace any other reply.
    Error(Complaint),
    /// The answer to `hello`.
    Hello(Hello),
    /// One case.
    Case {
        /// The case.
        case: Box<Case>,
    },
    /// The end of the cases.
    End {
        /// The number of cases.
        count: usize,
        /// The request that has ended.
        end: String,
    },
    /// The answer to `block`.
    Block {
        /// The batches, in the order of the request.
        block: Vec<BatchReply>,
        /// Events that the counters missed.
        #[serde(default)]
        lost: u64,
    },
    /// The answer to `once`.
    Once(OnceReply),
    /// The answer to `reset`.
    Reset {
        /// The case.
        reset: u32,
    },
    /// The answer to `bye`.
    Bye {
        /// Always true.
        bye: bool,
    },
}
