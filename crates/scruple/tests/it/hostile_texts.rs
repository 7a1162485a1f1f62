//! Untrusted texts in every output of Scruple: they are shown, and have no effect.

use crate::load;
use crate::pages::{HOSTILE, all_is_well, page};
use crate::programs::{has_valgrind, skip};
use crate::repository::{Repository, program};
use crate::scripted_readings::{arm, noisy_arm};
use crate::support::Place;
use scruple_core::harmless_text::plain;
use std::path::Path;
use std::process::Command;

/// A text that a spreadsheet would evaluate, a browser would parse as markup, and a terminal would obey.
const EVERYTHING: &str = "=1+1</title><script>alert(1)</script>\u{202e}\u{1b}[31m|`x`\" onload=\"alert(2)";

/// Checks that an output contains no escape sequence, active markup, or formula that its readers would execute.
fn is_inert(name: &str, text: &str) {
    for steering in ["\u{1b}", "\u{202e}", "\u{7}"] {
        assert!(!text.contains(steering), "{name} holds {steering:?}:\n{text}");
    }
    if name.ends_with(".html") || name.ends_with(".svg") || name.ends_with(".xml") {
        let attribute = text.contains("\" onload=\"");
        assert!(!text.contains("<script") && !attribute, "{name} holds markup:\n{text}");
    }
    if name.ends_with(".md") {
        // Neither blocks of code nor code in a line is markup.
        let lines = text.split("```").step_by(2).flat_map(str::lines);
        let markup = |line: &str| line.split('`').step_by(2).any(|part| part.contains("<script"));
        assert!(!lines.into_iter().any(markup), "{name} holds markup:\n{text}");
    }
    if name.ends_with(".csv") {
        let formula = |cell: &str| cell.trim_start_matches('"').starts_with('=');
        assert!(!text.lines().any(|line| line.split(',').any(formula)), "{name} holds a formula:\n{text}");
    }
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root")
}

/// Checks that a checker program accepts these files and prints nothing.
fn nothing_is_wrong(program: &str, words: &[&Path]) {
    let output = Command::new(program).args(words).output().expect("the checker starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.is_empty(), "{text}");
}

/// Checks that the files are valid JUnit XML.
fn is_junit(files: &[&Path]) {
    let script = root().join("tests/pages/junit.py");
    nothing_is_wrong("python3", &[&[script.as_path()], files].concat());
}

/// Checks the files against the schema of SARIF 2.1.0.
fn is_sarif(files: &[&Path]) {
    let modules = root().join("target/pages/node_modules");
    if !modules.join("@microsoft/jest-sarif").exists() {
        return skip("the schema of SARIF is not installed: `make test` does it");
    }
    let script = root().join("tests/pages/sarif.mjs");
    nothing_is_wrong("node", &[&[script.as_path(), modules.as_path()], files].concat());
}

#[test]
fn every_file_of_a_run_shows_names_and_nothing_happens() {
    let place = Place::new();
    let long = format!("{EVERYTHING}{}", "A".repeat(10_000));
    let names = [plain(EVERYTHING), plain(&long), plain(HOSTILE[1])];
    let metric = "zoo.<script>alert(3)</script>";
    let of = |seed: u64| noisy_arm(1.0, seed, 0.01).with("timing", metric, |launch| launch as f64);
    let arms: Vec<_> = names.iter().zip(1..).map(|(name, seed)| (name.as_str(), of(seed))).collect();
    let mut words = vec!["-r", "18", "--label", "=2+2", "--metrics", "all"];
    names.iter().for_each(|name| words.extend(["-n", name]));
    let files = ["run.html", "run.md", "run.csv", "run.json", "run.xml", "run.adoc", "run.org"];
    files.iter().for_each(|file| words.extend(["--export", file]));
    words.extend(["true", "true 2", "true 3"]);
    let answer = place.play(&arms, &words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    is_inert("the terminal", &answer.stdout);
    files.iter().for_each(|file| is_inert(file, &place.read(file)));
    is_junit(&[&place.file("run.xml")]);
    for name in ["page.md", "page.csv", "page.json"] {
        page(&place, name, &["--metrics", "all"]);
        is_inert(name, &place.read(name));
    }
    let charts = place.run(["report"]);
    is_inert("the terminal", &charts.stdout);
    let export = place.run(["store", "export", "last", "--format", "csv"]);
    is_inert("export.csv", &export.stdout);
    all_is_well(&[place.file("run.html")]);
}

#[test]
fn output_of_a_program_is_quoted_harmlessly() {
    let place = Place::new();
    let script = "printf '\\033]0;title\\007<script>alert(1)</script>\\342\\200\\256x\\n' >&2; exit 3";
    place.shell_script("fails", script);
    let answer =
        place.run(["run", "-i", "-r", "2", "--export", "run.html", "--export", "run.xml", "./fails"]);
    is_inert("the terminal", &answer.stdout);
    is_inert("the terminal", &answer.stderr);
    is_inert("run.html", &place.read("run.html"));
    is_inert("run.xml", &place.read("run.xml"));
    is_junit(&[&place.file("run.xml")]);
    let refused = place.run(["run", "-r", "2", "./fails"]);
    assert_eq!(refused.code, 4, "{}", refused.exchange());
    is_inert("the terminal", &refused.stderr);
}

#[test]
fn every_file_of_a_load_shows_names_and_nothing_happens() {
    let place = Place::new();
    // A server's name ends at the first `=`. A text with a slash, a colon or a space would be taken for a URL.
    let name = EVERYTHING.replace(['=', '/', ' '], "");
    let against = format!("{name}=:10");
    load::script(&place, &[("new", load::windows(200)), (&plain(&name), load::windows(300))]);
    let files = ["load.html", "load.md", "load.csv", "load.json", "load.xml"];
    let mut words = vec!["--label", "=2+2<script>", "--against", &against];
    files.iter().for_each(|file| words.extend(["--export", file]));
    let answer = place.run(load::load(&words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    is_inert("the terminal", &answer.stdout);
    files.iter().for_each(|file| is_inert(file, &place.read(file)));
    let shown = place.run(["show"]);
    is_inert("the terminal", &shown.stdout);
    all_is_well(&[place.file("load.html"), page(&place, "stored.html", &[])]);
}

#[test]
fn imported_texts_are_shown_harmlessly_with_their_units() {
    let place = Place::new();
    let times = [0.020, 0.019, 0.021, 0.020, 0.022, 0.018];
    let result = serde_json::json!({
        "command": EVERYTHING, "mean": 0.02, "stddev": 0.001, "median": 0.02, "user": 0.02, "system": 0.0,
        "min": 0.018, "max": 0.022, "times": times, "exit_codes": [0, 0, 0, 0, 0, 0],
        "parameters": { "<b>size</b>": "<script>alert(1)</script>" },
    });
    place.write("hyperfine.json", serde_json::json!({ "results": [result] }).to_string());
    let rows = (1..=30).map(|i| {
        serde_json::json!({ "commit": format!("{i:040x}"), "value": 100 + i % 3, "unit": "<script>alert(1)</script>\u{1b}[31m",
            "metric": "zoo.</svg><img src=x onerror=alert(2)>", "subject": EVERYTHING })
    });
    place.write("series.json", serde_json::Value::from_iter(rows).to_string());
    for file in ["hyperfine.json", "series.json"] {
        let answer = place.run(["store", "import", file]);
        is_inert("the terminal", &answer.stdout);
        is_inert("the terminal", &answer.stderr);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        for words in [["store", "list"], ["show", "last"], ["report", "last"]] {
            is_inert("the terminal", &place.run(words).stdout);
        }
        for name in ["page.md", "page.csv", "page.json"] {
            page(&place, name, &[]);
            is_inert(name, &place.read(name));
        }
        all_is_well(&[page(&place, "page.html", &[])]);
    }
}

#[test]
fn every_file_of_a_search_for_leaks_shows_names_and_nothing_happens() {
    let place = Place::new();
    let program = "./</title><script>alert(1)</script><img src=x onerror=alert(2)>\nno leak";
    let of = |n: u32| {
        let readings = serde_json::json!({"heap.live": 50_000 + 40 * n, "gc.count": 40, "gc.major": 6});
        (format!("{program} {n}"), serde_json::json!({"counting": [{ "readings": readings }]}))
    };
    let arms: serde_json::Map<String, serde_json::Value> =
        [1000, 2000, 4000, 8000].map(of).into_iter().collect();
    place.write("leak.json", serde_json::json!({ "arms": arms }).to_string());
    let words =
        ["inspect", "leak", "--scripted", "leak.json", "--sizes", "1k,2k,4k,8k", "--", program, "{n}"];
    let answer = place.run(words);
    is_inert("the terminal", &answer.stdout);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stdout.lines().next().is_some_and(|title| title.ends_with("{n}’")), "{}", answer.stdout);
    for name in ["page.md", "page.csv", "page.json"] {
        page(&place, name, &[]);
        is_inert(name, &place.read(name));
    }
    all_is_well(&[page(&place, "leak.html", &[])]);
}

#[test]
fn every_file_of_a_gate_shows_names_and_nothing_happens() {
    let place = Place::new();
    let name = plain(EVERYTHING);
    let more = arm(1.0, 2).with("counting", "malloc.bytes", |_| 5000.0);
    place.script(&[("old", arm(1.0, 1)), (&name, more)]);
    let files = ["check.md", "check.json", "check.xml", "check.sarif", "badge.svg"];
    let mut words = vec!["check", "run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", &name];
    files.iter().for_each(|file| words.extend(["--export", file]));
    words.extend(["-r", "16", "--limit", "time.cpu<+3%", "true", "true new"]);
    let answer = place.run(&words);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    is_inert("the terminal", &answer.stdout);
    files.iter().for_each(|file| is_inert(file, &place.read(file)));
    is_junit(&[&place.file("check.xml")]);
    is_sarif(&[&place.file("check.sarif")]);
}

#[test]
fn a_regression_with_lines_is_a_result_by_the_schema_of_sarif() {
    if !has_valgrind() {
        return skip("valgrind is not installed");
    }
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let file = "app.c";
    repository.write(file, &program(10, 1000, ""));
    repository.commit("first");
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.write(file, &program(10, 1001, ""));
    repository.commit("<script>alert(1)</script>");
    let build = format!("cc -O1 -g -o app '{file}'");
    let words = ["check", "--repo", "repo", "--no-store", "-r", "15", "--gate", "malloc", "--build", &build];
    let more = ["--artifact", "app", "--export", "check.sarif", "--export", "check.xml", "--", "./app"];
    let answer = place.run(words.iter().chain(&more));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let sarif: serde_json::Value = serde_json::from_str(&place.read("check.sarif")).expect("SARIF");
    let place_of = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place_of["artifactLocation"]["uri"], "app.c", "{sarif:#}");
    is_sarif(&[&place.file("check.sarif")]);
    is_junit(&[&place.file("check.xml")]);
}
