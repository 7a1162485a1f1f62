//! `scruple store import` from the command line to the stored run: its arguments, its output, and what the store then
//! holds.

use assert_cmd::Command;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/import").join(name)
}

/// A temporary folder with its own store, in which the test runs `scruple`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a temporary folder"))
    }

    fn scruple(&self, words: &[&str]) -> Command {
        let mut command = Command::cargo_bin("scruple").expect("built");
        command.current_dir(self.0.path()).env("SCRUPLE_STORE", self.0.path().join("store.db"));
        command.env("COLUMNS", "120").args(words);
        command
    }

    fn output(&self, words: &[&str]) -> String {
        let output = self.scruple(words).assert().success().get_output().stdout.clone();
        String::from_utf8(output).expect("text")
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.scruple(words).assert().code(2).get_output().stderr.clone();
        String::from_utf8(output).expect("text")
    }

    fn path(&self, name: &str) -> String {
        golden(name).display().to_string()
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn an_imported_run_is_listed_and_shown_with_its_tool() {
    let place = Place::new();
    let file = place.path("google-benchmark/repetitions.json");
    let printed = place.output(&["store", "import", "--label", "before", &file]);
    assert!(printed.starts_with("Imported 6 benchmarks of google-benchmark from "), "{printed}");
    assert!(printed.contains("built for debugging"), "{printed}");
    let listed = json(&place.output(&["store", "list", "--json"]));
    assert_eq!(listed[0]["label"], "before");
    assert_eq!(listed[0]["started"], "2026-11-20T18:56:40Z");
    let shown = place.output(&["show", "before"]);
    assert!(shown.starts_with("6 cases · imported from google-benchmark · 1 failed"), "{shown}");
    assert!(shown.contains("failed: no such device"), "{shown}");
    let run = json(&place.output(&["show", "--json", "before"]));
    assert_eq!(run["provenance"]["tool"], "google-benchmark");
    assert_eq!(run["arms"][0]["metrics"]["time.cpu"]["readings"][0], 3.1043634676365572);
    assert_eq!(run["arms"][5]["metrics"]["time.wall"]["absent"], "no such device");
}

#[test]
fn imported_runs_are_compared_like_any_other_and_one_reading_of_each_does_not_tell() {
    let place = Place::new();
    let file = place.path("weigh/default.txt");
    let more = place.0.path().join("more.txt");
    let text = std::fs::read_to_string(golden("weigh/default.txt")).expect("readable");
    std::fs::write(&more, text.replace("   47,952", "   63,936")).expect("written");
    place.output(&["store", "import", "--label", "old", &file]);
    place.output(&["store", "import", "--label", "new", &more.display().to_string()]);
    let compared = json(&place.output(&["compare", "--json", "old", "new"]));
    let of = |arm: &str| {
        let all = compared["comparisons"].as_array().expect("a list");
        let one = all.iter().find(|one| one["arm"] == arm && one["metric"] == "alloc.bytes");
        one.expect("compared").clone()
    };
    assert_eq!(of("lists/replicate 1000 @new")["verdict"], "can't tell");
    let why = of("lists/replicate 1000 @new")["why"].as_str().expect("a reason").to_owned();
    assert_eq!(why, "1 reading is too few; at least 3 are needed");
    assert_eq!(of("integers count 100000 @new")["verdict"], "can't tell");
}

#[test]
fn times_of_functions_in_two_runs_need_three_processes_of_each() {
    let place = Place::new();
    let output = |ns: u32| {
        let lines: String = (0..10).map(|at| format!("BenchmarkF-8 \t 1000 \t {ns}.{at} ns/op\n")).collect();
        format!("goos: linux\npkg: p\n{lines}")
    };
    for (processes, verdict) in [(1, "can't tell"), (5, "different")] {
        for (label, ns) in [("old", 100), ("new", 150)] {
            let file = place.0.path().join("bench.txt");
            std::fs::write(&file, output(ns).repeat(processes)).expect("written");
            let label = format!("{label}-{processes}");
            place.output(&["store", "import", "--label", &label, &file.display().to_string()]);
        }
        let [old, new] = ["old", "new"].map(|label| format!("{label}-{processes}"));
        let compared = json(&place.output(&["compare", "--json", &old, &new]));
        let all = compared["comparisons"].as_array().expect("a list");
        let wall = all.iter().find(|one| one["metric"] == "time.wall").expect("compared");
        assert_eq!(wall["verdict"], verdict, "{wall:#}");
    }
}

#[test]
fn commands_of_hyperfine_are_not_paired_by_the_number_of_their_run() {
    let place = Place::new();
    place.output(&["store", "import", &place.path("hyperfine/params.json")]);
    let shown = place.output(&["show"]);
    assert!(shown.starts_with("2 commands · imported from hyperfine\n"), "{shown}");
    assert!(shown.contains("one after the other"), "{shown}");
    let run = json(&place.output(&["show", "--json"]));
    let wall = run["comparisons"].as_array().expect("a list").iter().find(|one| one["metric"] == "time.wall");
    let method = wall.expect("compared")["method"].as_str().expect("text").to_owned();
    assert!(method.contains("unpaired"), "{method}");
}

#[test]
fn a_folder_of_criterion_rs_is_one_run_and_a_pipe_is_read_too() {
    let place = Place::new();
    let printed = place.output(&["store", "import", &place.path("criterion-rs")]);
    assert!(printed.starts_with("Imported 3 benchmarks of criterion.rs from 3 folders as run "), "{printed}");
    let text = std::fs::read_to_string(golden("go/bench.txt")).expect("readable");
    let output = place
        .scruple(&["store", "import", "-"])
        .write_stdin(text)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let printed = String::from_utf8(output).expect("text");
    assert!(printed.starts_with("Imported 6 benchmarks of go test from standard input as run "), "{printed}");
}

#[test]
fn each_kind_of_throughput_of_criterion_rs_is_work_and_an_unknown_kind_is_named() {
    let place = Place::new();
    place.output(&["store", "import", &place.path("criterion-rs-throughput")]);
    let run = json(&place.output(&["show", "--json"]));
    let arms = run["arms"].as_array().expect("a list");
    let work = |name: &str, key: &str| {
        let arm = arms.iter().find(|arm| arm["name"] == name).expect("imported");
        arm["metrics"][key]["readings"][0].as_f64()
    };
    assert_eq!(work("sum/bits", "work.bytes"), Some(8000.0));
    assert_eq!(work("sum/both", "work.bytes"), Some(8000.0));
    assert_eq!(work("sum/both", "work.items"), Some(1000.0));
    let folder = place.0.path().join("later/sum/bits/new");
    std::fs::create_dir_all(&folder).expect("made");
    for name in ["benchmark.json", "sample.json"] {
        let text = std::fs::read_to_string(golden(&format!("criterion-rs-throughput/sum/bits/new/{name}")));
        let text = text.expect("readable").replace("\"Bits\"", "\"Packets\"");
        std::fs::write(folder.join(name), text).expect("written");
    }
    let printed = place.output(&["store", "import", "later"]);
    let remark = "! the throughput of ‘sum/bits’ is of an unknown kind and left out: {\"Packets\":64000}";
    assert!(printed.contains(remark), "{printed}");
}

#[test]
fn one_bad_file_imports_none() {
    let place = Place::new();
    let cut = place.0.path().join("cut.json");
    let text = std::fs::read_to_string(golden("pytest-benchmark/report.json")).expect("readable");
    std::fs::write(&cut, &text[..text.len() / 2]).expect("written");
    let good = place.path("hyperfine/params.json");
    let message = place.refused(&["store", "import", &good, "cut.json"]);
    assert!(
        message.starts_with("error: cannot import ‘cut.json’ as results of pytest-benchmark: line "),
        "{message}"
    );
    assert!(message.contains("the text ends in the middle"), "{message}");
    assert!(message.contains("--benchmark-json=FILE. Nothing was imported"), "{message}");
    assert!(!place.0.path().join("store.db").exists());
}

#[test]
fn files_that_cannot_be_imported_are_reported_with_an_alternative() {
    let place = Place::new();
    std::fs::write(place.0.path().join("other.txt"), "hello\n").expect("written");
    std::fs::write(place.0.path().join("binary"), [0x7f, 0xff, 0x00]).expect("written");
    std::fs::create_dir(place.0.path().join("empty")).expect("made");
    assert!(place.refused(&["store", "import", "other.txt"]).contains("name one with --format"));
    assert!(place.refused(&["store", "import", "binary"]).contains("byte 1 is not UTF-8 text"));
    assert!(
        place
            .refused(&["store", "import", "empty"])
            .contains("neither a new/sample.json of criterion.rs nor results of asv")
    );
    assert!(place.refused(&["store", "import", "missing.json"]).contains("cannot import ‘missing.json’"));
    let (a, b) = (place.path("go/bench.txt"), place.path("weigh/default.txt"));
    assert!(place.refused(&["store", "import", "--label", "x", &a, &b]).contains("a label names one run"));
    assert!(place.refused(&["store", "import", "--format", "jmh", &b]).contains("as results of JMH: line 2"));
}

#[test]
fn tables_that_scruple_writes_are_not_taken_for_series() {
    let place = Place::new();
    place.output(&["store", "import", "--label", "a", &place.path("hyperfine/params.json")]);
    let own = "commit,value\na,1\nb,2\nc,3\n";
    std::fs::write(place.0.path().join("own.csv"), own).expect("written");
    place.output(&["store", "import", "--label", "b", "own.csv"]);
    place.output(&["show", "a", "--export", "run.csv"]);
    place.output(&["store", "export", "--export", "store.csv"]);
    place.output(&["store", "export", "--export", "store.jsonl"]);
    place.output(&["history", "report", "b", "--export", "readings:history.csv"]);
    for table in ["run.csv", "store.csv", "store.jsonl", "history.csv"] {
        let message = place.refused(&["store", "import", table]);
        assert!(message.contains("the first line: it belongs to a table for other programs"), "{message}");
        assert!(message.contains("`scruple show RUN --json > FILE`"), "{message}");
    }
}

#[test]
fn a_verdict_on_counts_is_not_reported_as_one_on_processor_time() {
    let place = Place::new();
    let file = place.path("weigh/default.txt");
    place.output(&["store", "import", "--label", "old", &file]);
    place.output(&["store", "import", "--label", "new", &file]);
    let compared = place.output(&["compare", "old", "new"]);
    assert!(compared.contains("can’t tell (allocated)") && !compared.contains("(cpu)"), "{compared}");
}

#[test]
fn a_series_whose_lines_are_not_in_the_order_of_their_times_is_sorted_and_says_so() {
    let place = Place::new();
    let write = |name: &str, text: &str| std::fs::write(place.0.path().join(name), text).expect("a file");
    write("mixed.csv", "time,value\n2026-01-03,3\n2026-01-01,1\n2026-01-02,2\n");
    let text = place.output(&["store", "import", "--label", "mixed", "mixed.csv"]);
    assert!(
        text.contains("! 2 of 3 versions are listed after a later one: the versions were sorted"),
        "{text}"
    );
    let shown = place.output(&["history", "report", "mixed"]);
    assert!(shown.contains("2026-01-01..2026-01-03"), "{shown}");
    assert!(shown.contains("2 of 3 versions are listed after a later one"), "{shown}");
    // Two series, one below the other, are each in order.
    write("two.csv", "time,name,value\n2026-01-01,a,1\n2026-01-03,a,2\n2026-01-02,b,1\n2026-01-04,b,2\n");
    let text = place.output(&["store", "import", "two.csv"]);
    assert!(!text.contains("below a later one"), "{text}");
    write("some.csv", "commit,time,value\na,2026-01-02,1\nb,,2\nc,2026-01-01,3\n");
    let text = place.output(&["store", "import", "some.csv"]);
    assert!(
        text.contains("! 1 of 3 versions have no time: all versions are in the order of the text"),
        "{text}"
    );
}

#[test]
fn what_another_tool_measured_is_not_told_an_option_of_scruple() {
    let place = Place::new();
    let times = |base: f64| (0..12).map(|at| base + 0.02 * f64::from(at * 7 % 12)).collect::<Vec<_>>();
    let result = |name: &str, base| serde_json::json!({"command": name, "mean": base, "times": times(base)});
    let results = serde_json::json!({"results": [result("old", 1.0), result("new", 1.01)]});
    std::fs::write(place.0.path().join("noisy.json"), results.to_string()).expect("a file");
    place.output(&["store", "import", "noisy.json"]);
    let shown = place.output(&["show"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("more by hyperfine would tell"), "{shown}");
    assert!(!shown.contains("(-m ") && !shown.contains("--processes"), "{shown}");
    // The fewest readings that a verdict needs are no estimate of how many are enough.
    let few = serde_json::json!({"results": [
        {"command": "old", "mean": 1.01, "times": [1.0, 1.01, 1.02]},
        {"command": "new", "mean": 1.11, "times": [1.1, 1.11, 1.12]}
    ]});
    std::fs::write(place.0.path().join("few.json"), few.to_string()).expect("a file");
    place.output(&["store", "import", "few.json"]);
    let shown = place.output(&["show"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("3 readings are too few; at least 4 are needed. !"), "{shown}");
}

#[test]
fn a_baseline_that_critcmp_wrote_is_read_with_its_slopes() {
    let place = Place::new();
    let printed = place.output(&["store", "import", &place.path("critcmp.json")]);
    assert!(printed.starts_with("Imported 2 benchmarks of criterion.rs from "), "{printed}");
    let run = json(&place.output(&["show", "--json"]));
    let arm = &run["arms"][1];
    assert_eq!(arm["name"], "sum/of things/plain (value=100)");
    let wall = &arm["metrics"]["time.wall"];
    assert_eq!((&wall["quality"], &wall["source"]), (&"estimated".into(), &"criterion.rs, slope".into()));
    assert_eq!(wall["readings"][0], 236.5077696681208);
    assert_eq!(arm["metrics"]["work.bytes"]["readings"][0], 800.0);
    let cut = std::fs::read_to_string(golden("critcmp.json")).expect("a file")[..900].to_owned();
    std::fs::write(place.0.path().join("cut.json"), cut).expect("a file");
    assert!(place.refused(&["store", "import", "cut.json"]).contains("the text ends in the middle"));
}
