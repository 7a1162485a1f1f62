//! The bench programs of a suite: starts their processes, asks them, and says what an error means for a case.

use super::answers::{fault_in, unexpected};
use super::cases::CaseEnd;
use super::{Stop, SuiteRecord, Weighed};
use crate::fault::Fault;
use scruple_core::protocol::{Batch, BatchReply, BenchRequest, Hello, LoopKind, Reply};
use scruple_measure::bench::{BenchError, BenchProgram, BenchStart, garbled};
use scruple_measure::program::Program;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One of the bench programs that are compared. Usually there is only one.
#[derive(Debug)]
pub struct BenchSide {
    /// The name of the program in tables, if there are several.
    pub label: Option<String>,
    /// What stands before the names of its cases, if other programs may have cases of the same names.
    pub prefix: Option<String>,
    /// The file to execute.
    pub program: Program,
    /// The words of the command line.
    pub argv: Vec<OsString>,
    /// The working folder of the program; `None` means that of Scruple.
    pub folder: Option<PathBuf>,
    /// The variables added to Scruple's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The whole environment of counting processes, if it has to be the same in every run.
    pub counted_env: Option<Vec<(OsString, OsString)>>,
    /// The description that the program gave of itself.
    pub hello: Option<Hello>,
}

impl BenchSide {
    /// Creates the side of a program that starts in Scruple's working folder, before its description is known.
    pub fn new(label: Option<String>, program: Program, argv: Vec<OsString>) -> BenchSide {
        let (env, hello) = (Vec::new(), None);
        BenchSide { label, prefix: None, program, argv, folder: None, env, counted_env: None, hello }
    }

    pub(super) fn start<'a>(
        &'a self,
        padding: usize,
        count_in: Option<&'a Path>,
        counting: bool,
    ) -> BenchStart<'a> {
        let pinned = self.counted_env.as_ref().filter(|_| counting);
        BenchStart {
            path: &self.program.path,
            argv: &self.argv,
            padding,
            count_in,
            counting_env: self.hello.as_ref().map(|hello| &hello.counting_environment),
            folder: self.folder.as_deref(),
            env: pinned.unwrap_or(&self.env),
            whole_env: pinned.is_some(),
        }
    }
}

/// The programs of a suite.
pub(super) struct Programs {
    pub(super) sides: Vec<BenchSide>,
    /// The time limit of a request, unless it is about a case that declares another.
    pub(super) case_limit: Duration,
    /// The folder in which the allocation counter writes.
    pub(super) work: PathBuf,
    /// The flag that the user's interruption sets.
    pub(super) interrupted: Arc<AtomicBool>,
}

impl Programs {
    /// Starts a fresh process of a side. `counting` is `None` in the timing pass; otherwise it says whether the
    /// allocation counter can be attached.
    pub(super) fn start(
        &self,
        side: usize,
        padding: usize,
        counting: Option<bool>,
    ) -> Result<(BenchProgram, Hello), BenchError> {
        let count_in = counting.filter(|countable| *countable).map(|_| self.work.as_path());
        let start = self.sides[side].start(padding, count_in, counting.is_some());
        let mut program = BenchProgram::start(&start)?;
        let hello = self.hello(&mut program)?;
        Ok((program, hello))
    }

    /// Asks a process that was just started for its description.
    pub(super) fn hello(&self, program: &mut BenchProgram) -> Result<Hello, BenchError> {
        match program.ask(&BenchRequest::Hello, self.case_limit, &self.interrupted)? {
            Reply::Hello(hello) => Ok(hello),
            other => Err(unexpected(&BenchRequest::Hello.line(), &other)),
        }
    }

    /// Sends a request about a case.
    pub(super) fn ask(
        &self,
        weighed: &Weighed,
        program: &mut BenchProgram,
        request: &BenchRequest,
    ) -> Result<Reply, BenchError> {
        let limit = weighed.case.time_limit.map_or(self.case_limit, Duration::from_nanos);
        program.ask(request, limit, &self.interrupted)
    }

    /// Runs a single batch.
    pub(super) fn batch(
        &self,
        weighed: &Weighed,
        program: &mut BenchProgram,
        kind: LoopKind,
        iterations: u64,
    ) -> Result<BatchReply, BenchError> {
        let mut replies = self.block(weighed, program, vec![weighed.batch(kind, iterations)])?;
        replies.pop().ok_or_else(|| garbled("block", "it has no batches"))
    }

    /// Runs these batches as one block, in the given order.
    pub(super) fn block(
        &self,
        weighed: &Weighed,
        program: &mut BenchProgram,
        batches: Vec<Batch>,
    ) -> Result<Vec<BatchReply>, BenchError> {
        let request = BenchRequest::Block(batches.clone());
        let asked = Instant::now();
        match self.ask(weighed, program, &request)? {
            Reply::Block { block, .. } => {
                match fault_in(&batches, &block, weighed.case.concurrency.is_some(), asked.elapsed()) {
                    None => Ok(block),
                    Some(why) => Err(garbled(&request.line(), why)),
                }
            }
            other => Err(unexpected(&request.line(), &other)),
        }
    }

    /// Records that a case failed or was skipped, and returns whether neither is so. The other cases continue, in a new
    /// process if this one has ended.
    pub(super) fn tolerate<T>(
        &self,
        weighed: &mut Weighed,
        record: &mut SuiteRecord,
        program: &mut BenchProgram,
        result: Result<T, BenchError>,
    ) -> Result<bool, Stop> {
        let Err(error) = result else { return Ok(true) };
        let ended = match &error {
            BenchError::Complained(complaint) if complaint.is_skip() => CaseEnd::Skipped,
            _ => CaseEnd::Failed,
        };
        record.end(weighed, ended, &reason(&error)?);
        if !survives(&error) {
            let started = self.start(weighed.side, 0, None).map_err(|error| {
                Stop::Failed(Fault::program(format!("cannot start the program again: {error}")))
            })?;
            *program = started.0;
        }
        Ok(false)
    }

    pub(super) fn stop_if_interrupted(&self) -> Result<(), Stop> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Stop::Interrupted) } else { Ok(()) }
    }
}

/// Turns an error about one case into a reason; an interruption stays an error.
pub(super) fn reason(error: &BenchError) -> Result<String, Stop> {
    match error {
        BenchError::Interrupted => Err(Stop::Interrupted),
        other => Ok(other.to_string()),
    }
}

/// Whether the program can still answer requests after this error.
fn survives(error: &BenchError) -> bool {
    matches!(error, BenchError::Complained(complaint) if !complaint.fatal)
}
