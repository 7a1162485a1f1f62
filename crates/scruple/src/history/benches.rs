//! Runs the bench programs of versions, and keeps the batch sizes of each version's cases for later visits.

use crate::bench::suite::single_process::{OfCase, count_once, time_once};
use crate::bench::suite::{BenchSide, CaseSelection, KnownIterations, Suite, SuiteEffort};
use crate::fault::{Fault, Stop};
use crate::new_run::Passes;
use crate::versions::recipe::BuildSettings;
use crate::versions::subjects::SubjectTemplate;
use scruple_core::metric::Pass;
use scruple_core::run::Run;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time of the batches of one visit. A case with a long iteration gets fewer batches.
const VISIT: Duration = Duration::from_secs(2);
/// The number of blocks of case and tare in each process.
const BLOCKS: u32 = 30;

/// The bench programs started so far, by subject and commit. They are kept because the number of iterations in a batch
/// is determined only once for each case.
pub struct Benches {
    open: HashMap<(usize, String), Suite>,
    /// For each subject, the settings of its cases that are the same at every version.
    known_iterations: HashMap<usize, KnownIterations>,
    work: PathBuf,
    instructions: bool,
    interrupted: Arc<AtomicBool>,
    time_limit: Option<Duration>,
}

/// One visit to the bench program of a version.
pub struct Visit<'a> {
    /// The index of the subject.
    pub subject: usize,
    /// The template of the subject.
    pub template: &'a SubjectTemplate,
    /// The commit of the version.
    pub commit: &'a str,
    /// The build settings of the version.
    pub settings: &'a BuildSettings,
    /// The folder of the version's artefacts.
    pub folder: &'a Path,
    /// The environment of the processes of the counting pass.
    pub environment: &'a [(OsString, OsString)],
    /// The run of the history.
    pub run: &'a Run,
    /// The pass, which says which figures are read.
    pub pass: Pass,
    /// The number of the block.
    pub block: u32,
}

impl Benches {
    /// Creates the value without any bench program. The allocation counter writes its files to `work`.
    pub fn new(
        work: PathBuf,
        instructions: bool,
        interrupted: Arc<AtomicBool>,
        time_limit: Option<Duration>,
    ) -> Benches {
        Benches {
            open: HashMap::new(),
            known_iterations: HashMap::new(),
            work,
            instructions,
            interrupted,
            time_limit,
        }
    }

    /// Times all cases in one fresh process, or counts each case in a process of its own.
    pub fn visit(&mut self, visit: &Visit<'_>) -> Result<Vec<OfCase>, Stop> {
        let key = (visit.subject, visit.commit.to_owned());
        let mut suite = match self.open.remove(&key) {
            Some(suite) => suite,
            None => self.begin(visit).map_err(Stop::Failed)?,
        };
        if let Some(known_iterations) = self.known_iterations.get(&visit.subject) {
            suite.known_iterations.clone_from(known_iterations);
        }
        let cases = match visit.pass {
            Pass::Timing => time_once(&mut suite, visit.run.seed.wrapping_add(u64::from(visit.block)))?,
            _ => count_once(&mut suite)?,
        };
        self.known_iterations.insert(visit.subject, suite.known_iterations.clone());
        self.open.insert(key, suite);
        Ok(cases)
    }

    /// Asks the bench program for the list of its cases.
    fn begin(&self, visit: &Visit<'_>) -> Result<Suite, Fault> {
        let template = visit.template;
        let job = template.job(visit.commit, visit.settings, 0, visit.folder, None);
        let job = job.map_err(|why| {
            Fault::usage(format!("‘{}’ cannot be launched among the artefacts: {why}", template.name))
        })?;
        let mut counted = visit.environment.to_vec();
        counted.retain(|(name, _)| !job.env.iter().any(|(own, _)| own == name));
        counted.extend(job.env.iter().cloned());
        let side = BenchSide {
            folder: Some(visit.folder.to_owned()),
            env: job.env,
            counted_env: Some(counted),
            ..BenchSide::new(None, job.program, job.argv)
        };
        let effort = SuiteEffort {
            processes: (1, 1),
            blocks: BLOCKS,
            exact_processes: true,
            exact_blocks: false,
            answer_within: None,
            budget: VISIT,
            case_limit: self.time_limit.unwrap_or(Duration::from_secs(60)),
            passes: Passes::All,
            list_only: false,
            lists_in_first: false,
            counts_decide: false,
        };
        let run = Run {
            id: visit.run.id.clone(),
            started: visit.run.started,
            state: visit.run.state,
            seed: visit.run.seed,
            terms: visit.run.terms.clone(),
            provenance: visit.run.provenance.clone(),
            ..Run::of(Vec::new())
        };
        let interrupted = self.interrupted.clone();
        let mut suite =
            Suite::open(vec![side], run, &CaseSelection::default(), effort, interrupted, &self.work)?;
        if self.instructions {
            suite.count_instructions()?;
        }
        Ok(suite)
    }
}
