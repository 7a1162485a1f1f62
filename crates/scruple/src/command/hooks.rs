//! The shell commands that run before and after launches, and those that run once around all of them.

use crate::fault::{Fault, Stop};
use scruple_code::file_digest;
use scruple_core::harmless_text::plain;
use scruple_measure::launcher::Ending;
use scruple_stats::sorting;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What runs once for an arm: before the first launch of any arm, and after the last one.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The command that the arm launches.
    pub command: String,
    /// The command of `--setup`.
    pub setup: Option<String>,
    /// The command of `--cleanup`.
    pub cleanup: Option<String>,
}

/// Runs the setup of each arm. Arms whose setups have the same text share one, because arms are launched in turns.
/// Returns how many arms are set up, also if the setup of the next one failed.
pub fn set_up(arms: &[Surroundings], interrupted: &AtomicBool) -> (usize, Result<(), Stop>) {
    // One setup for all overwrites nothing, and the files may be large.
    let several = arms.iter().any(|arm| arm.setup != arms[0].setup);
    let mut files = Vec::new();
    for (index, arm) in arms.iter().enumerate() {
        if let Some(setup) = &arm.setup
            && !arms[..index].iter().any(|other| other.setup == arm.setup)
            && let Err(stop) = run("--setup", setup, interrupted)
        {
            return (index, Err(stop));
        }
        files.push(if several { files_of(&arm.command) } else { Vec::new() });
    }
    let overwritten = arms.iter().zip(&files).find_map(|(arm, files)| {
        let changed = files.iter().find(|(path, digest)| file_digest(path) != *digest)?;
        Some((arm, &changed.0))
    });
    let result = overwritten.map_or(Ok(()), |(arm, path)| {
        Err(Stop::Failed(Fault::usage(format!(
            "the --setup of a later command changed ‘{}’, which ‘{}’ uses: every --setup runs before the first launch, so let \
             each write a file of its own; `scruple compare` builds and weighs two revisions",
            plain(&path.display().to_string()),
            plain(&arm.command)
        ))))
    });
    (arms.len(), result)
}

/// Runs the cleanup of each arm that was set up, each text once. Returns the first failure.
pub fn clean_up(arms: &[Surroundings], interrupted: &AtomicBool) -> Result<(), Stop> {
    let mut result = Ok(());
    for cleanup in sorting::each_once(arms.iter().filter_map(|arm| arm.cleanup.as_deref())) {
        result = result.and(run("--cleanup", cleanup, interrupted));
    }
    result
}

/// Returns the files that a command names, with digests of their contents.
fn files_of(command: &str) -> Vec<(PathBuf, Option<String>)> {
    let words = command.split(|c: char| c.is_whitespace() || "|&;<>()'\"=".contains(c));
    let files = words.filter(|word| Path::new(word).is_file());
    files.map(|word| (PathBuf::from(word), file_digest(Path::new(word)))).collect()
}

/// Runs a hook in a shell; `flag` is its option.
pub fn run(flag: &str, command: &str, interrupted: &AtomicBool) -> Result<(), Stop> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
    // An interruption does not end a hook that runs after a launch, because such hooks clean up.
    let give_up = matches!(flag, "--setup" | "--prepare").then_some(interrupted);
    let status = wait_for(&mut shell, give_up).map_err(|error| {
        Stop::Failed(Fault::usage(format!("cannot run the {flag} command ‘{command}’: {error}")))
    })?;
    match status {
        None => Err(Stop::Interrupted),
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Stop::Failed(Fault::program(format!(
            "the {flag} command ‘{command}’ {}: make it end with code 0, or append ‘|| true’",
            Ending::from(status)
        )))),
    }
}

/// Runs a command to its end. If `give_up` becomes true before that, kills the command and returns `None`.
fn wait_for(command: &mut Command, give_up: Option<&AtomicBool>) -> std::io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if give_up.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
