//! Runs the programs that prepare a version: git, build steps, checks. They run below a launcher, which ends them and
//! their descendants at their time limit, when the user interrupts, and when Scruple is killed.

use crate::fault::Fault;
use crate::git::MISLEADING;
use scruple_measure::launcher::{Ending, Launch, LaunchError, LaunchOptions, Launcher};
use scruple_measure::own_environment::inherited;
use scruple_measure::program::Program;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The launcher of build processes, with the flag that the user's interruption sets.
pub struct BuildLauncher {
    launcher: Launcher,
    interrupted: Arc<AtomicBool>,
}

/// The description of a program to run.
pub struct BuildProgram<'a> {
    /// The name of the program and its arguments.
    pub words: &'a [&'a str],
    /// The working folder of the program.
    pub folder: &'a Path,
    /// Variables added to Scruple's own environment.
    pub env: &'a [(String, String)],
    /// The log file to which the output of the program is appended.
    pub log: &'a Path,
    /// The time limit of the program.
    pub limit: Option<Duration>,
}

/// How a program ended, and how long it ran.
#[derive(Clone, Copy, Debug)]
pub struct BuildProgramResult {
    /// How the program ended.
    pub ending: Ending,
    /// The elapsed time of the program.
    pub wall: Duration,
}

impl BuildProgramResult {
    /// Whether the program ended with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Exited(0)
    }

    /// Describes how the program ended, as the end of a sentence.
    pub fn ending_text(&self) -> String {
        match self.ending {
            Ending::Exited(127) => "did not find a program (exit code 127)".to_owned(),
            ending => ending.to_string(),
        }
    }
}

impl BuildLauncher {
    /// Uses this launcher until the flag is set.
    pub fn new(launcher: Launcher, interrupted: Arc<AtomicBool>) -> BuildLauncher {
        BuildLauncher { launcher, interrupted }
    }

    /// Returns the process id of the launcher.
    pub fn pid(&self) -> i32 {
        self.launcher.pid()
    }

    /// Returns an error if the user has interrupted.
    pub fn check(&self) -> Result<(), Fault> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Fault::interrupted()),
            false => Ok(()),
        }
    }

    /// Runs a program and waits until it ends.
    pub fn run(&mut self, child: &BuildProgram<'_>) -> Result<BuildProgramResult, Fault> {
        self.check()?;
        let path = match Program::find(child.words[0].as_ref(), child.folder) {
            Ok(program) => program.path,
            Err(_) => PathBuf::from(child.words[0]),
        };
        let unwritable = |error| Fault::unwritable(child.log, error);
        let out = OpenOptions::new().create(true).append(true).open(child.log).map_err(unwritable)?;
        let err = out.try_clone().map_err(unwritable)?;
        let null = File::open("/dev/null").map_err(unwritable)?;
        let launch = Launch {
            path,
            argv: child.words.iter().map(OsString::from).collect(),
            env: environment(child.env),
            folder: child.folder.to_owned(),
            stdio: [null.into(), out.into(), err.into()],
            options: LaunchOptions { time_limit: child.limit, ..LaunchOptions::default() },
        };
        let outcome = match self.launcher.launch(&launch, &self.interrupted) {
            Ok(outcome) => outcome,
            Err(LaunchError::Launcher(error)) => {
                return Err(Fault::internal(format!("the launcher process failed: {error}")));
            }
            // A program that cannot be started counts as a failing step, as in a shell.
            Err(error) => {
                append_to_log(child.log, &format!("{error}\n"))?;
                return Ok(BuildProgramResult { ending: Ending::Exited(127), wall: Duration::ZERO });
            }
        };
        match outcome.ending {
            Ending::Interrupted => Err(Fault::interrupted()),
            _ if self.interrupted.load(Ordering::Relaxed) => Err(Fault::interrupted()),
            ending => Ok(BuildProgramResult { ending, wall: Duration::from_nanos(outcome.wall) }),
        }
    }
}

/// Variables that redirect build output into a shared folder outside of the tree: a build system that identifies
/// programs by their names would then return the program of another version.
pub const SHARED: [&str; 3] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"];

/// Returns Scruple's own environment, without the variables that would mislead git or share build output, and with the
/// given variables added.
fn environment(more: &[(String, String)]) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = inherited()
        .filter(|(name, _)| MISLEADING.iter().chain(&SHARED).all(|other| name != other))
        .filter(|(name, _)| more.iter().all(|(other, _)| name.as_os_str() != other.as_str()))
        .collect();
    env.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
    env.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
    env
}

/// Returns the error message of a git that began to write to a log when the log had this many bytes.
pub fn message_of_git(log: &Path, began: u64) -> Option<String> {
    let bytes = std::fs::read(log).ok()?;
    let text = String::from_utf8_lossy(bytes.get(usize::try_from(began).ok()?..)?);
    let mut messages = text.lines().filter_map(|line| line.split_once("fatal: "));
    messages
        .find_map(|(_, message)| Some(message.trim()).filter(|message| !message.is_empty()))
        .map(str::to_owned)
}

/// Appends a text to a log.
pub fn append_to_log(log: &Path, text: &str) -> Result<(), Fault> {
    let file = OpenOptions::new().create(true).append(true).open(log);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| Fault::unwritable(log, error))
}
