//! What `scruple explain` and `scruple inspect calls` do where the call tree cannot be compiled: callgrind or
//! cachegrind counts, and the report says so.

use crate::explain::{adds_up, build, pair, source};
use crate::programs::{has_valgrind, skip};
use crate::support::{Answer, Place, at};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Runs Scruple where nothing but these programs is on the search path, and the call-tree tool was not compiled yet.
fn with_programs(place: &Place, programs: &[&Path], words: &[&str]) -> Answer {
    let folder = place.file("programs");
    if !folder.exists() {
        fs::create_dir(&folder).expect("a folder");
        for path in programs.iter().filter(|path| path.exists()) {
            symlink(path, folder.join(path.file_name().unwrap_or_default())).expect("a link");
        }
    }
    let mut command = place.command(words);
    place.finish(command.env("PATH", &folder).env("CC", "").env("XDG_CACHE_HOME", place.file("empty-cache")))
}

/// Runs Scruple where nothing but Valgrind and a shell is on the search path.
pub fn without_compiler(place: &Place, words: &[&str]) -> Answer {
    let programs = ["/usr/bin/valgrind", "/usr/bin/valgrind.bin", "/bin/sh"].map(Path::new);
    with_programs(place, &programs, words)
}

pub fn has_fallback() -> bool {
    has_valgrind() && Path::new("/usr/bin/valgrind").exists()
}

/// The first row of instructions, as function, difference and code.
fn first_row(answer: &Answer) -> (String, f64, String) {
    let page = answer.json();
    let row = at(&page, "/explain/counts/0/rows/0");
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    (text("function"), row["difference"].as_f64().unwrap_or_default(), text("code"))
}

const CALL: &str = "all += hash(text, 5);";

#[test]
fn callgrind_counts_where_there_is_no_compiler_and_the_report_says_so() {
    if !has_fallback() {
        return;
    }
    let place = Place::new();
    pair(&place, &source(20, CALL, "hash"), &source(22, CALL, "hash"));
    let answer = without_compiler(&place, &["explain", "--json", "--no-time", "./old", "./new"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let (function, difference, code) = first_row(&answer);
    assert_eq!((function.as_str(), code.as_str()), ("hash", "changed"), "{}", answer.exchange());
    assert!(difference > 2000.0 * 2.0 * 5.0, "{}", answer.exchange());
    let page = answer.json();
    let by = at(&page, "/explain/counted_by").to_string();
    assert!(by.contains("callgrind (valgrind ") && by.contains("because no C compiler was found"), "{by}");
    let remarks = at(&page, "/explain/remarks").to_string();
    assert!(remarks.contains("callgrind knows no allocations"), "{remarks}");
    let calls = without_compiler(&place, &["inspect", "calls", "--", "./old"]);
    assert_eq!(calls.code, 0, "{}", calls.exchange());
    let line = calls.stdout.lines().find(|line| line.contains("hash")).unwrap_or_default();
    assert!(line.contains("2,000"), "{}", calls.exchange());
    assert!(calls.stdout.contains("Counted by callgrind"), "{}", calls.exchange());
    let kept = without_compiler(&place, &["inspect", "calls", "--export", "x.calls", "--", "./old"]);
    assert_eq!(kept.code, 2, "{}", kept.exchange());
}

#[test]
fn callgrind_tells_the_caller_that_calls_more_often() {
    if !has_fallback() {
        return;
    }
    let place = Place::new();
    let more = format!("{CALL} {CALL} {CALL}");
    pair(&place, &source(20, CALL, "hash"), &source(20, &more, "hash"));
    let answer = without_compiler(&place, &["explain", "--json", "--no-time", "./old", "./new"]);
    let (function, _, code) = first_row(&answer);
    assert_eq!((function.as_str(), code.as_str()), ("parse", "changed"), "{}", answer.exchange());
    adds_up(&answer);
}

#[test]
fn callgrind_counts_the_programs_that_a_shell_starts_and_refuses_forked_children() {
    if !has_fallback() {
        return;
    }
    let place = Place::new();
    pair(&place, &source(20, CALL, "hash"), &source(22, CALL, "hash"));
    for (folder, program) in [("a", "old"), ("b", "new")] {
        fs::create_dir(place.file(folder)).expect("a folder");
        fs::rename(place.file(program), place.file(folder).join("app")).expect("moved");
    }
    let words = ["explain", "--json", "--no-time", "/bin/sh -c 'a/app; :'", "/bin/sh -c 'b/app; :'"];
    let answer = without_compiler(&place, &words);
    assert_eq!(first_row(&answer).0, "hash", "{}", answer.exchange());
    let forks =
        "#include <sys/wait.h>\n#include <unistd.h>\nint main(void) { if (fork()) wait(0); return 0; }\n";
    build(&place, "forks", forks);
    let forks = without_compiler(&place, &["explain", "--no-time", "./forks", "./forks"]);
    assert_eq!(forks.code, 3, "{}", forks.exchange());
    assert!(forks.stderr.contains("where ‘./forks’ spends its instructions: several processes of ‘"));
}

#[test]
fn cachegrind_counts_functions_where_callgrind_is_missing_too() {
    let tools = Path::new("/usr/libexec/valgrind");
    let launcher = [Path::new("/usr/bin/valgrind.bin"), Path::new("/usr/bin/valgrind")];
    let Some(launcher) = launcher.into_iter().find(|path| path.exists()).filter(|_| has_valgrind()) else {
        return;
    };
    if !tools.is_dir() {
        skip(&format!("valgrind’s tools are not in {}", tools.display()));
        return;
    }
    let place = Place::new();
    pair(&place, &source(20, CALL, "hash"), &source(22, CALL, "hash"));
    let [bin, libexec] = ["own/bin", "own/libexec/valgrind"].map(|folder| place.file(folder));
    [&bin, &libexec].into_iter().for_each(|folder| fs::create_dir_all(folder).expect("a folder"));
    for entry in fs::read_dir(tools).expect("tools").flatten() {
        if !entry.file_name().to_string_lossy().starts_with("callgrind") {
            symlink(entry.path(), libexec.join(entry.file_name())).expect("a link");
        }
    }
    fs::copy(launcher, bin.join("valgrind")).expect("a copy");
    let valgrind = bin.join("valgrind");
    let programs = [valgrind.as_path(), Path::new("/bin/sh")];
    let answer = with_programs(&place, &programs, &["explain", "--json", "--no-time", "./old", "./new"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let (function, _, code) = first_row(&answer);
    assert_eq!((function.as_str(), code.as_str()), ("hash", "?"), "{}", answer.exchange());
    let page = answer.json();
    let by = at(&page, "/explain/counted_by").to_string();
    assert!(by.contains("cachegrind (valgrind ") && by.contains("callgrind is not installed"), "{by}");
    let sentences = at(&page, "/explain/sentences").to_string();
    assert!(sentences.contains("It shows first in hash"), "{sentences}");
}

#[test]
fn without_valgrind_the_error_says_what_to_install() {
    let place = Place::new();
    let none = place.finish(place.command(["explain", "/bin/true", "/bin/false"]).env("PATH", place.path()));
    assert_eq!(none.code, 2, "{}", none.exchange());
    assert!(none.stderr.contains("install the package ‘valgrind’"), "{}", none.exchange());
}

#[test]
fn a_valgrind_that_does_not_start_is_an_error_with_what_it_wrote() {
    let place = Place::new();
    let valgrind = place.file("programs/valgrind");
    fs::create_dir(place.file("programs")).expect("a folder");
    let explained = |content: &str| {
        fs::write(&valgrind, content).expect("a script");
        fs::set_permissions(&valgrind, fs::Permissions::from_mode(0o755)).expect("executable");
        let answer = with_programs(&place, &[], &["explain", "/bin/true", "/bin/false"]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        answer.stderr
    };
    let mute = explained("#!/bin/sh\nexit 3\n");
    assert!(mute.contains("does not print a version (exit status: 3; printed nothing)"), "{mute}");
    let says = explained("#!/bin/sh\necho 'libc.so.6: Error 24' >&2\nexit 127\n");
    assert!(says.contains("(exit status: 127; printed ‘libc.so.6: Error 24’)"), "{says}");
    let other = explained("#!/bin/sh\necho other-1.0\n");
    assert!(other.contains("(exit status: 0; printed ‘other-1.0’)"), "{other}");
    let unstarted = explained("#!/no/such/shell\n");
    assert!(unstarted.contains("cannot start ‘") && !unstarted.contains("reinstall"), "{unstarted}");
}

#[test]
fn an_instruction_that_valgrind_does_not_know_is_answered_with_what_helps() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // Its first launch, which is without Valgrind, succeeds.
    let app = "#include <signal.h>\n#include <stdio.h>\nint main(void) {\n  if (fopen(\"seen\", \"r\")) raise(SIGILL);\n  \
               return !fopen(\"seen\", \"w\");\n}\n";
    build(&place, "app", app);
    let answer = place.run(["explain", "--no-time", "true", "./app"]);
    let said = "(SIGILL) under the call tree; -i explains it regardless; if Valgrind does not know one of its \
                instructions, compile it for an older processor";
    let error = answer.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(answer.code != 0 && error.contains(said), "{}", answer.exchange());
}
