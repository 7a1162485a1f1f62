//! Compiles test programs and runs them under the counter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use scruple_measure::heap::{HeapSession, LiveBytes, Totals};
use tempfile::TempDir;

/// A folder for the programs and data of one test.
pub struct Workshop(TempDir);

/// A finished run, with its output and counts.
pub struct CountedRun {
    pub output: Output,
    pub totals: Totals,
}

impl Workshop {
    pub fn new() -> Workshop {
        Workshop(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles a program of `tests/heap/programs` with the system's C compiler.
    pub fn c(&self, name: &str, flags: &[&str]) -> PathBuf {
        self.compile("cc", name, flags)
    }

    pub fn compile(&self, compiler: &str, name: &str, flags: &[&str]) -> PathBuf {
        self.compile_as(&self.path().join(Path::new(name).file_stem().unwrap()), compiler, name, flags)
    }

    pub fn compile_as(&self, output: &Path, compiler: &str, name: &str, flags: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/heap/programs").join(name);
        let output = output.to_owned();
        let mut command = Command::new(compiler);
        command.args(["-O1", "-fno-builtin"].iter().filter(|_| compiler != "rustc"));
        let status = command.arg(&source).arg("-o").arg(&output).args(flags).status();
        assert!(status.unwrap().success(), "{command:?}");
        output
    }

    /// Runs a command to its end in a session of its own, and checks that the counter writes nothing to the program's
    /// stderr.
    pub fn count(&self, peak: LiveBytes, command: &mut Command) -> CountedRun {
        let session = HeapSession::start(self.path(), peak).unwrap();
        let output = command.envs(session.environment(None)).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("ld.so") && !stderr.contains("scruple"), "{stderr}");
        let totals = session.read().unwrap();
        CountedRun { output, totals }
    }

    /// Like `count`, for a program that must succeed without arguments.
    pub fn count_plain(&self, peak: LiveBytes, program: &Path) -> Totals {
        let counted = self.count(peak, &mut Command::new(program));
        assert!(counted.output.status.success(), "{:?}", counted.output);
        counted.totals
    }
}

/// The allocations, bytes and frees over all processes.
pub fn sums(totals: &Totals) -> (u64, u64, u64) {
    let counts = totals.counts();
    (counts.allocations, counts.bytes, counts.frees)
}

/// The full path of a program; `None`, with a message, if it is not installed.
pub fn found(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    if path.is_none() {
        skip(&format!("{name} is not installed"));
    }
    path
}

/// Prints why a part of a test is skipped.
pub fn skip(reason: &str) {
    use std::io::Write;
    // Not with `eprintln!`, because the test harness hides its text while a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Copies a file that the test will change.
pub fn copy(from: &Path, to: PathBuf) -> PathBuf {
    fs::copy(from, &to).unwrap();
    to
}
