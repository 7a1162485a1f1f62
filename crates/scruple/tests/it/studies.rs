//! A small version of each study, run like `make studies` does: `studies/run` with `--smoke`.

use crate::programs::skip;
use crate::support::Place;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The output of a study.
struct Said {
    /// For each row of the table, the measured figure and the verdict.
    rows: BTreeMap<String, (String, String)>,
    /// The printed table and the log.
    text: String,
}

impl Said {
    fn row(&self, name: &str) -> &(String, String) {
        self.rows.get(name).unwrap_or_else(|| panic!("no row ‘{name}’ in {}", self.text))
    }

    #[track_caller]
    fn measured(&self, name: &str, figure: &str) {
        assert_eq!(self.row(name).0, figure, "{name}: {}", self.text);
    }

    #[track_caller]
    fn verdict(&self, name: &str, verdict: &str) {
        assert!(self.row(name).1.starts_with(verdict), "{name}: {}", self.text);
    }

    #[track_caller]
    fn have_figures(&self, names: &[&str]) {
        for name in names {
            assert!(!self.row(name).0.is_empty(), "{name}: {}", self.text);
        }
    }
}

/// Runs a study. Returns `None` if packages that it needs are missing.
fn study(name: &str) -> Option<Said> {
    let place = Place::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("python3");
    command.arg(root.join("studies/run")).args([name, "--smoke", "--scruple", env!("CARGO_BIN_EXE_scruple")]);
    command.arg("--work").arg(place.file("work")).env("HOME", place.path()).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", place.file("cache"));
    let output = command.output().expect("python3 runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = std::fs::read_to_string(place.file("work").join(name).join("log.txt")).unwrap_or_default();
    let text = format!("{table}\n{}\n{log}", String::from_utf8_lossy(&output.stderr));
    assert!(table.contains("| published | measured |"), "{text}");
    if table.contains("these packages are missing") {
        skip(&format!("packages of the study {name} are missing"));
        return None;
    }
    let cells =
        |line: &str| line.trim_matches('|').split(" | ").map(|c| c.trim().to_owned()).collect::<Vec<_>>();
    let lines = table.lines().filter(|line| line.starts_with("| ") && !line.contains("| published |"));
    let rows = lines.map(cells).map(|row| (row[0].clone(), (row[2].clone(), row[3].clone()))).collect();
    Some(Said { rows, text })
}

#[test]
fn bytes_are_those_of_weigh_and_a_limit_fails_the_build() {
    let Some(text) = study("done-2016-weigh") else { return };
    text.measured("a step of an Integer", "16 bytes");
    text.verdict("a step, as a + (-1)", "reproduced");
    text.verdict("a step of an Int", "reproduced");
    text.verdict("limits exceeded: the build fails", "reproduced");
    text.verdict("cases where weigh itself reports other bytes", "reproduced");
    text.measured("cases where weigh itself reports the same bytes", "26");
    text.verdict("Data.Map of a million random keys", "could not run because");
}

#[test]
fn a_harness_that_subtracts_its_own_cost_is_shown_beside_criterion() {
    let Some(text) = study("simmons-2014-criterion-tare") else { return };
    // Criterion itself fails if a busy machine lets it take too few samples in its time.
    match text.row("under criterion: identity").1.contains("Statistics.Quantile") {
        true => skip("criterion had too few samples on a busy machine"),
        false => text.have_figures(&["under criterion: identity", "under criterion: eight steps"]),
    }
    text.have_figures(&["net, Haskell: eight steps", "net, C: identity", "net, Rust: identity"]);
}

#[test]
fn a_server_of_guile_has_figures_for_each_request() {
    let Some(text) = study("wingo-2012-guile-web") else { return };
    let rates = [
        "hello: requests a second",
        "hello, connections kept: requests a second",
        "table of headers: requests a second",
        "page of 50 KB: requests a second",
    ];
    for name in rates.into_iter().chain(["bytes of a request"]) {
        // If the machine is too busy for the generator, the study says nothing about the server.
        let (figure, verdict) = text.row(name);
        assert!(!figure.is_empty() || verdict.contains("the generator was late"), "{name}: {}", text.text);
    }
}

#[test]
fn a_pass_of_a_compiler_is_weighed_in_its_builds_and_runs() {
    let Some(text) = study("wingo-2012-guile-cse") else { return };
    text.have_figures(&["compiling with the pass: bytes allocated"]);
    text.have_figures(&[
        "building with the pass: size of the bytecode",
        "the tree with the pass: bytes allocated",
    ]);
}

#[test]
fn two_programs_that_print_the_same_digest_are_compared() {
    let Some(text) = study("dubuisson-2007-puremd5") else { return };
    text.have_figures(&["pureMD5: throughput", "pureMD5: peak memory"]);
    text.verdict("remarks that the digests differ", "reproduced");
}

#[test]
fn events_of_the_stand_ins_fire_once_each() {
    let Some(text) = study("dubuisson-2008-control-event") else { return };
    text.have_figures(&["a map: bytes allocated for an event at 1000"]);
}

#[test]
fn queues_deliver_every_message_once() {
    let Some(text) = study("simmons-2014-unagi-chan") else { return };
    text.have_figures(&["TQueue, 2 to 2: time of a message", "TQueue, 2 to 2: bytes of a message"]);
    text.verdict("messages that were lost, doubled or invented", "reproduced");
}

/// The first code block in `document` that is marked with `language`.
fn block<'a>(document: &'a str, language: &str) -> &'a str {
    let opening = format!("```{language}\n");
    let start = document.find(&opening).expect("the document has such a block") + opening.len();
    &document[start..start + document[start..].find("```").expect("the block ends")]
}

#[test]
fn the_example_of_how_to_add_a_study_is_a_study() {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let folder = place.file("studies/gzip-levels");
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in ["run", "figures.jq"] {
        std::fs::copy(from.join(name), place.file("studies").join(name)).expect("a copy");
    }
    let document = std::fs::read_to_string(from.join("README.md")).expect("the document");
    std::fs::write(folder.join("scruple.toml"), block(&document, "toml")).expect("written");
    std::fs::write(folder.join("published.csv"), block(&document, "csv")).expect("written");
    let mut command = Command::new("python3");
    command.arg(place.file("studies/run")).args(["gzip-levels", "--smoke"]).env("HOME", place.path());
    command.args(["--scruple", env!("CARGO_BIN_EXE_scruple"), "--report"]).arg(place.file("report"));
    let output = command.stdin(Stdio::null()).output().expect("python3 runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    if String::from_utf8_lossy(&output.stdout).contains("these packages are missing") {
        return skip("packages of the example of a study are missing");
    }
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report = std::fs::read_to_string(place.file("report/gzip-levels.md")).expect("a report");
    assert!(report.contains("| slowest: peak memory |  | "), "{report}");
    assert!(!report.contains("could not run"), "{report}");
}
