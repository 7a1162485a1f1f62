//! Bench programs whose figures are known by construction, since their clocks are made up.

use crate::support::{Answer, Place};
use std::path::Path;

const FAKE: &str = include_str!("fake_bench.py");

/// Blocks and processes that are always the same, so that every byte of an answer is.
const FIXED: [&str; 6] = ["--seed", "7", "--processes", "3", "--blocks", "12"];

/// The words that start the fake bench program with these arguments.
pub fn fake(place: &Place, words: &[&str]) -> Vec<String> {
    let script = place.write("fake_bench.py", FAKE);
    // An interpreter behind a shim of a version manager would take most of the test's time.
    let direct = "/usr/bin/python3";
    let interpreter = if Path::new(direct).exists() { direct } else { "python3" };
    let mut all = vec![interpreter.to_owned(), "-S".to_owned(), script.display().to_string()];
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all
}

/// `scruple bench` with these options over the fake bench program with these arguments.
pub fn bench(place: &Place, options: &[&str], words: &[&str]) -> Answer {
    bench_freely(place, &[&FIXED, options].concat(), words)
}

/// The same with nothing settled beforehand.
pub fn bench_freely(place: &Place, options: &[&str], words: &[&str]) -> Answer {
    let mut all: Vec<String> = ["bench"].iter().chain(options).map(|word| (*word).to_owned()).collect();
    all.push("--".to_owned());
    all.extend(fake(place, words));
    place.run(all)
}
