//! Runs a case of a bench program under the call tree: one process executes a given number of iterations.

use super::choose_tool::ChosenTool;
use super::session::{CalltreeSession, CountDetail, Settings};
use crate::bench::{BenchError, BenchProgram, BenchStart};
use crate::instructions::{END, launch, steady};
use scruple_code::Profiles;
use scruple_core::harmless_text::list_names;
use scruple_core::protocol::{Batch, BenchRequest, LoopKind, Reply};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time limit for an answer. It is long because Valgrind slows the program down many times.
const PATIENCE: Duration = Duration::from_secs(300);

/// A case whose instructions are to be counted.
#[derive(Clone, Copy, Debug)]
pub struct CountedCase<'a> {
    /// How to start the bench program.
    pub start: &'a BenchStart<'a>,
    /// The name of the case, which is its path.
    pub name: &'a str,
    /// The number of iterations of the case's body.
    pub iterations: u64,
}

impl CountedCase<'_> {
    /// Runs one process of the bench program under Valgrind, which counts `counts`. Its profiles are in `folder` while
    /// it runs.
    ///
    /// # Errors
    /// Fails if the program has no such case, does not answer or end properly, or cannot be counted.
    pub fn count(
        &self,
        counter: &ChosenTool,
        counts: CountDetail,
        folder: &Path,
        interrupted: &AtomicBool,
    ) -> Result<Profiles, BenchError> {
        let lost = BenchError::NotCounted;
        let mut words = launch(self.start)?;
        steady(&mut words);
        let settings = Settings { counts, steady: true, ..Settings::default() };
        let session =
            CalltreeSession::start(counter, settings, folder).map_err(|error| lost(error.to_string()))?;
        session.decorate(&mut words);
        let start = BenchStart {
            path: &words.path,
            argv: &words.argv,
            env: &words.env,
            whole_env: true,
            padding: 0,
            ..self.start.clone()
        };
        let mut program = BenchProgram::start(&start)?;
        program.ask(&BenchRequest::Hello, PATIENCE, interrupted)?;
        let id = self.id(&mut program, interrupted)?;
        let iterations = self.iterations;
        let batch = Batch { id, kind: LoopKind::Case, iterations, threads: 1 };
        program.ask(&BenchRequest::Block(vec![batch]), PATIENCE, interrupted)?;
        match program.finish_within(END) {
            Some(status) if status.success() => {}
            _ => return Err(lost("the program failed while it was counted".to_owned())),
        }
        let counted = session.read().map_err(|error| lost(error.to_string()))?;
        match counted.profiles.lost.is_empty() {
            true => Ok(counted.profiles),
            false => Err(lost("a process was killed, and its counts are lost".to_owned())),
        }
    }

    /// The id that the program assigns to the case.
    fn id(&self, program: &mut BenchProgram, interrupted: &AtomicBool) -> Result<u32, BenchError> {
        let mut reply = program.ask(&BenchRequest::Cases, PATIENCE, interrupted)?;
        let mut found = None;
        let mut names = Vec::new();
        while let Reply::Case { case } = reply {
            found = found.or((case.name == self.name).then_some(case.id));
            names.push(case.name);
            reply = program.next_reply("cases", PATIENCE, interrupted)?;
        }
        found.ok_or_else(|| {
            BenchError::NotCounted(format!("it has no case ‘{}’, but {}", self.name, list_names(&names)))
        })
    }
}
