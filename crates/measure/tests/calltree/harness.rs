//! Compiles test programs and runs them under the call tree and under valgrind's own tools.

use scruple_code::{FunctionTotals, Profile, Profiles};
use scruple_measure::calltree::{CalltreeSession, ChosenTool, Settings, Tool};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The tool, and a folder for the programs and profiles of one test.
pub struct Workshop {
    /// The address space that a program may have, in KiB. GHC's runtime reserves a terabyte unless there is a limit, and
    /// memcheck keeps account of it slowly.
    pub address_space: Option<u32>,
    folder: TempDir,
    pub tool: Tool,
}

/// The folder in which the tests keep the compiled tool.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("calltree")
}

/// The folder of the tool's sources.
pub fn tool_sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../instruments/calltree")
}

/// Prints why a test is skipped.
pub fn skip(reason: &str) {
    use std::io::Write;
    // Not with `eprintln!`, because the test harness hides its text while a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

impl Workshop {
    /// Creates a workshop; `None`, with a message, if valgrind is not installed.
    pub fn new() -> Option<Workshop> {
        if !std::env::var_os("PATH").is_some_and(|folders| {
            std::env::split_paths(&folders).any(|folder| folder.join("valgrind").is_file())
        }) {
            skip("valgrind is not installed");
            return None;
        }
        let tool = Tool::prepare(&cache()).unwrap_or_else(|why| panic!("{why}"));
        Some(Workshop { address_space: None, folder: tempfile::tempdir().unwrap(), tool })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles a program of `tests/calltree/programs`.
    pub fn compile(&self, name: &str, flags: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calltree/programs").join(name);
        let output = self.path().join(source.file_stem().unwrap());
        let compiler = if name.ends_with(".cc") { "c++" } else { "cc" };
        let mut command = Command::new(compiler);
        command.args(["-O1", "-fno-builtin", "-fno-inline"]).args(flags);
        let status = command.arg(&source).arg("-o").arg(&output).status();
        assert!(status.unwrap().success(), "{command:?}");
        output
    }

    /// Compiles a program in Go, of this file or of the test programs, that needs Go 1.`since`; `None` if there is none.
    pub fn compile_go(&self, source: &Path, since: u32, flags: &[&str]) -> Option<PathBuf> {
        let version = Command::new("go").args(["env", "GOVERSION"]).output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let minor = |text: String| text.trim().strip_prefix("go1.")?.split('.').next()?.parse::<u32>().ok();
        if version.ok().and_then(minor).is_none_or(|minor| minor < since) {
            skip(&format!("Go 1.{since} or later is not installed"));
            return None;
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calltree/programs").join(source);
        let program = self.path().join(source.file_stem().unwrap());
        let mut build = Command::new("go");
        build.arg("build").args(flags).arg("-o").arg(&program).arg(source);
        assert!(build.status().unwrap().success(), "{build:?}");
        Some(program)
    }

    fn command(&self, words: &[OsString]) -> Command {
        let mut command = match self.address_space {
            Some(most) => {
                let mut shell = Command::new("/bin/sh");
                shell.arg("-c").arg(format!("ulimit -v {most}; exec \"$0\" \"$@\"")).args(words);
                shell
            }
            None => {
                let mut program = Command::new(&words[0]);
                program.args(&words[1..]);
                program
            }
        };
        command.env_clear().stdin(Stdio::null()).current_dir(self.path());
        command.env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("HOME", "/nonexistent");
        command
    }

    pub fn session(&self, settings: Settings) -> CalltreeSession {
        CalltreeSession::start(&ChosenTool::of(&self.tool), settings, self.path()).unwrap()
    }

    /// Runs a command in a session.
    pub fn run_in(&self, session: &CalltreeSession, program: &Path, arguments: &[&str]) -> Output {
        let mut words = session.words();
        words.push(program.into());
        words.extend(arguments.iter().map(Into::into));
        self.command(&words).envs(session.environment()).output().unwrap()
    }

    /// Runs a program in a session, with a further option of the tool.
    pub fn run_with(&self, session: &CalltreeSession, option: &str, program: &Path) -> Output {
        let mut words = session.words();
        words.extend([option.into(), program.into()]);
        self.command(&words).envs(session.environment()).output().unwrap()
    }

    /// The profiles of a program, which must succeed.
    pub fn trees(&self, program: &Path, arguments: &[&str]) -> Profiles {
        let session = self.session(Settings::default());
        let output = self.run_in(&session, program, arguments);
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        let counted = session.read().unwrap();
        assert!(counted.profiles.lost.is_empty());
        counted.profiles
    }

    /// The profile of a program that has one process.
    pub fn tree(&self, program: &Path, arguments: &[&str]) -> Profile {
        let mut profiles = self.trees(program, arguments);
        assert_eq!(profiles.processes.len(), 1);
        profiles.processes.remove(0)
    }

    /// Runs one of valgrind's own tools from the tool's folder, so that the program has the same environment.
    pub fn valgrind(&self, options: &[&str], program: &Path, arguments: &[&str]) -> Output {
        let session = self.session(Settings::default());
        let mut words = vec![session.words()[0].clone()];
        words.extend(options.iter().map(Into::into));
        words.push(program.into());
        words.extend(arguments.iter().map(Into::into));
        self.command(&words).envs(session.environment()).output().unwrap()
    }
}

/// The counts of the function with this name.
pub fn of(profile: &Profile, name: &str) -> FunctionTotals {
    let all = profile.functions();
    let found: Vec<&FunctionTotals> = all
        .iter()
        .filter(|(function, _)| function.name.as_deref() == Some(name))
        .map(|(_, sums)| sums)
        .collect();
    assert!(!found.is_empty(), "no function {name}");
    *found[0]
}

/// The contexts of the function with this name: the path of each from `main` on (or from the root if `main` is not on
/// it), and the number of calls.
pub fn paths(profile: &Profile, name: &str) -> Vec<(String, u64)> {
    let mut paths = Vec::new();
    for (at, context) in profile.contexts.iter().enumerate() {
        let names: Vec<&str> = profile
            .path(at)
            .into_iter()
            .map(|function| function.map_or("(signal)", |function| function.name.as_deref().unwrap_or("?")))
            .collect();
        if names.last() == Some(&name) {
            let from = names.iter().position(|name| *name == "main").unwrap_or(0);
            paths.push((names[from..].join(" "), context.calls));
        }
    }
    paths.sort();
    paths
}
