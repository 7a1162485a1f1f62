//! `scruple explain` on programs whose counts vary from launch to launch.

use crate::explain::{build, explain, first};
use crate::programs::has_valgrind;
use crate::support::{Place, at};

/// Source of a program that does the same work in every launch, and in addition a number of rounds that it reads from the
/// system's random numbers: up to 255 times `each`.
fn random(work: u32, each: u32) -> String {
    format!(
        "#include <stdio.h>\n\
         __attribute__((noinline)) static unsigned spin(unsigned rounds) {{\n\
           volatile unsigned sum = 0;\n  for (unsigned i = 0; i < rounds; i++) sum += i;\n  return sum;\n}}\n\
         __attribute__((noinline)) static unsigned work(unsigned rounds) {{\n\
           volatile unsigned sum = 0;\n  for (unsigned i = 0; i < rounds; i++) sum += i * 3;\n  return sum;\n}}\n\
         int main(void) {{\n  FILE *file = fopen(\"/dev/urandom\", \"r\");\n  unsigned byte = fgetc(file);\n\
           unsigned all = spin(byte * {each}) + work({work});\n  return all == 1;\n}}\n"
    )
}

#[test]
fn two_runs_are_enough_if_counts_vary_by_much_less_than_the_programs_differ() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "old", &random(1_000_000, 1));
    build(&place, "new", &random(1_300_000, 1));
    let answer = explain(&place, &["./old", "./new"]);
    let page = answer.json();
    assert_eq!(at(&page, "/explain/runs"), 2, "{}", answer.exchange());
    assert_eq!(at(&page, "/explain/repeats"), false, "{}", answer.exchange());
    let (function, kind, delta) = first(&answer);
    assert_eq!((function.as_str(), kind.as_str()), ("main", "own"), "{}", answer.exchange());
    assert!((1_000_000.0..2_000_000.0).contains(&delta), "{delta}: {}", answer.exchange());
}

#[test]
fn programs_that_vary_by_more_than_they_differ_run_as_often_as_wanted_and_have_no_row() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "old", &random(1000, 10_000));
    build(&place, "new", &random(1010, 10_000));
    let answer = explain(&place, &["--runs", "6", "./old", "./new"]);
    let page = answer.json();
    assert_eq!(at(&page, "/explain/runs"), 6, "{}", answer.exchange());
    let rows = at(&page, "/explain/counts/0/rows").as_array().expect("rows");
    let counted = rows.iter().filter(|row| row["within_spread"] == false && row["function"] == "spin");
    assert_eq!(counted.count(), 0, "{}", answer.exchange());
}
