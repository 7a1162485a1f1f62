//! What `scruple explain` and `scruple inspect calls` do where the call tree cannot be compiled: callgrind counts, and the
//! report says so.

use crate::explain::{pair, source};
use crate::programs::has_valgrind;
use crate::support::{Answer, Place, at};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Runs Scruple where nothing but valgrind is on the search path.
fn without_compiler(place: &Place, words: &[&str]) -> Answer {
    let programs = place.file("programs");
    if !programs.exists() {
        std::fs::create_dir(&programs).expect("a folder");
        for path in ["/usr/bin/valgrind", "/usr/bin/valgrind.bin", "/bin/sh"].map(Path::new) {
            if path.exists() {
                symlink(path, programs.join(path.file_name().unwrap_or_default())).expect("a link");
            }
        }
    }
    place.finish(place.command(words).env("PATH", &programs).env("CC", ""))
}

#[test]
fn callgrind_counts_where_there_is_no_compiler_and_the_report_says_so() {
    if !has_valgrind() || !Path::new("/usr/bin/valgrind").exists() {
        return;
    }
    let place = Place::new();
    let call = "all += hash(text, 5);";
    pair(&place, &source(20, call, "hash"), &source(22, call, "hash"));
    let answer = without_compiler(&place, &["explain", "--json", "--no-time", "./old", "./new"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = answer.json();
    let row = at(&page, "/explain/counts/0/rows/0");
    assert_eq!(row["function"], "hash", "{}", answer.exchange());
    assert!(row["difference"].as_f64() > Some(2000.0 * 2.0 * 5.0), "{}", answer.exchange());
    assert_ne!(row["code"], "same", "{}", answer.exchange());
    let remarks = at(&page, "/explain/remarks").to_string();
    for text in
        ["counted by callgrind (valgrind ", "because no C compiler was found", "does not know callers"]
    {
        assert!(remarks.contains(text), "{text}: {remarks}");
    }
    let calls = without_compiler(&place, &["inspect", "calls", "--", "./old"]);
    assert_eq!(calls.code, 0, "{}", calls.exchange());
    let line = calls.stdout.lines().find(|line| line.contains("hash")).unwrap_or_default();
    assert!(line.contains("2,000"), "{}", calls.exchange());
    assert!(calls.stdout.contains("Counted by callgrind"), "{}", calls.exchange());
    let kept = without_compiler(&place, &["inspect", "calls", "--export", "x.calls", "--", "./old"]);
    assert_eq!(kept.code, 2, "{}", kept.exchange());
}

#[test]
fn without_valgrind_it_is_said_what_to_install() {
    let place = Place::new();
    let none = place.finish(place.command(["explain", "/bin/true", "/bin/false"]).env("PATH", place.path()));
    assert_eq!(none.code, 2, "{}", none.exchange());
    assert!(none.stderr.contains("install the package ‘valgrind’"), "{}", none.exchange());
}
