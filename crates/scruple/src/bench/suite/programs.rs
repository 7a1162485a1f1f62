//! The bench programs of a suite: starts their processes, asks them, and says what an error means for a case.

use super::answers::{fault_in, unexpected};
use super::bench_side::BenchSide;
use super::cases::{CaseEnd, Weighed};
use super::record::SuiteRecord;
use crate::fault::{Fault, Stop};
use scruple_core::protocol::{Batch, BatchReply, BenchRequest, Hello, LoopKind, Reply};
use scruple_measure::bench::{BenchError, BenchProgram, garbled};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
