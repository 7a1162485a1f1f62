//! Counts the instructions of a command, with sources of variation removed: by the processor's counter if it can be
//! used, else by the call tree in its cheapest mode.

mod bench;
mod hardware;
mod repeatable;

pub use bench::CountedBench;
pub(crate) use bench::{END, launch};
pub use hardware::{Hardware, HardwareEvent};
pub use repeatable::steady;

use crate::calltree::{CalltreeSession, ChosenTool, CountDetail, LaunchCounts, Settings, ValgrindTool};
use crate::instrument::Instrument;
use crate::launcher::{Launch, LaunchResult};
use crate::program::Program;
use scruple_core::metric::{Quality, metric};
use scruple_core::sample::Reading;
use std::path::{Path, PathBuf};

/// The metric that a Valgrind tool can also count; the others need the processor's counters.
const KEY: &str = "instructions";

/// The metrics that the processor's counters can read.
pub const KEYS: &[&str] = &[KEY, "cycles", "branch.misses", "cache.misses"];

const EVENTS: [(HardwareEvent, &str); 4] = [
    (HardwareEvent::Instructions, KEYS[0]),
    (HardwareEvent::Cycles, KEYS[1]),
    (HardwareEvent::BranchMisses, KEYS[2]),
    (HardwareEvent::CacheMisses, KEYS[3]),
];

/// The instrument that counts the instructions of one launch at a time.
pub struct Instructions {
    /// The process that starts the program; its children inherit the counters.
    launcher: i32,
    folder: PathBuf,
    cache: PathBuf,
    means: Option<CountingMeans>,
    running: RunningCounter,
}

/// The means of counting on this machine.
#[derive(Clone)]
enum CountingMeans {
    Hardware,
    Tool { counter: ChosenTool, no_hardware: String },
}

enum RunningCounter {
    Nothing,
    Hardware(Vec<(Hardware, &'static str)>),
    /// A tool of Valgrind, and the command that it counts.
    Tool(CalltreeSession, String),
}

impl Instructions {
    /// An instrument that keeps profiles in `folder` while a program runs, and the compiled tool in `cache`.
    pub fn new(launcher: i32, folder: &Path, cache: &Path) -> Instructions {
        let (folder, cache) = (folder.to_owned(), cache.to_owned());
        Instructions { launcher, folder, cache, means: None, running: RunningCounter::Nothing }
    }

    /// The means of counting on this machine, in one phrase.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn describe(&mut self) -> Result<String, String> {
        Ok(match self.means()? {
            CountingMeans::Hardware => "the processor’s counter, in user space".to_owned(),
            CountingMeans::Tool { counter, no_hardware } => {
                format!("{}; the processor’s counter cannot be used: {no_hardware}", counter.describe())
            }
        })
    }

    fn means(&mut self) -> Result<CountingMeans, String> {
        if let Some(means) = &self.means {
            return Ok(means.clone());
        }
        let means = match Hardware::available() {
            Ok(()) => CountingMeans::Hardware,
            Err(no_hardware) => match ChosenTool::find(&self.cache) {
                Ok(counter) => CountingMeans::Tool { counter, no_hardware },
                Err(why) => {
                    return Err(format!("the processor’s counter cannot be used ({no_hardware}), and {why}"));
                }
            },
        };
        self.means = Some(means.clone());
        Ok(means)
    }

    /// The readings of the program that has just ended.
    fn readings(&mut self) -> Vec<Reading> {
        match std::mem::replace(&mut self.running, RunningCounter::Nothing) {
            RunningCounter::Nothing => Vec::new(),
            RunningCounter::Hardware(counters) => counters
                .into_iter()
                .filter_map(|(counter, key)| {
                    let metric = metric(key)?;
                    Some(match counter.read() {
                        Ok(value) => {
                            Reading::of(metric, value as f64, self.name()).with_quality(Quality::Near)
                        }
                        Err(why) => Reading::absent(metric, why),
                    })
                })
                .collect(),
            RunningCounter::Tool(session, command) => {
                let counted = session.read().map_err(|error| error.to_string());
                let mut readings =
                    match (counted.and_then(|counted| require_complete(counted, &command)), metric(KEY)) {
                        (Ok(counted), Some(metric)) => {
                            vec![Reading::of(metric, counted.total as f64, counted.by.name())]
                        }
                        (Ok(_), None) => Vec::new(),
                        (Err(why), _) => self.absent(&[KEY], &why),
                    };
                let why = match &self.means {
                    Some(CountingMeans::Tool { no_hardware, .. }) => no_hardware.clone(),
                    _ => String::new(),
                };
                readings.extend(self.absent(&KEYS[1..], &why));
                readings
            }
        }
    }

    fn absent(&self, keys: &[&str], why: &str) -> Vec<Reading> {
        keys.iter().filter_map(|key| metric(key)).map(|metric| Reading::absent(metric, why)).collect()
    }
}

/// A command in one line, as Valgrind's tools write it.
fn command_of(launch: &Launch) -> String {
    let words =
        std::iter::once(launch.path.as_os_str()).chain(launch.argv.iter().skip(1).map(|word| &**word));
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The counted instructions, if they are all that the command executed.
///
/// # Errors
/// Says what was not counted. Only the call tree counts what a process did before it executed another program.
fn require_complete(counted: LaunchCounts, command: &str) -> Result<LaunchCounts, String> {
    let by = counted.by.name();
    let number = counted.profiles.processes.len();
    match counted.by {
        ValgrindTool::Calltree => {}
        _ if number > 1 => {
            return Err(format!("{number} processes ran: only the call tree counts all of each, not {by}"));
        }
        _ if is_replaced(&counted, command) => {
            return Err(format!(
                "the program executed another: only the call tree counts what it did before, not {by}"
            ));
        }
        _ => {}
    }
    match counted.profiles.lost.is_empty() {
        true => Ok(counted),
        false => Err("a process was killed, and its counts are lost".to_owned()),
    }
}

/// Whether no process still ran the command when it ended: the first one had executed another program in place of it.
fn is_replaced(counted: &LaunchCounts, command: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    // Callgrind escapes line ends and backslashes; cachegrind does not, and what follows a line end is not read.
    let escaped = words(&command.replace('\\', "\\\\").replace('\n', "\\n"));
    let plain = words(command.lines().next().unwrap_or_default());
    counted.profiles.processes.iter().all(|process| process.words != escaped && process.words != plain)
}

impl Instrument for Instructions {
    fn name(&self) -> &'static str {
        match self.means {
            Some(CountingMeans::Hardware) => "perf_event_open",
            _ => "valgrind",
        }
    }

    fn available(&self, program: &Program) -> Result<(), String> {
        match self.means {
            Some(CountingMeans::Tool { .. }) => program.can_run_under_valgrind(),
            _ => program.can_be_counted(),
        }
    }

    fn metrics(&self) -> &'static [&'static str] {
        KEYS
    }

    fn decorate(&mut self, launch: &mut Launch) -> Result<(), String> {
        let means = self.means()?;
        steady(launch);
        self.running = match means {
            CountingMeans::Hardware => RunningCounter::Hardware(
                EVENTS
                    .iter()
                    .map(|(event, key)| {
                        Hardware::attach(*event, self.launcher).map(|counter| (counter, *key))
                    })
                    .collect::<Result<_, String>>()?,
            ),
            CountingMeans::Tool { counter, .. } => {
                let settings = Settings { counts: CountDetail::Total, steady: true, ..Settings::default() };
                let session = CalltreeSession::start(&counter, settings, &self.folder);
                let session = session.map_err(|error| error.to_string())?;
                let command = command_of(launch);
                session.decorate(launch);
                RunningCounter::Tool(session, command)
            }
        };
        Ok(())
    }

    fn read(&mut self, _outcome: &LaunchResult) -> Vec<Reading> {
        self.readings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::LaunchOptions;
    use std::fs::File;
    use std::process::Command;

    /// The answer of the instrument for a command line that callgrind has to count; `None` without Valgrind.
    fn counted(words: &[&str]) -> Option<Result<f64, String>> {
        let folder = tempfile::tempdir().expect("a folder");
        let counter = ChosenTool::callgrind()?;
        let mut instrument = Instructions::new(0, folder.path(), folder.path());
        instrument.means = Some(CountingMeans::Tool { counter, no_hardware: "it is not wanted".to_owned() });
        let nowhere = || File::options().read(true).write(true).open("/dev/null").expect("it opens").into();
        let mut launch = Launch {
            path: words[0].into(),
            argv: words.iter().map(Into::into).collect(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            folder: "/".into(),
            stdio: [nowhere(), nowhere(), nowhere()],
            options: LaunchOptions::default(),
        };
        instrument.decorate(&mut launch).expect("a launch");
        let mut command = Command::new(&launch.path);
        let env = launch.env.iter().map(|(name, value)| (name, value));
        command.args(&launch.argv[1..]).env_clear().envs(env).current_dir("/");
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let reading = instrument.readings().into_iter().find(|reading| reading.key == KEY);
        Some(reading.expect("a reading").value)
    }

    #[test]
    fn instructions_before_an_exec_are_not_omitted_without_a_reason() {
        let Some(alone) = counted(&["/bin/sh", "-c", ": two  words\n"]) else { return };
        assert!(alone.expect("a count") > 10_000.0);
        let replaced = counted(&["/bin/sh", "-c", "exec /bin/true"]).expect("valgrind is there");
        let why = replaced.expect_err("the shell's own instructions are not known");
        assert!(why.contains("the program executed another: only the call tree counts"), "{why}");
        let two = counted(&["/bin/sh", "-c", "/bin/true; :"]).expect("valgrind is there");
        assert!(two.expect_err("two processes").contains("2 processes ran"));
    }
}
