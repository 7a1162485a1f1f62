//! Programs whose costs are known by construction, and functions for the processes of a test.

use crate::support::{CALL_TREE, Place};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A C program that makes as many steps as its first argument says, and then writes to as many bytes as its second one
/// says. Its work never depends on the clock.
pub const BURN: &str = r#"
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    volatile unsigned long sink = 0;
    unsigned long steps = argc > 1 ? strtoul(argv[1], 0, 10) : 0;
    for (unsigned long i = 0; i < steps; i++) sink += i;
    unsigned long bytes = argc > 2 ? strtoul(argv[2], 0, 10) : 0;
    char *volatile kept = bytes ? malloc(bytes) : 0;
    if (kept) memset(kept, 1, bytes);
    return kept && kept[bytes / 2] != 1;
}
"#;

/// A C program that exits at once, without a C library.
pub const NOTHING: &str = r#"
void _start(void) {
#if defined(__x86_64__)
    __asm__ volatile("mov $60, %eax\n xor %edi, %edi\n syscall");
#elif defined(__aarch64__)
    __asm__ volatile("mov x8, #93\n mov x0, #0\n svc #0");
#endif
    for (;;) {}
}
"#;

impl Place {
    /// Compiles a C program into this place.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let path = self.file(name);
        let text = self.write(&format!("{name}.c"), source);
        let output = Command::new("cc")
            .args(["-O1", "-o"])
            .args([&path, &text])
            .args(flags)
            .output()
            .expect("a C compiler named cc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        path
    }

    /// Compiles Java's files into this place. Prints that the test is skipped, and returns false, if there is no compiler.
    pub fn compile_java(&self, sources: &[PathBuf]) -> bool {
        let mut javac = Command::new("javac");
        // The virtual machine takes twice the time if it also optimises the compiler.
        javac.arg("-J-XX:TieredStopAtLevel=1").arg("-cp").arg(self.path()).arg("-d").arg(self.path());
        let Ok(output) = javac.args(sources).output() else {
            skip("javac is not installed");
            return false;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        true
    }

    /// Writes an executable shell script into this place.
    pub fn shell_script(&self, name: &str, text: &str) -> PathBuf {
        self.executable(name, &format!("#!/bin/sh\n{text}\n"))
    }

    /// Writes an executable file into this place.
    pub fn executable(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        path
    }

    /// The living processes of this place, which are those whose environment names it as HOME.
    pub fn processes(&self) -> Vec<String> {
        let sign = format!("HOME={}\0", self.path().display());
        let ours = |folder: &Path| {
            let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
            environment.windows(sign.len()).any(|part| part == sign.as_bytes())
        };
        let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()))
            .filter(|entry| ours(&entry.path()))
            .map(|entry| {
                let words = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
                format!("{} {}", entry.file_name().to_string_lossy(), words.replace('\0', " "))
            })
            .collect()
    }

    /// Checks that every process of this place ends. The long time limit of [`eventually`] only matters for a failing
    /// test.
    pub fn assert_no_processes(&self) {
        if !eventually(|| self.processes().is_empty()) {
            panic!("still there: {:?}", self.processes());
        }
    }

    /// What runs have left in the folder in which they work. Killed runs leave their work folders until the next run.
    pub fn left_by_runs(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir(self.work()).expect("a folder").flatten().map(|entry| entry.path());
        all.filter(|path| !path.ends_with(CALL_TREE)).collect()
    }

    /// Checks that no run has left a work folder.
    pub fn assert_no_work_folder(&self) {
        let left = self.left_by_runs();
        assert!(left.is_empty(), "{left:?}");
    }

    /// The length of a file in bytes, or 0 if it does not exist.
    pub fn length(&self, name: &str) -> u64 {
        self.file(name).metadata().map_or(0, |data| data.len())
    }
}

/// Polls `so` until it returns true. Returns false after ten minutes.
pub fn eventually(mut so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !so() {
        if began.elapsed() > Duration::from_secs(600) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Sends a signal by its name, such as `INT`.
pub fn send(child: &Child, signal: &str) {
    let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// Python’s interpreter itself: a shim of a version manager would run a shell as well.
pub fn python() -> Option<&'static str> {
    ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|path| Path::new(path).exists())
}

/// What Go's pprof prints when it is given these words, or `None` if Go is not installed. Since Go 1.25 the first use compiles
/// pprof, so tests that run at the same time wait for one of them to do it.
pub fn pprof(place: &Place, words: &[&str]) -> Option<String> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let found = Command::new("go").args(["tool", "-n", "pprof"]).output().ok()?;
        Some(PathBuf::from(String::from_utf8_lossy(&found.stdout).trim()))
    });
    let Some(program) = program else {
        skip("go is not installed");
        return None;
    };
    let output = Command::new(program).args(words).current_dir(place.path()).output().expect("pprof");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Prints why a test is skipped.
pub fn skip(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// What was started, or `None` after printing that the test is skipped and why.
pub fn or_skip<T>(started: Result<T, String>) -> Option<T> {
    started.inspect_err(|why| skip(why)).ok()
}

/// Whether valgrind is installed. Prints that the test is skipped if not.
pub fn has_valgrind() -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&folders).any(|folder| folder.join("valgrind").is_file());
    if !is_there {
        skip("valgrind is not installed");
    }
    is_there
}

/// Whether GHC can build programs for profiling. Prints that the test is skipped if not.
pub fn has_ghc_profiling(place: &Place) -> bool {
    place.write("Empty.hs", "module Main where\nmain :: IO ()\nmain = pure ()\n");
    let words = ["-v0", "-prof", "Empty.hs", "-o", "empty"];
    let built = Command::new("ghc").args(words).current_dir(place.path()).output();
    let can = built.is_ok_and(|output| output.status.success());
    if !can {
        skip("ghc or its libraries for profiling (Debian's package ghc-prof) are not installed");
    }
    can
}
