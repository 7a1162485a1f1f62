//! The bench protocol: requests as words, replies as lines of JSON; a strict writer and a tolerant reader.
//!
//! `sdk/PROTOCOL.md` specifies the protocol. The reader ignores unknown keys; missing values are absent.

use crate::metric::Quality;
use crate::subject::{Parameter, SKIPPED, Timing};
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::fmt::Write as _;

/// The version of the protocol that Scruple speaks.
pub const VERSION: u32 = 1;

/// The loop of a case that a batch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum LoopKind {
    /// The loop around the body of the case.
    #[serde(rename = "c")]
    Case,
    /// The same loop around an identity or constant body.
    #[serde(rename = "t")]
    Tare,
}

/// One batch of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of the case.
    pub id: u32,
    /// The loop that the batch runs: the body or the tare.
    pub kind: LoopKind,
    /// The iterations of each thread; for concurrency cases the elements.
    pub iterations: u64,
    /// The number of threads.
    pub threads: u32,
}

/// A request to a bench program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BenchRequest {
    /// Ask for the description of the program.
    Hello,
    /// Ask for the cases.
    Cases,
    /// Run these batches in this order.
    Block(Vec<Batch>),
    /// Run the body of this case once and report the result of its check.
    Once(u32),
    /// Set this case up again.
    Reset(u32),
    /// Ask for the code that the process has loaded.
    Loaded,
    /// Tear everything down and exit.
    Bye,
}

impl BenchRequest {
    /// The number of the case that the request is about; of a block, that of its first batch.
    pub fn case(&self) -> Option<u32> {
        match self {
            BenchRequest::Once(id) | BenchRequest::Reset(id) => Some(*id),
            BenchRequest::Block(batches) => batches.first().map(|batch| batch.id),
            _ => None,
        }
    }

    /// Whether the request and something else are about two different cases.
    pub fn is_not_about(&self, other: Option<u32>) -> bool {
        self.case().zip(other).is_some_and(|(case, other)| case != other)
    }

    /// The line of the request, without its end.
    pub fn line(&self) -> String {
        match self {
            BenchRequest::Hello => format!("hello {VERSION}"),
            BenchRequest::Cases => "cases".to_owned(),
            BenchRequest::Once(id) => format!("once {id}"),
            BenchRequest::Reset(id) => format!("reset {id}"),
            BenchRequest::Loaded => "loaded".to_owned(),
            BenchRequest::Bye => "bye".to_owned(),
            BenchRequest::Block(batches) => {
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

/// The description of a bench program.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    /// The version of the protocol that the program speaks.
    pub scruple: u32,
    /// The name and the version of the SDK.
    #[serde(default)]
    pub sdk: String,
    /// The programming language.
    #[serde(default)]
    pub language: String,
    /// The name and the version of the compiler or runtime.
    #[serde(default)]
    pub runtime: String,
    /// The counters that the program reports.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// The capabilities of the program besides single-threaded cases.
    #[serde(default)]
    pub features: Vec<String>,
    /// The variables with which processes that count allocations start, in addition to the others.
    #[serde(default)]
    pub counting_environment: SortedMap<String, String>,
}

/// A counter or an extra reading of a case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Counter {
    /// The key of the metric.
    pub key: String,
    /// The name of the unit.
    pub unit: String,
    /// The quality of the readings.
    #[serde(default = "estimated")]
    pub quality: Quality,
    /// Whether a reading covers the whole batch, instead of being a difference to divide by its iterations.
    #[serde(default, rename = "per", deserialize_with = "is_per_batch")]
    pub per_batch: bool,
    /// The step in which the counter counts, where that is coarse.
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
    /// The number of the case; numbers are consecutive from 0.
    pub id: u32,
    /// The path of the case, with groups divided by `/`.
    pub name: String,
    /// The group of the case, where it is not the name up to its last `/`.
    pub group: Option<String>,
    /// The form of the tare.
    pub shape: Option<String>,
    /// The parameters that distinguish cases of one name.
    #[serde(default)]
    pub params: SortedMap<String, Parameter>,
    /// The work of one iteration.
    pub throughput: Option<Throughput>,
    /// What the time of an iteration covers; absent where the program does not declare it.
    #[serde(default, deserialize_with = "known_timing")]
    pub timing: Option<Timing>,
    /// The numbers of threads with which the case is run.
    #[serde(default = "one_thread")]
    pub threads: Vec<u32>,
    /// The limits of the case, by metric.
    #[serde(default)]
    pub budgets: SortedMap<String, CaseBudget>,
    /// The tags by which cases are selected.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether the case needs its own processes.
    #[serde(default)]
    pub fresh: bool,
    /// Whether allocations are counted in the first iteration of a process instead of a later one.
    #[serde(default)]
    pub first: bool,
    /// Whether every iteration has its own input, made before the batch.
    #[serde(default)]
    pub per_iteration_input: bool,
    /// The largest number of iterations of one batch.
    pub max_iterations: Option<u64>,
    /// The time limit of one batch, in nanoseconds.
    pub time_limit: Option<u64>,
    /// Whether `once` performs a check.
    #[serde(default)]
    pub checked: bool,
    /// The place of the case in the source, as `file:line`.
    pub source: Option<String>,
    /// The shape of a concurrency case; absent for other cases.
    pub concurrency: Option<Concurrency>,
    /// The extra readings of this case.
    #[serde(default)]
    pub readings: Vec<Counter>,
}

fn one_thread() -> Vec<u32> {
    vec![1]
}

/// Reads the kind of time of a case; an unknown word counts as absent.
fn known_timing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timing>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    Ok([Timing::Latency, Timing::Throughput]
        .into_iter()
        .find(|timing| word.as_deref() == Some(timing.word())))
}

/// The work of one iteration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Throughput {
    /// The unit of the work: `bytes` or `items`.
    pub unit: String,
    /// The amount of work, in that unit.
    pub amount: f64,
}

/// A limit that a case declares: a number in the unit of the metric, or a change such as `+5%`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CaseBudget {
    /// The largest value that is allowed.
    pub max: Option<Parameter>,
    /// The smallest value that is allowed.
    pub min: Option<Parameter>,
    /// The reference of a change: `baseline`, or the name of a case.
    pub against: Option<String>,
}

/// The shape of a concurrency case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Concurrency {
    /// The number of threads that put elements.
    pub producers: u32,
    /// The number of threads that take elements.
    pub consumers: u32,
    /// The bound of the queue; absent where the queue has none.
    pub capacity: Option<u64>,
}

/// The readings of one batch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BatchReply {
    /// The number of the case.
    pub id: u32,
    /// The loop that the batch ran: the body or the tare.
    pub kind: LoopKind,
    /// The iterations of the batch, those of all threads together.
    pub iterations: u64,
    /// What the time of an iteration covers, where that was not known beforehand.
    #[serde(default, deserialize_with = "known_timing")]
    pub timing: Option<Timing>,
    /// Whether every iteration has its own input, where that was not known beforehand.
    #[serde(default)]
    pub per_iteration_input: bool,
    /// The part of each thread, where there are several threads.
    #[serde(default)]
    pub threads: Vec<ThreadReply>,
    /// The kernel's number of the thread that ran a batch of one thread.
    pub thread: Option<u32>,
    /// All other readings of the whole batch, by key.
    #[serde(flatten)]
    pub readings: SortedMap<String, LooseNumber>,
}

impl BatchReply {
    /// A reading of the whole batch; `None` where it is absent or not a finite number.
    pub fn reading(&self, key: &str) -> Option<f64> {
        match self.readings.get(key) {
            Some(LooseNumber::Number(number)) if number.is_finite() => Some(*number),
            _ => None,
        }
    }

    /// How long the batch took longer because a thread had no core, in nanoseconds: the longest wait of a thread, or
    /// how much longer the batch took than its longest thread, since its threads did not all begin together. `None` for
    /// a batch of one thread, and where a time is absent.
    pub fn waited(&self) -> Option<f64> {
        let times = self.threads.iter().map(|thread| thread.wall).collect::<Option<Vec<f64>>>()?;
        let longest = times.into_iter().reduce(f64::max).filter(|_| self.threads.len() > 1)?;
        let apart = (self.reading("time.wall")? - longest).max(0.0);
        Some(self.threads.iter().filter_map(ThreadReply::waited).fold(apart, f64::max))
    }
}

/// The part of one thread in a batch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ThreadReply {
    /// The iterations of the thread.
    pub iterations: u64,
    /// The elapsed time of the thread, in nanoseconds.
    #[serde(rename = "time.wall")]
    pub wall: Option<f64>,
    /// The processor time of the thread, in nanoseconds.
    #[serde(rename = "time.cpu")]
    pub cpu: Option<f64>,
    /// How long the thread was ready but waited for a core, in nanoseconds, from before the barrier to after the
    /// timed part.
    pub waited: Option<f64>,
    /// The role of the thread in a concurrency case: `producer` or `consumer`.
    pub role: Option<String>,
}

impl ThreadReply {
    /// The most that the thread can have waited for a core in the timed part. While it waited it was not running; but a
    /// thread that was not running may also have waited for another thread on purpose.
    fn waited(&self) -> Option<f64> {
        let idle = self.wall.zip(self.cpu).map_or(f64::INFINITY, |(wall, ran)| (wall - ran).max(0.0));
        Some(self.waited?.min(idle))
    }
}

/// A number, or another value, which is ignored.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum LooseNumber {
    /// A number.
    Number(f64),
    /// Any other value, which is ignored.
    Other(serde::de::IgnoredAny),
}

/// An error that a program reports.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProgramError {
    /// The message for people.
    pub error: String,
    /// The kind of the error, one of those that the protocol lists.
    #[serde(default)]
    pub kind: String,
    /// The number of the case in which the error occurred.
    pub id: Option<u32>,
    /// Whether the program exits after the error.
    #[serde(default)]
    pub fatal: bool,
}

impl ProgramError {
    /// Whether the case says that it cannot run here, which is not a failure.
    pub fn is_skip(&self) -> bool {
        self.kind == SKIPPED
    }

    /// The message for people, after the kind if that is a livelock, a deadlock or a skipped case.
    pub fn message(&self) -> String {
        match self.kind.as_str() {
            "livelock" | "deadlock" | SKIPPED => format!("{}: {}", self.kind, self.error),
            _ => self.error.clone(),
        }
    }
}

/// What a program tells about a case whose threads make no progress.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Stalled {
    /// The number of the case.
    pub stalled: u32,
    /// How long there has been no progress, in seconds.
    pub seconds: f64,
    /// The number of elements that were put into the queue.
    pub put: u64,
    /// The number of elements that were taken.
    pub got: u64,
}

/// The result of running a case once.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct OnceReply {
    /// The number of the case.
    pub once: u32,
    /// Whether the body returned and its check passed.
    pub ok: bool,
    /// The message of a failed check.
    pub why: Option<String>,
    /// A short text by which outputs are compared.
    pub digest: Option<String>,
    /// The readings that the case declared.
    #[serde(flatten)]
    pub readings: SortedMap<String, LooseNumber>,
}

/// The feature of programs that answer `loaded`.
pub const TELLS_CODE: &str = "loaded";

/// The code that a process has loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LoadedReply {
    /// The paths of the files that hold the code.
    pub loaded: Vec<String>,
    /// Texts that identify code that is in none of the files, and options of the runtime.
    #[serde(default)]
    pub generated: Vec<String>,
}

/// A line of a reply.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// An error, which may replace any other reply.
    Error(ProgramError),
    /// A case with threads makes no progress. The program goes on, and the reply to the request is still due.
    Stalled(Stalled),
    /// The answer to `hello`.
    Hello(Hello),
    /// A case, in the answer to `cases`.
    Case {
        /// The declaration of the case.
        case: Box<Case>,
    },
    /// The end of the list of cases.
    End {
        /// The number of cases.
        count: usize,
        /// The request whose answer has ended.
        end: String,
    },
    /// The answer to `block`.
    Block {
        /// The batches, in the order of the request.
        block: Vec<BatchReply>,
        /// The number of events that the counters missed.
        #[serde(default)]
        lost: u64,
    },
    /// The answer to `once`.
    Once(OnceReply),
    /// The answer to `loaded`.
    Loaded(LoadedReply),
    /// The answer to `reset`.
    Reset {
        /// The number of the case that was set up again.
        reset: u32,
    },
    /// The answer to `bye`.
    Bye {
        /// Always true.
        bye: bool,
    },
}
