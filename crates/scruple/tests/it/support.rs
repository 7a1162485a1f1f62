//! Temporary places in which tests run Scruple, and the answers as text.

pub use crate::free_port::free_port;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The folder of the cache that holds the compiled call-tree tool. All places share it, because compiling the tool
/// takes longer than most tests.
pub const CALL_TREE: &str = "calltree";

/// A temporary folder that serves a test as working folder and home, and holds its cache and store.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("scruple-test-").tempdir().expect("a folder");
        let place = Place { folder };
        let tool = Path::new(env!("CARGO_TARGET_TMPDIR")).join(CALL_TREE);
        for needed in [&tool, &place.work()] {
            std::fs::create_dir_all(needed).expect("a folder");
        }
        std::os::unix::fs::symlink(tool, place.work().join(CALL_TREE)).expect("a link");
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("a file to read")
    }

    /// Creates a file that a process of a test is to write to.
    pub fn create(&self, name: &str) -> std::fs::File {
        std::fs::File::create(self.file(name)).expect("a file")
    }

    /// The folder in which runs of this place make their work folders.
    pub fn work(&self) -> PathBuf {
        self.file("cache/scruple")
    }

    /// A command that runs Scruple in this place, without the environment variables of the user that would change its
    /// output.
    pub fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scruple"));
        command.current_dir(self.path()).args(words).stdin(Stdio::null());
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM", "LD_PRELOAD"] {
            command.env_remove(variable);
        }
        command
            .env("HOME", self.path())
            .env("SCRUPLE_STORE", "store.db")
            .env("XDG_CACHE_HOME", self.file("cache"))
            .env("XDG_DATA_HOME", self.file("data"));
        command
    }

    /// Runs Scruple with these arguments to its end.
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Answer {
        self.finish(&mut self.command(words))
    }

    /// Runs a prepared command to its end.
    pub fn finish(&self, command: &mut Command) -> Answer {
        Answer::of(command.output().expect("scruple runs"), self.path())
    }
}

/// The exit code and the output of Scruple.
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    pub fn of(output: Output, place: &Path) -> Answer {
        let text =
            |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&place.display().to_string(), "[place]");
        Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// The exit code and each stream that is not empty, as text. Spaces at the ends of lines are kept.
    pub fn exchange(&self) -> String {
        let mut text = format!("exit {}\n", self.code);
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !stream.is_empty() {
                text.push_str(&format!("--- {name}\n{stream}"));
            }
        }
        text
    }

    /// Standard output as one line with single spaces, wherever lines were wrapped.
    pub fn unwrapped(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Parses standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("no JSON ({error}): {}", self.exchange()),
        }
    }
}

/// The value at a JSON pointer. Panics if there is none.
pub fn at<'a>(value: &'a serde_json::Value, path: &str) -> &'a serde_json::Value {
    value.pointer(path).unwrap_or_else(|| panic!("nothing at {path} in {value:#}"))
}
