//! Counts the instructions of a bench program from its start to its end.

use super::{Instructions, KEY, RunningCounter};
use crate::bench::{BenchError, BenchProgram, BenchStart};
use crate::instrument::Instrument;
use crate::launcher::{Ending, Launch, LaunchOptions};
use crate::own_environment::inherited;
use crate::program::Program;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// How long a program may take to end after it was asked to. A tool may be writing its counts during that time.
pub(crate) const END: Duration = Duration::from_secs(60);

/// A running bench program and its counter.
pub struct CountedBench {
    /// The program.
    pub program: BenchProgram,
    counting: RunningCounter,
}

impl Instructions {
    /// Starts a bench program with its instructions counted.
    ///
    /// # Errors
    /// Fails if the program cannot be started, or no means can count it.
    pub fn start_bench(&mut self, start: &BenchStart<'_>) -> Result<CountedBench, BenchError> {
        self.available(&Program { path: start.path.to_owned() }).map_err(BenchError::NotCounted)?;
        let mut launch = launch(start)?;
        self.decorate(&mut launch).map_err(BenchError::NotCounted)?;
        let counting = std::mem::replace(&mut self.running, RunningCounter::Nothing);
        let start = BenchStart {
            path: &launch.path,
            argv: &launch.argv,
            env: &launch.env,
            whole_env: true,
            padding: 0,
            ..start.clone()
        };
        Ok(CountedBench { program: BenchProgram::start(&start)?, counting })
    }

    /// Ends the program and returns the number of instructions of the process and its children.
    ///
    /// # Errors
    /// Fails if the program does not end well, or its counts are lost.
    pub fn end_bench(&mut self, bench: CountedBench) -> Result<u64, BenchError> {
        let lost = |why: String| BenchError::NotCounted(why);
        match bench.program.finish_within(END) {
            Some(status) if status.success() => {}
            Some(status) => {
                return Err(lost(format!("the program {} while it was counted", Ending::from(status))));
            }
            None => return Err(lost("the program does not end when it is told to".to_owned())),
        }
        self.running = bench.counting;
        let readings = self.readings();
        let reading = readings.into_iter().find(|reading| reading.key == KEY);
        let value = reading.map_or(Err("nothing was counted".to_owned()), |reading| reading.value);
        value.map(|value| value as u64).map_err(lost)
    }
}

/// Converts the start of a bench program to a launch, with the whole environment.
pub(crate) fn launch(start: &BenchStart<'_>) -> Result<Launch, BenchError> {
    let nowhere = || File::options().read(true).write(true).open("/dev/null").map(Into::into);
    let mut env: Vec<(OsString, OsString)> = if start.whole_env { Vec::new() } else { inherited().collect() };
    for (name, value) in start.env {
        env.retain(|(other, _)| other != name);
        env.push((name.clone(), value.clone()));
    }
    let folder = match start.folder {
        Some(folder) => folder.to_owned(),
        None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    };
    Ok(Launch {
        path: start.path.to_owned(),
        argv: start.argv.to_vec(),
        env,
        folder,
        stdio: [nowhere()?, nowhere()?, nowhere()?],
        options: LaunchOptions::default(),
    })
}
