//! Tests with real language runtimes: programs with known allocations, and programs that do what could go wrong.
//!
//! A test of a runtime that is not installed is skipped with a message. A word on the command line selects the tests
//! whose names contain it.
#![allow(clippy::print_stdout)]

mod counts;
mod leaks;
mod promise;
mod reached;
mod scales;
mod trees;

use scales::{Done, Scales, Skip};

/// A test: its name, which is a sentence, and its function.
pub type Test = (&'static str, fn(&mut Scales) -> Done);

const TESTS: [&[Test]; 5] = [counts::TESTS, leaks::TESTS, promise::TESTS, reached::TESTS, trees::TESTS];

fn main() {
    // This comes first, because the launcher must be forked from a process without threads.
    let mut scales = Scales::new();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if std::env::args().any(|word| word == "--list") {
        for (name, _) in TESTS.iter().copied().flatten() {
            println!("{name}: test");
        }
        return;
    }
    let (mut passed, mut skipped, mut failed) = (0, 0, Vec::new());
    for (name, test) in TESTS.iter().copied().flatten() {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&mut scales))) {
            Ok(Ok(())) => {
                passed += 1;
                println!("test {name} ... ok");
            }
            Ok(Err(Skip(why))) => {
                skipped += 1;
                println!("skipped: {name}: {why}");
            }
            Err(_) => {
                failed.push(*name);
                println!("test {name} ... FAILED");
            }
        }
    }
    drop(scales);
    // In the words of the standard harness, so that failed tests can be found and repeated alike.
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {passed} passed; {} failed; {skipped} skipped", failed.len());
    if !failed.is_empty() {
        std::process::exit(1);
    }
}
