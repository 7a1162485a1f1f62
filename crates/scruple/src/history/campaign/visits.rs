//! Performs one visit, a launch of a command of one version or a process of its bench program, and handles its
//! failures.

use super::builds::Builds;
use super::instruments::Instruments;
use super::journal::Journal;
use super::scope::Scope;
use crate::bench::suite::single_process::OfCase;
use crate::fault::{Fault, Stop};
use crate::history::benches;
use crate::versions::build_process::append_to_log;
use crate::versions::subjects::SubjectTemplate;
use scruple_core::history::VersionState;
use scruple_core::metric::{Pass, metric};
use scruple_core::sample::{BLOCKS_OF_A_VISIT, Reading};
use scruple_core::subject::{Arm, tells_skip};
use scruple_measure::command::{Job, WeighError, WeighedLaunch};
use scruple_measure::launcher::{Ending, LaunchError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Launches of the programs of a history.
pub(super) struct Visits<'a> {
    pub(super) journal: &'a mut Journal,
    pub(super) builds: &'a Builds,
    pub(super) instruments: &'a mut Instruments,
    pub(super) scope: &'a Scope,
    pub(super) interrupted: &'a AtomicBool,
}

impl Visits<'_> {
    /// Launches one command of one version once and keeps the readings. Returns `None` if the version cannot be
    /// weighed, and records the reason as its state.
    pub(super) fn visit(
        &mut self,
        index: usize,
        (subject, launch): (usize, usize),
        pass: Pass,
        block: u32,
        padding: usize,
    ) -> Result<Option<Duration>, Fault> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Fault::interrupted());
        }
        let entry = &self.journal.history.entries[index];
        let (commit, short) = (entry.version.commit.clone(), entry.version.short().to_owned());
        if self.scope.subjects[subject].bench {
            return self.visit_bench(index, subject, pass, block);
        }
        let Some(arm) = self.journal.arms.launched(subject, &commit).get(launch).copied() else {
            return Ok(None);
        };
        let folder = self.builds.folder(entry);
        let settings = self.builds.builder.settings(&commit);
        let template = &self.scope.subjects[subject];
        let job = match template.job(&short, &settings, launch, &folder, self.instruments.time_limit) {
            Ok(job) => Job { counted_env: Some(self.instruments.environment.clone()), ..job },
            Err(why) => {
                let why = format!("‘{}’ cannot be launched among the artefacts: {why}", template.name);
                return self.reject(index, VersionState::RunFailed, why, "").map(|()| None);
            }
        };
        // The block number decides which instrument is attached. It starts again at each visit, so that the sequence of
        // instruments does as well.
        let within = if pass == Pass::Timing { block } else { block % BLOCKS_OF_A_VISIT };
        let weighing = match self.instruments.weigher.weigh(&job, pass, within, padding) {
            Ok(weighing) => weighing,
            Err(WeighError::Launch(LaunchError::Launcher(error))) => {
                return Err(Fault::internal(format!("the launcher process failed: {error}")));
            }
            Err(error @ WeighError::Script(_)) => return Err(Fault::usage(error)),
            Err(error) => {
                return self.reject(index, VersionState::RunFailed, error.to_string(), "").map(|()| None);
            }
        };
        if let Some((state, why)) = self.objection(index, (subject, launch), pass, &job, &weighing)? {
            return self.reject(index, state, why, &weighing.error_output).map(|()| None);
        }
        if weighing.left_behind > 0 {
            let text =
                format!("‘{}’ left processes behind, which Scruple ended", self.scope.subjects[subject].name);
            self.journal.history.run.warn("left-behind", text);
        }
        self.journal.keep(arm, pass, block, weighing.readings)?;
        Ok(Some(weighing.wall))
    }

    /// Times or counts the cases of a bench program. Each case has its own arm.
    fn visit_bench(
        &mut self,
        index: usize,
        subject: usize,
        pass: Pass,
        block: u32,
    ) -> Result<Option<Duration>, Fault> {
        let entry = &self.journal.history.entries[index];
        let commit = entry.version.commit.clone();
        let [_, processes] = *self.journal.arms.launched(subject, &commit) else { return Ok(None) };
        if self.journal.history.run.arms[processes].absent("time.wall").is_some() {
            return Ok(None);
        }
        let began = Instant::now();
        let result = self.instruments.benches.visit(&benches::Visit {
            subject,
            template: &self.scope.subjects[subject],
            commit: &commit,
            settings: &self.builds.builder.settings(&commit),
            folder: &self.builds.folder(entry),
            environment: &self.instruments.environment,
            run: &self.journal.history.run,
            pass,
            block,
        });
        let wall = began.elapsed();
        let cases = match result {
            _ if self.interrupted.load(Ordering::Relaxed) => return Err(Fault::interrupted()),
            Err(Stop::Interrupted) => return Err(Fault::interrupted()),
            Err(Stop::Failed(fault)) => return self.without_cases(index, subject, fault.message),
            Ok(cases) => cases,
        };
        let ended = cases.iter().filter_map(|case| Some((&case.arm.name, case.failed.as_ref()?)));
        let (skipped, failed): (Vec<_>, Vec<_>) = ended.partition(|(_, why)| tells_skip(why));
        // A version at which every case is skipped has not failed.
        if let Some((name, why)) = failed.first()
            && skipped.len() + failed.len() == cases.len()
        {
            let skips = if skipped.is_empty() { "" } else { " or was skipped" };
            let program = &self.scope.subjects[subject].name;
            let why = format!("every case of ‘{program}’ failed{skips}, such as ‘{name}’: {why}");
            return self.without_cases(index, subject, why);
        }
        for case in cases {
            self.keep_case(index, subject, pass, block, case)?;
        }
        if pass == Pass::Timing {
            let elapsed = metric("time.wall").map(|metric| {
                Reading::of(metric, wall.as_nanos() as f64, "monotonic clock, the whole process")
            });
            self.journal.keep(processes, pass, block, elapsed.into_iter().collect())?;
        }
        Ok(Some(wall))
    }

    /// Handles a bench program that does not list its cases. Other subjects of the version may still be weighed.
    fn without_cases(
        &mut self,
        index: usize,
        subject: usize,
        why: String,
    ) -> Result<Option<Duration>, Fault> {
        // A reason is a clause; what the program printed may have several lines.
        let why = why.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        if self.scope.subjects.len() == 1 {
            return self.reject(index, VersionState::RunFailed, why, "").map(|()| None);
        }
        let version = &self.journal.history.entries[index].version;
        let (commit, short) = (version.commit.clone(), version.short().to_owned());
        append_to_log(&self.builds.log(&commit), &format!("{why}\n"))?;
        self.journal.history.run.warn("bench-failed", format!("at {short}, {why}"));
        let absent = metric("time.wall").map(|metric| Reading::absent(metric, why));
        let processes = self.journal.arms.launched(subject, &commit)[1];
        self.journal.keep(processes, Pass::Timing, 0, absent.into_iter().collect())?;
        Ok(None)
    }

    /// Stores what one process read of a case. Creates an arm if the case first appears at this version.
    fn keep_case(
        &mut self,
        index: usize,
        subject: usize,
        pass: Pass,
        block: u32,
        case: OfCase,
    ) -> Result<(), Fault> {
        let commit = self.journal.history.entries[index].version.commit.clone();
        let program = &self.scope.subjects[subject].name;
        // Cases of different programs may have the same name.
        let name = match self.scope.subjects.len() > 1 || case.arm.name == *program {
            true => format!("{program}/{}", case.arm.name),
            false => case.arm.name.clone(),
        };
        let place = match self.journal.case(subject, &commit, &name) {
            Some(place) => place,
            None => {
                let place = self.journal.history.run.arms.len();
                let params = self.journal.history.run.arms[self.journal.arms.launched(subject, &commit)[0]]
                    .params
                    .clone();
                let mut arm = Arm { name, version: Some(commit.clone()), ..case.arm };
                params.into_iter().for_each(|(name, value)| {
                    arm.params.entry(name).or_insert(value);
                });
                self.journal.add_arms(index, vec![(subject, arm)])?;
                place
            }
        };
        // A visit of the counting pass takes several readings.
        let wide = case.readings.keys().next_back().map_or(1, |last| last + 1);
        for (at, readings) in case.readings {
            let figures = &self.journal.history.run.arms[place].figures;
            let known = |reading: &Reading| reading.value.is_err() && figures.contains_key(&reading.key);
            let news: Vec<Reading> = readings.into_iter().filter(|reading| !known(reading)).collect();
            if !news.is_empty() {
                let visit = match pass {
                    Pass::Timing => 0,
                    _ => block / BLOCKS_OF_A_VISIT * BLOCKS_OF_A_VISIT,
                };
                self.journal.keep(place, pass, visit + (block - visit) * wide + at, news)?;
            }
        }
        Ok(())
    }

    /// Returns a state and a reason if this launch shows that the version cannot be weighed.
    fn objection(
        &mut self,
        index: usize,
        (subject, launch): (usize, usize),
        pass: Pass,
        job: &Job,
        weighing: &WeighedLaunch,
    ) -> Result<Option<(VersionState, String)>, Fault> {
        let name = self.scope.subjects[subject].name.clone();
        let within = format!("in the {} pass", pass.word());
        match weighing.ending {
            _ if self.interrupted.load(Ordering::Relaxed) => return Err(Fault::interrupted()),
            Ending::Interrupted => return Err(Fault::interrupted()),
            Ending::Exited(0) => {}
            Ending::TimedOut => {
                let limit = job.time_limit.map_or(0.0, |limit| limit.as_nanos() as f64);
                let limit = scruple_core::unit::quantity(limit, &scruple_core::unit::Unit::Nanoseconds);
                return Ok(Some((
                    VersionState::TimedOut,
                    format!("‘{name}’ took longer than {limit} {within}"),
                )));
            }
            ending @ (Ending::Exited(_) | Ending::Signaled(_)) => {
                return Ok(Some((VersionState::RunFailed, format!("‘{name}’ {ending} {within}"))));
            }
        }
        let Some(captured) = weighing.captured.as_ref().filter(|_| launch == 0) else { return Ok(None) };
        let output = format!("{:016x}:{}", captured.stdout.hash, captured.stdout.length);
        self.journal.history.entries[index].outputs.insert(name.clone(), output.clone());
        let params = |entry: &crate::store::StoredVersion| {
            let settings = self.builds.builder.settings(&entry.version.commit);
            self.scope.subjects[subject].launches(&settings)
        };
        let own = params(&self.journal.history.entries[index]);
        let mut others = self
            .journal
            .history
            .entries
            .iter()
            .take(index)
            .filter(|entry| entry.version.state == VersionState::Built);
        let reference = others.find(|entry| entry.outputs.contains_key(&name) && params(entry) == own);
        Ok(match reference {
            Some(reference) if self.scope.same_output && reference.outputs.get(&name) != Some(&output) => {
                let why = format!("‘{name}’ does not print the same as at {}", reference.version.short());
                Some((VersionState::CheckFailed, why))
            }
            _ => None,
        })
    }

    fn reject(
        &mut self,
        index: usize,
        state: VersionState,
        why: String,
        last_output: &str,
    ) -> Result<(), Fault> {
        let log = self.builds.log(&self.journal.history.entries[index].version.commit);
        self.journal.reject(index, state, why, (&log, last_output))
    }

    /// Returns the launches of one block at a version: the index of each subject with the number of the launch.
    pub(super) fn launches(&self, index: usize) -> Vec<(usize, usize)> {
        let settings = self.builds.builder.settings(&self.journal.history.entries[index].version.commit);
        let of = |(subject, template): (usize, &SubjectTemplate)| {
            (0..template.launches(&settings).len()).map(move |launch| (subject, launch))
        };
        let taken = |subject: &usize| self.scope.part.as_ref().is_none_or(|part| part.contains(subject));
        self.scope.subjects.iter().enumerate().filter(|(subject, _)| taken(subject)).flat_map(of).collect()
    }
}
