//! Launches a program once, outside of any run.

use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::interruption;
use crate::new_run;
use scruple_core::harmless_text::plain;
use scruple_measure::command::{Commands, Job, WeighError, WeighedLaunch};
use scruple_measure::instrument::Instrument;
use scruple_measure::launcher::Ending;
use scruple_measure::launcher::{LaunchError, Launcher};
use scruple_measure::program::Program;
use scruple_measure::streams::{Input, Output};
use std::path::{Path, PathBuf};

/// Starts the launcher, which must be forked before anything else is done.
pub fn launcher() -> Result<Launcher, Fault> {
    Launcher::start().map_err(|error| Fault::internal(format!("cannot fork the launcher process: {error}")))
}

/// Creates the value that launches programs with these instruments.
pub fn commands(launcher: Launcher, instruments: Vec<Box<dyn Instrument>>) -> Result<Commands, Fault> {
    Ok(Commands::new(launcher, interruption::flag()?, instruments))
}

/// Creates the job of running these words in the working folder, with empty input and discarded output.
pub fn job(words: &[String], time_limit: Option<&str>) -> Result<Job, Fault> {
    let folder = std::env::current_dir().map_err(|error| {
        Fault::usage(format!("cannot determine the working folder: {error}; change to one that exists"))
    })?;
    let time_limit = time_limit.map(values::duration).transpose()?;
    Ok(Job { time_limit, ..job_in(words, &folder)? })
}

/// Creates the job of running these words in a given folder.
pub fn job_in(words: &[String], folder: &Path) -> Result<Job, Fault> {
    let first = words.first().ok_or_else(|| Fault::usage("no command was given"))?;
    let program = Program::find(first.as_ref(), folder)
        .map_err(|error| Fault::usage(format!("cannot run ‘{}’: {error}", words.join(" "))))?;
    Ok(Job {
        name: words.join(" "),
        program,
        argv: words.iter().map(Into::into).collect(),
        env: Vec::new(),
        counted_env: None,
        folder: folder.to_owned(),
        input: Input::Null,
        output: Output::Null,
        time_limit: None,
        fixed_addresses: false,
        shield: None,
    })
}

/// The file of a program before it is launched.
pub struct ProgramFile {
    path: PathBuf,
    digest: Option<String>,
}

impl ProgramFile {
    /// The file that a job launches.
    pub fn of(job: &Job) -> ProgramFile {
        let path = job.program.path.clone();
        ProgramFile { digest: scruple_code::file_digest(&path), path }
    }

    /// Returns an error if the file has changed since: launches are then of two programs, and the code of the first is
    /// gone.
    pub fn require_same(&self) -> Result<(), Fault> {
        if !new_run::has_changed(&self.path, self.digest.as_deref()) {
            return Ok(());
        }
        Err(Fault::program(format!(
            "‘{}’ changed while it was counted, so counts and code may be of two programs: count it again",
            plain(&self.path.display().to_string())
        )))
    }
}

/// Returns the launch if the program started and ended with exit code 0.
pub fn ended_well(job: &Job, weighed: Result<WeighedLaunch, WeighError>) -> Result<WeighedLaunch, Fault> {
    let weighing = ended(job, weighed)?;
    match failure(job, &weighing, "") {
        Some(fault) => Err(fault),
        None => Ok(weighing),
    }
}

/// Returns the launch if the program started and ended by itself.
pub fn ended(job: &Job, weighed: Result<WeighedLaunch, WeighError>) -> Result<WeighedLaunch, Fault> {
    let name = &job.name;
    let weighing = weighed.map_err(|error| {
        let message = format!("cannot run ‘{name}’: {error}");
        match error {
            WeighError::Launch(LaunchError::Launcher(_)) => Fault::internal(message),
            _ => Fault::usage(message),
        }
    })?;
    match weighing.ending {
        Ending::Interrupted => Err(Fault { code: Code::Interrupted, message: "interrupted".to_owned() }),
        Ending::TimedOut => Err(Fault::program(format!("‘{name}’ {}", weighing.ending))),
        Ending::Exited(_) | Ending::Signaled(_) => Ok(weighing),
    }
}

/// Returns the error for a program that ended by itself, but without success. `hint` follows how it ended.
pub fn failure(job: &Job, weighing: &WeighedLaunch, hint: &str) -> Option<Fault> {
    match weighing.ending {
        Ending::Exited(0) | Ending::Interrupted | Ending::TimedOut => None,
        ending => {
            let output = weighing.shown_error_output();
            Some(Fault::program(format!("‘{}’ {ending}{hint}{output}", job.name)))
        }
    }
}
