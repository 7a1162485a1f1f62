//! What `scruple bench` shows on a terminal while it runs.

use crate::fake::fake_line;
use crate::support::Place;
use std::process::Command;

/// Runs Scruple with a terminal of 100 columns as its standard error, and returns what Scruple wrote there. The program
/// `script` (util-linux) makes the terminal; standard output goes to a file.
fn on_a_terminal(place: &Place, options: &str, cases: &[&str]) -> String {
    let program = fake_line(place, cases);
    let scruple = shell_words::quote(env!("CARGO_BIN_EXE_scruple"));
    let line = format!("stty cols 100 rows 40; {scruple} bench {options} --seed 7 -- {program} > table.txt");
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(place.path()).env("TERM", "xterm");
    command.env("HOME", place.path()).env("SCRUPLE_STORE", "store.db").stdin(std::process::Stdio::null());
    let output = command.output().expect("util-linux has script");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    anstream::adapter::strip_str(&String::from_utf8_lossy(&output.stdout)).to_string()
}

#[test]
fn an_answer_of_a_few_short_processes_is_shown_before_the_last_one() {
    let place = Place::new();
    let shown =
        on_a_terminal(&place, "", &[r#"{"name":"zoo/ant","cost":5}"#, r#"{"name":"zoo/bee","cost":10}"#]);
    // Of answers that follow each other quickly, the display draws only one. On a fast machine the first may be that of
    // 4 processes.
    let answers: Vec<&str> = shown.split("so far, from ").skip(1).collect();
    let first = answers.first().unwrap_or_else(|| panic!("no first answer: {shown}"));
    assert!(first.starts_with("3 fresh processes:") || first.starts_with("4 fresh processes:"), "{first}");
    for (name, net) in [("ant", "5.00 ns"), ("bee", "10.0")] {
        assert!(first.lines().any(|line| line.contains(name) && line.contains(net)), "{name}: {first}");
    }
    let table = place.read("table.txt");
    assert!(table.contains("5 fresh processes"), "{table}");
    assert!(!table.contains("so far"), "{table}");
}

#[test]
fn a_quick_run_is_the_first_answer_alone() {
    let place = Place::new();
    let shown = on_a_terminal(&place, "--quick", &[r#"{"name":"zoo/ant","cost":5}"#]);
    assert!(!shown.contains("from 4"), "{shown}");
    assert!(place.read("table.txt").contains("3 fresh processes"), "{}", place.read("table.txt"));
}
