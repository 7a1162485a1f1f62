//! Tests the messages for missing programs and files.

use crate::harness::Workshop;
use scruple_measure::calltree::{ChosenTool, Tool, Unavailable, ValgrindTool};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Each case runs in a process of its own, because the search path belongs to the process.
fn in_environment(case: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "missing::says_what_it_finds", "--nocapture", "--ignored"]).env("CASE", case);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let message =
        text.lines().find_map(|line| line.split_once("SAID ")).map(|(_, message)| message.to_owned());
    message.unwrap_or_else(|| panic!("{output:?}"))
}

#[test]
#[ignore = "run by the other tests in an environment of its own"]
fn says_what_it_finds() {
    let cache = std::env::var("CASE").unwrap();
    let tool = Tool::prepare(Path::new(&cache)).map(|_| ()).map_err(|why: Unavailable| why.to_string());
    let counter = ChosenTool::find(Path::new(&cache));
    let counter = counter.map(|counter| (counter.kind, counter.describe()));
    println!("SAID {tool:?} {counter:?}");
}

#[test]
fn without_valgrind_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().to_str().unwrap();
    let message = in_environment(empty, &[("PATH", empty)]);
    assert_eq!(message.matches("valgrind is not installed: install the package").count(), 1, "{message}");
    assert!(message.contains("Err(NoValgrind)"), "{message}");
}

#[test]
fn without_a_compiler_callgrind_counts_and_it_says_why() {
    let Some(_) = Workshop::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    // The folder contains only valgrind, and what a script in its place needs.
    for name in ["/usr/bin/valgrind", "/bin/sh"] {
        symlink(name, programs.join(Path::new(name).file_name().unwrap())).unwrap();
    }
    let behind = Path::new("/usr/bin/valgrind.bin");
    if behind.exists() {
        symlink(behind, programs.join("valgrind.bin")).unwrap();
    }
    let cache = folder.path().join("cache");
    let path = programs.to_str().unwrap();
    let message = in_environment(cache.to_str().unwrap(), &[("PATH", path), ("CC", "")]);
    assert!(message.contains("no C compiler was found"), "{message}");
    assert!(message.contains("Ok((Callgrind, ") && message.contains("because no C compiler"), "{message}");
}

#[test]
fn a_compiler_that_fails_is_quoted() {
    let Some(_) = Workshop::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let compiler = folder.path().join("compiler");
    std::fs::write(&compiler, "#!/bin/sh\necho 'x.c:1: error: no luck today' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    let cache = folder.path().join("cache");
    let message = in_environment(cache.to_str().unwrap(), &[("CC", compiler.to_str().unwrap())]);
    assert!(message.contains("could not be compiled") && message.contains("no luck today"), "{message}");
    assert!(message.contains("Ok((Callgrind, "), "{message}");
    assert!(!cache.join("complete").exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let Some(_) = Workshop::new() else { return };
    let message = in_environment("/proc/nowhere", &[]);
    assert!(message.contains("cannot keep the call tree in ‘/proc/nowhere’"), "{message}");
    assert!(message.contains("XDG_CACHE_HOME"), "{message}");
}

#[test]
fn compiled_programs_are_kept() {
    let Some(workshop) = Workshop::new() else { return };
    // The compiled tool is reused: a compiler that fails is not called.
    let cache = crate::harness::cache();
    let message = in_environment(cache.to_str().unwrap(), &[("CC", "/bin/false")]);
    assert!(
        message.contains("Ok(())") && message.contains("Ok((Calltree, "),
        "{message} {:?}",
        workshop.tool
    );
    assert_eq!(ChosenTool::of(&workshop.tool).kind, ValgrindTool::Calltree);
}
