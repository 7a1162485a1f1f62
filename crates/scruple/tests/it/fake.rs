//! Bench programs with simulated clocks, so that their figures are known by construction.

use crate::programs::python;
use crate::repository::Repository;
use crate::support::{Answer, Place};

const FAKE: &str = include_str!("fake_bench.py");

/// Options that fix the seed, the processes and the blocks, so that every byte of an answer is reproducible.
const FIXED: [&str; 6] = ["--seed", "7", "--processes", "3", "--blocks", "12"];

/// The command line that starts the fake bench program with the arguments `words`.
pub fn fake(place: &Place, words: &[&str]) -> Vec<String> {
    let script = place.write("fake_bench.py", FAKE);
    let mut all =
        vec![python().unwrap_or("python3").to_owned(), "-S".to_owned(), script.display().to_string()];
    all.extend(words.iter().map(|word| (*word).to_owned()));
    all
}

/// The same command line as one text, as a shell and `--against` take it.
pub fn fake_line(place: &Place, words: &[&str]) -> String {
    shell_words::join(fake(place, words))
}

/// Writes a bench program with `cases` into a repository, where it is `./NAME`.
pub fn write_bench(place: &Place, repository: &Repository, name: &str, cases: &[&str]) {
    repository.write_program(name, &format!("#!/bin/sh\nexec {}\n", fake_line(place, cases)));
}

/// Runs `scruple bench` with the fixed options and `options` on the fake bench program with the arguments `words`.
pub fn bench(place: &Place, options: &[&str], words: &[&str]) -> Answer {
    bench_freely(place, &[&FIXED, options].concat(), words)
}

/// Like [`bench`], without the fixed options.
///
/// The clocks of the program are simulated, while the state of the core is not: on a machine whose clock changes, or
/// whose core is shared, the report says so. These remarks are left out here.
pub fn bench_freely(place: &Place, options: &[&str], words: &[&str]) -> Answer {
    let mut answer = place.run(bench_words(place, options, words));
    answer.stdout = without_remarks_on_the_core(&answer.stdout);
    answer
}

/// Returns a report without the remarks on the core, each of which ends with its indented lines.
fn without_remarks_on_the_core(report: &str) -> String {
    let remarks = ["! the core’s clock changed", "! other work used the same core"];
    let mut inside = false;
    let kept = report.split_inclusive('\n').filter(|line| {
        let begins = remarks.iter().any(|remark| line.starts_with(remark));
        inside = begins || (inside && line.starts_with("  "));
        !inside
    });
    kept.collect()
}

/// The words of `scruple bench` with `options` on the fake bench program with the arguments `words`.
pub fn bench_words(place: &Place, options: &[&str], words: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = ["bench"].iter().chain(options).map(|word| (*word).to_owned()).collect();
    all.push("--".to_owned());
    all.extend(fake(place, words));
    all
}
