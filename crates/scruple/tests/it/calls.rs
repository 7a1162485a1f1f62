//! What a program does by function, and the files that other tools read.

use crate::support::{Answer, Place};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// `main` calls `twice` two times, which calls `work` three times each; `work` allocates 10 bytes.
const PROGRAM: &str = r#"
#include <stdlib.h>
__attribute__((noinline)) long work(long n) {
    volatile long s = 0;
    for (long i = 0; i < n; i++) s += i;
    void *volatile p = malloc(10);
    free((void *)p);
    return s;
}
__attribute__((noinline)) long twice(long n) { return work(n) + work(n) + work(n); }
int main(void) { return (int)(twice(10000) + twice(10000)) & 1; }
"#;

fn compiled() -> Place {
    let place = Place::new();
    place.write("app.c", PROGRAM);
    let status =
        Command::new("cc").args(["-O1", "-g", "-o", "app", "app.c"]).current_dir(place.path()).status();
    assert!(status.expect("a compiler").success());
    place
}

fn calls(place: &Place, words: &[&str]) -> Answer {
    let answer = place.run([&["inspect", "calls"], words, &["--", "./app"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer
}

fn output(place: &Place, program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).current_dir(place.path()).output().expect(program);
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn calls_and_allocations_of_functions_are_those_of_the_source() {
    let place = compiled();
    let answer = calls(&place, &["--json", "--lines"]).json();
    let function = |name: &str| {
        let functions = answer["functions"].as_array().expect("functions");
        functions
            .iter()
            .find(|one| one["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("no {name} in {answer:#}"))
    };
    let (work, twice, main) = (function("work"), function("twice"), function("main"));
    assert_eq!(
        (&work["calls"], &twice["calls"], &main["calls"]),
        (&Value::from(6), &Value::from(2), &Value::from(1))
    );
    assert!(work["own"]["instructions"].as_u64() > Some(6 * 3 * 10_000));
    assert_eq!((&work["own"]["allocations"], &work["own"]["bytes"]), (&Value::from(6), &Value::from(60)));
    let inclusive = |one: &Value| one["inclusive"]["instructions"].as_u64().expect("a number");
    let own = |one: &Value| one["own"]["instructions"].as_u64().expect("a number");
    assert_eq!(inclusive(&main), own(&main) + inclusive(&twice));
    let line = &answer["lines"][0];
    assert!(
        line["file"].as_str().is_some_and(|file| file.ends_with("app.c")) && line["line"] == 5,
        "{line:#}"
    );
    let text = calls(&place, &["--sort", "calls", "-n", "3", "--lines"]).stdout;
    assert!(
        text.contains("6 allocations of 60 bytes")
            && text.contains("other functions")
            && text.contains("app.c:5"),
        "{text}"
    );
}

#[test]
fn other_tools_read_the_same_counts() {
    let place = compiled();
    let files = ["app.callgrind", "app.pprof", "app.collapsed", "app.speedscope", "app.svg", "app.json"];
    let words: Vec<&str> = files.iter().flat_map(|file| ["--export", file]).collect();
    calls(&place, &words);
    let document: Value = serde_json::from_str(&place.read("app.json")).expect("JSON");
    let total = document["total"]["instructions"].as_u64().expect("a total");
    let work = document["functions"]
        .as_array()
        .expect("functions")
        .iter()
        .find(|one| one["name"] == "work")
        .expect("work");
    let work = work["own"]["instructions"].as_u64().expect("a number");
    // The numbers of callgrind_annotate have commas.
    let annotated =
        output(&place, "callgrind_annotate", &["--threshold=100", "app.callgrind"]).replace(',', "");
    assert!(annotated.contains(&total.to_string()) && annotated.contains(&work.to_string()), "{annotated}");
    let row = annotated.lines().find(|line| line.contains(":work")).unwrap_or_else(|| panic!("{annotated}"));
    assert!(row.trim_start().starts_with(&work.to_string()), "{row}");
    let top = output(
        &place,
        "go",
        &["tool", "pprof", "-sample_index=instructions", "-unit=count", "-raw", "app.pprof"],
    );
    assert!(top.contains("instructions/count allocations/count bytes/bytes"), "{top}");
    assert!(
        top.contains(&format!("{work}          6         60"))
            || top.split_whitespace().any(|word| word == work.to_string() || word == format!("{work}")),
        "{top}"
    );
    let collapsed = place.read("app.collapsed");
    let counts = collapsed
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a count").1.parse::<u64>().expect("a number"));
    assert_eq!(counts.sum::<u64>(), total);
    assert!(
        collapsed
            .lines()
            .any(|line| line.contains("main;twice;work ") && line.ends_with(&format!(" {work}"))),
        "{collapsed}"
    );
    let speedscope: Value = serde_json::from_str(&place.read("app.speedscope")).expect("JSON");
    let profiles = speedscope["profiles"].as_array().expect("profiles");
    let frames = speedscope["shared"]["frames"].as_array().map_or(0, Vec::len) as u64;
    for profile in profiles {
        let weights = profile["weights"].as_array().expect("weights");
        let samples = profile["samples"].as_array().expect("samples");
        assert_eq!(weights.len(), samples.len());
        assert_eq!(
            weights.iter().filter_map(Value::as_u64).sum::<u64>(),
            profile["endValue"].as_u64().expect("an end")
        );
        assert!(
            samples
                .iter()
                .flat_map(|stack| stack.as_array().expect("a stack"))
                .all(|place| place.as_u64() < Some(frames))
        );
    }
    assert_eq!(profiles[0]["endValue"].as_u64(), Some(total));
    assert!(place.read("app.svg").contains("<svg") && place.read("app.svg").contains("twice"));
}

#[test]
fn what_cannot_be_counted_is_said() {
    let place = compiled();
    let ends = |words: &[&str], code: i32, part: &str| {
        let answer = place.run([&["inspect", "calls"], words].concat());
        assert_eq!(answer.code, code, "{}", answer.exchange());
        assert!(answer.stderr.contains(part), "{}", answer.exchange());
    };
    ends(&["--", "./missing"], 2, "cannot run");
    ends(
        &["--export", "x.csv", "--", "./app"],
        2,
        "this verb writes .json, .svg, .collapsed, .callgrind, .pprof, .speedscope",
    );
    ends(&["--", "false"], 4, "exited with code 1; -i shows what it did regardless");
    assert_eq!(place.run(["inspect", "calls", "-i", "--", "false"]).code, 0);
    assert!(!Path::new(&place.file("x.csv")).exists());
}

#[test]
fn a_process_that_was_killed_is_not_passed_over() {
    let place = Place::new();
    let script = "sleep 60 & child=$!; kill -9 $child; wait";
    let answer = place.run(["inspect", "calls", "-i", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    assert!(answer.stderr.contains("its counts are lost"), "{}", answer.exchange());
}
