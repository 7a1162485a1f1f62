//! `cargo test --benches`: every case runs once, with its check, and nothing is measured.

use crate::by_hand::is_started_by_cargo_bench;
use crate::case::{Declaration, Param};
use crate::serve::BenchServer;
use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// The exit code of Rust's own test programs if a test failed.
const FAILED: i32 = 101;

/// The options of Rust's own test programs that take a value as the next word.
const WITH_VALUE: [&str; 5] = ["--test-threads", "--format", "--color", "--logfile", "--shuffle-seed"];

/// What the words after `cargo test --benches --` ask for. Other options of test programs change nothing here.
#[derive(Debug, Default, PartialEq)]
pub struct TestRun {
    /// Words that select cases by a part of their name, all if there are none.
    selected: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
    /// Only ignored tests are asked for, and no case is ignored.
    ignored: bool,
}

impl TestRun {
    /// Returns what a test run is asked for, or None if the program is not started for one: Cargo adds a word to the
    /// start of a benchmark and none to that of a test, and keeps both in the folder `deps`.
    pub fn requested(words: &[OsString]) -> Option<TestRun> {
        let folder = env::current_exe().ok()?;
        let by_cargo = env::var_os("CARGO").is_some() && is_in_deps(&folder);
        let is_test = words.iter().any(|word| word == "--test");
        (is_test || (by_cargo && !is_started_by_cargo_bench(words))).then(|| TestRun::read(words))
    }

    fn read(words: &[OsString]) -> TestRun {
        let mut run = TestRun::default();
        let mut words = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        while let Some(word) = words.next() {
            match word.as_str() {
                "--exact" => run.exact = true,
                "--list" => run.list = true,
                "--ignored" => run.ignored = true,
                "--skip" => run.skipped.extend(words.next()),
                option if WITH_VALUE.contains(&option) => _ = words.next(),
                option if option.starts_with('-') => {
                    run.skipped.extend(option.strip_prefix("--skip=").map(str::to_owned))
                }
                _ => run.selected.push(word),
            }
        }
        run
    }

    fn selects(&self, name: &str) -> bool {
        let is = |word: &String| if self.exact { name == word } else { name.contains(word.as_str()) };
        !self.ignored
            && (self.selected.is_empty() || self.selected.iter().any(is))
            && !self.skipped.iter().any(is)
    }

    /// Runs or lists the cases, as Rust's own test programs print them. Returns the exit code.
    pub fn run(&self, mut server: BenchServer) -> i32 {
        let names: Vec<String> = server.declarations().map(name).collect();
        let mut out = io::stdout();
        let mut failures = Vec::new();
        for (id, name) in names.iter().enumerate().filter(|(_, name)| self.selects(name)) {
            if self.list {
                let _ = writeln!(out, "{name}: benchmark");
                continue;
            }
            let _ = write!(out, "test {name} ... ").and_then(|()| out.flush());
            let result = server.test(id);
            let _ = match &result {
                Ok(None) => writeln!(out, "ok"),
                Ok(Some(why)) => writeln!(out, "ignored, {why}"),
                Err(_) => writeln!(out, "FAILED"),
            };
            failures.extend(result.err().map(|why| format!("{name}: {why}")));
        }
        for failure in &failures {
            let _ = writeln!(io::stderr(), "{failure}");
        }
        if failures.is_empty() { 0 } else { FAILED }
    }
}

fn is_in_deps(program: &Path) -> bool {
    program.parent().is_some_and(|folder| folder.ends_with("deps"))
}

/// Returns the name of a case and its parameters.
fn name(case: &Declaration) -> String {
    let value = |param: &Param| match param {
        Param::Number(number) => number.to_string(),
        Param::Text(text) => text.clone(),
    };
    let params: Vec<String> =
        case.params.iter().map(|(key, param)| format!("{key}={}", value(param))).collect();
    if params.is_empty() { case.name.clone() } else { format!("{} ({})", case.name, params.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> TestRun {
        TestRun::read(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_select_cases_as_in_other_test_programs() {
        let run = read("bench --nocapture --test-threads 1 fnv --skip four --color=never");
        assert!(run.selects("fnv/one") && !run.selects("fnv/four") && !run.selects("parse"));
        assert!(read("bench --exact fnv").selects("fnv") && !read("bench --exact fnv").selects("fnv/one"));
        assert!(!read("bench --ignored").selects("fnv"));
        assert!(read("bench --list").list && read("bench").selects("fnv"));
    }

    #[test]
    fn only_a_program_of_cargo_test_is_in_deps() {
        assert!(is_in_deps(Path::new("/target/debug/deps/micro-0123")));
        assert!(!is_in_deps(Path::new("/target/release/micro")));
    }

    #[test]
    fn names_have_the_parameters_that_distinguish_them() {
        let params = vec![("n".to_owned(), 10.into()), ("kind".to_owned(), "flat".into())];
        assert_eq!(name(&Declaration { params, ..Declaration::new("sum") }), "sum (n=10, kind=flat)");
        assert_eq!(name(&Declaration::new("sum")), "sum");
    }
}
