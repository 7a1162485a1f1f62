//! Runs a program with and without the instrument, and keeps everything that the program wrote.

use scruple_core::sample::Reading;
use scruple_measure::heap::HeapInstrument;
use scruple_measure::instrument::Instrument;
use scruple_measure::launcher::Launcher;
use scruple_measure::launcher::{Ending, Launch, LaunchOptions};
use scruple_measure::program::Program;
use scruple_measure::runtimes::Runtimes;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// The reason why a test is skipped.
pub struct Skip(pub String);

/// The result of a test.
pub type Done = Result<(), Skip>;

/// The result of one run.
#[derive(Debug)]
pub struct ScaleRun {
    pub ending: Ending,
    pub stdout: String,
    pub stderr: String,
    pub readings: Vec<Reading>,
}

impl ScaleRun {
    /// How the program ended, and what it wrote to standard output and standard error.
    pub fn written(&self) -> (Ending, &str, &str) {
        (self.ending, &self.stdout, &self.stderr)
    }

    /// The value of a metric, which must be present.
    pub fn value(&self, key: &str) -> f64 {
        match self.reading(key).value {
            Ok(value) => value,
            Err(ref why) => panic!("{key} is absent: {why}\n{self:#?}"),
        }
    }

    /// The reason why a metric is absent, which it must be.
    pub fn absent(&self, key: &str) -> &str {
        self.reading(key).value.as_ref().expect_err("it should be absent")
    }

    pub fn reading(&self, key: &str) -> &Reading {
        self.readings
            .iter()
            .find(|reading| reading.key == key)
            .unwrap_or_else(|| panic!("no reading of {key}"))
    }
}

/// The launcher, the instrument and a folder for programs.
pub struct Scales {
    launcher: Launcher,
    pub instrument: Runtimes,
    /// Whether a launch that traces memory precedes each one, as in a run.
    pub looks_first: bool,
    folder: tempfile::TempDir,
}

impl Scales {
    pub fn new() -> Scales {
        Scales {
            launcher: Launcher::start().expect("a launcher"),
            instrument: Runtimes::new(),
            looks_first: false,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// The path of a file in this run's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into this run's folder.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        path
    }

    /// Writes an executable script into this run's folder.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
        path
    }

    /// Compiles a program, once for each name. `command` runs in this run's folder.
    pub fn compile(&self, name: &str, command: &[&str]) -> Result<PathBuf, Skip> {
        let path = self.path(name);
        if path.exists() {
            return Ok(path);
        }
        installed(command[0])?;
        let run = Command::new(command[0]).args(&command[1..]).current_dir(self.folder.path()).output();
        let run = run.expect("the compiler starts");
        if !run.status.success() {
            return Err(Skip(format!("{command:?} failed: {}", String::from_utf8_lossy(&run.stderr))));
        }
        Ok(path)
    }

    /// Runs a program with the instrument.
    pub fn weigh(&mut self, words: &[&OsStr], env: &[(&str, &str)]) -> ScaleRun {
        self.run(words, env, true)
    }

    /// Runs a program with and without the instrument, and checks that its output and its end do not differ.
    pub fn same(&mut self, words: &[&OsStr], env: &[(&str, &str)]) -> ScaleRun {
        let plain = self.run(words, env, false);
        let weighed = self.run(words, env, true);
        assert_eq!(plain.written(), weighed.written(), "{words:?}: {weighed:#?}");
        weighed
    }

    /// The number of mallocs in a run with the allocation counter: without this instrument, and with it.
    pub fn mallocs(&mut self, words: &[&OsStr]) -> [f64; 2] {
        [false, true].map(|both| {
            let mut heap = HeapInstrument::new(self.folder.path());
            let program = Program::find(words[0], Path::new("/")).expect("the program");
            let null = || File::options().read(true).write(true).open("/dev/null").expect("null").into();
            let mut launch = Launch {
                path: program.path.clone(),
                argv: words.iter().map(OsString::from).collect(),
                env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
                folder: self.folder.path().to_owned(),
                stdio: [null(), null(), null()],
                options: LaunchOptions { fixed_addresses: true, ..LaunchOptions::default() },
            };
            heap.decorate(&mut launch).expect("decorated");
            if both {
                self.instrument.decorate(&mut launch).expect("decorated");
            }
            let outcome = self.launcher.launch(&launch, &AtomicBool::new(false)).expect("it runs");
            if both {
                let _ = self.instrument.read(&outcome);
            }
            let readings = heap.read(&outcome);
            let count = readings.iter().find(|reading| reading.key == "malloc.count").expect("counted");
            count.value.clone().expect("counted")
        })
    }

    fn run(&mut self, words: &[&OsStr], env: &[(&str, &str)], weigh: bool) -> ScaleRun {
        let program = Program::find(words[0], Path::new("/")).expect("the program");
        let (out, err) = (self.path("stdout"), self.path("stderr"));
        let file = |path: &Path| File::create(path).expect("a file").into();
        let mut full: Vec<(OsString, OsString)> = std::env::vars_os()
            .filter(|(name, _)| name != "LD_PRELOAD" && !env.iter().any(|(other, _)| name == *other))
            .collect();
        full.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        let mut launch = Launch {
            path: program.path.clone(),
            argv: words.iter().map(OsString::from).collect(),
            env: full,
            folder: self.folder.path().to_owned(),
            stdio: [File::open("/dev/null").expect("null").into(), file(&out), file(&err)],
            options: LaunchOptions { trace_memory: self.looks_first, ..LaunchOptions::default() },
        };
        if weigh && self.looks_first {
            let outcome = self.launcher.launch(&launch, &AtomicBool::new(false)).expect("it runs");
            launch.stdio = [File::open("/dev/null").expect("null").into(), file(&out), file(&err)];
            launch.options = LaunchOptions { seen: outcome.seen, ..LaunchOptions::default() };
        }
        if weigh {
            let resolved = program.resolved();
            self.instrument.available(&resolved).expect("available");
            self.instrument.decorate(&mut launch).expect("decorated");
        }
        let outcome = self.launcher.launch(&launch, &AtomicBool::new(false)).expect("it runs");
        drop(launch);
        let readings = if weigh { self.instrument.read(&outcome) } else { Vec::new() };
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("read")).into_owned();
        ScaleRun { ending: outcome.ending, stdout: text(&out), stderr: text(&err), readings }
    }
}

/// The program's path, or the reason to skip the test.
pub fn installed(name: &str) -> Result<PathBuf, Skip> {
    match Program::find(OsStr::new(name), Path::new("/")) {
        Ok(program) => Ok(program.path),
        Err(_) => Err(Skip(format!("{name} is not installed"))),
    }
}

/// The path of a program in bench/runtimes.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/runtimes/programs").join(name)
}

/// Converts expressions to words of a command line.
#[macro_export]
macro_rules! words {
    ($($word:expr),+ $(,)?) => { &[$(std::ffi::OsStr::new(&$word)),+] };
}
