//! `scruple inspect calls`: the counts of a program by function, and the exported files that other tools read.

use crate::programs::{has_valgrind, pprof};
use crate::support::{Answer, Place, at};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// `main` calls `twice` two times, and each call of `twice` calls `work` three times. `work` allocates 10 bytes.
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
    if !has_valgrind() {
        return;
    }
    let place = compiled();
    let answer = calls(&place, &["--json", "--lines"]).json();
    assert_eq!(answer["scruple"]["schema"], 1, "{answer:#}");
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
    if !has_valgrind() {
        return;
    }
    let place = compiled();
    let files = ["app.callgrind", "app.pb.gz", "app.collapsed", "app.speedscope.json", "app.svg", "app.json"];
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
    // callgrind_annotate prints numbers with thousands separators.
    let annotated =
        output(&place, "callgrind_annotate", &["--threshold=100", "app.callgrind"]).replace(',', "");
    assert!(annotated.contains(&total.to_string()) && annotated.contains(&work.to_string()), "{annotated}");
    let row = annotated.lines().find(|line| line.contains(":work")).unwrap_or_else(|| panic!("{annotated}"));
    assert!(row.trim_start().starts_with(&work.to_string()), "{row}");
    let raw = ["-sample_index=instructions", "-unit=count", "-raw", "app.pb.gz"];
    if let Some(top) = pprof(&place, &raw) {
        assert!(top.contains("instructions/count[dflt] allocations/count bytes/bytes"), "{top}");
        assert!(top.split_whitespace().any(|word| word == work.to_string()), "{top}");
    }
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
    let speedscope: Value = serde_json::from_str(&place.read("app.speedscope.json")).expect("JSON");
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

/// What a program prints whose `work` has this body.
fn built(place: &Place, name: &str, body: &str) {
    place.write("app.c", PROGRAM.replace("s += i;", body));
    output(place, "cc", &["-O1", "-g", "-o", name, "app.c"]);
}

#[test]
fn other_tools_read_both_sides_of_an_explanation() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    built(&place, "old", "s += i;");
    built(&place, "new", "{ s += i ^ 3; if (i < 2) { void *volatile q = malloc(100); free((void *)q); } }");
    let files = ["x.callgrind", "x.pb.gz", "x.collapsed", "x.speedscope.json", "x.firefox.json", "x.svg"];
    let exports = files.iter().flat_map(|file| ["--export", file]);
    let words: Vec<&str> = ["explain", "--json", "--no-time"].into_iter().chain(exports).collect();
    let answer = place.run([&words[..], &["./old", "./new"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let counts = answer.json()["explain"]["counts"].as_array().expect("counts").clone();
    let totals: Vec<[u64; 2]> = counts
        .iter()
        .map(|count| ["a", "b"].map(|side| count[side].as_f64().expect("a total") as u64))
        .collect();
    let [instructions, allocations, bytes] = totals[..] else { panic!("{}", answer.exchange()) };
    // Each loop allocates two more blocks of 100 bytes.
    assert_eq!([allocations, bytes], [[6, 18], [60, 1260]]);
    let annotated = output(&place, "callgrind_annotate", &["x.callgrind"]).replace(',', "");
    let sums = annotated.lines().find(|line| line.contains("PROGRAM TOTALS")).expect("totals");
    let numbers: Vec<u64> = sums.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers, totals.concat(), "{annotated}");
    let mut columns = [0, 0];
    for line in place.read("x.collapsed").lines() {
        let numbers = line.rsplitn(3, ' ').take(2).map(|word| word.parse::<u64>().expect("a number"));
        columns.iter_mut().rev().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
    assert_eq!(columns, instructions);
    let weights =
        |value: &Value| -> u64 { value.as_array().expect("weights").iter().filter_map(Value::as_u64).sum() };
    let speedscope: Value = serde_json::from_str(&place.read("x.speedscope.json")).expect("JSON");
    let sums: Vec<u64> = speedscope["profiles"]
        .as_array()
        .expect("profiles")
        .iter()
        .map(|profile| weights(&profile["weights"]))
        .collect();
    assert_eq!(sums, totals.concat());
    let firefox: Value = serde_json::from_str(&place.read("x.firefox.json")).expect("JSON");
    let of = |name: &str, side: &str| -> u64 {
        let threads = firefox["threads"].as_array().expect("threads").iter();
        let mut named = threads.filter(|thread| thread["name"] == name && thread["processName"] == side);
        weights(&named.next().expect("a thread")["samples"]["weight"])
    };
    assert_eq!(["A: ./old", "B: ./new"].map(|side| of("instructions", side)), instructions);
    assert_eq!(["A: ./old", "B: ./new"].map(|side| of("bytes", side)), bytes);
    // pprof shows the difference with the first side as its base.
    if let Some(top) = pprof(&place, &["-top", "-unit=count", "x.pb.gz"]) {
        let more = instructions[1] - instructions[0];
        assert!(top.contains("Type: instructions") && top.contains("File: old"), "{top}");
        assert!(top.contains(&format!("of {} total", instructions[0])), "{top}");
        let main = top.lines().find(|line| line.ends_with(" main")).unwrap_or_else(|| panic!("{top}"));
        assert!(main.split_whitespace().any(|word| word == more.to_string()), "{main}, {more}");
    }
    assert!(place.read("x.svg").contains("work (+"));
    // A file of one program, or of none, is refused before anything runs.
    for (file, says) in [
        ("x.calls", "holds the call tree of one program; `scruple inspect calls --export"),
        (
            "x.csv",
            "this verb writes .md, .html, .svg, .json, .collapsed, .callgrind, .pprof, .speedscope, .firefox",
        ),
        ("x.svg.gz", "this verb writes"),
    ] {
        let answer = place.run(["explain", "--export", file, "./old", "./new"]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{}", answer.exchange());
        assert!(answer.stderr.contains(says), "{}", answer.exchange());
    }
    // The difference of two profiles is not read as a profile.
    for (file, says) in [
        ("x.pb.gz", "it is the difference of two profiles"),
        ("x.collapsed", "it is the difference of two profiles"),
        ("x.callgrind", "instructions (Ir) were not counted"),
    ] {
        let answer = place.run(["inspect", "calls", "--from", file]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains(says), "{}", answer.exchange());
    }
}

#[test]
fn pictures_and_stacks_are_of_the_count_that_determines_the_order() {
    if !has_valgrind() {
        return;
    }
    let place = compiled();
    calls(&place, &["--sort", "bytes", "--export", "app.collapsed", "--export", "app.svg"]);
    let stacks = place.read("app.collapsed");
    assert!(stacks.ends_with(";main;twice;work 60\n") && stacks.lines().count() == 1, "{stacks}");
    assert!(place.read("app.svg").contains("work: 60 (100 %)"), "{}", place.read("app.svg"));
    place.write(
        "heap.csv",
        "allocator,num_allocations,size,tid,thread_name,stack_trace\nMALLOC,2,300,1,main,f;a.py;3|g;a.py;9\n",
    );
    let from =
        ["inspect", "calls", "--from", "heap.csv", "--export", "heap.collapsed", "--export", "heap.svg"];
    let answer = place.run(from);
    assert_eq!(
        (answer.code, place.read("heap.collapsed").as_str()),
        (0, "g;f 300\n"),
        "{}",
        answer.exchange()
    );
    assert!(place.read("heap.svg").contains("g: 300 (100 %)"), "{}", place.read("heap.svg"));
}

#[test]
fn programs_that_cannot_be_counted_are_reported() {
    if !has_valgrind() {
        return;
    }
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
        "this verb writes .json, .svg, .collapsed, .callgrind, .pprof, .speedscope, .firefox, .calls",
    );
    ends(&["--", "false"], 4, "exited with code 1; -i shows what it did regardless");
    assert_eq!(place.run(["inspect", "calls", "-i", "--", "false"]).code, 0);
    assert!(!Path::new(&place.file("x.csv")).exists());
}

#[test]
fn a_process_that_outlives_the_program_is_reported() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // The program ends only after the other process has begun to count: one that is ended earlier has no counts.
    let script = "rm -f begun; (: >begun; while :; do :; done) & while [ ! -e begun ]; do :; done; exit 0";
    let words = ["sh", "-c", script];
    let calls = place.run(["inspect", "calls", "--"].iter().chain(&words));
    let remark = "of its processes outlived the program and were ended; they are counted until then";
    assert!(calls.code == 0 && calls.stderr.contains(remark), "{}", calls.exchange());
    let line = format!("sh -c '{script}'");
    let explained = place.run(["explain", "--no-time", "--runs", "2", &line, &line]);
    assert_eq!(explained.code, 0, "{}", explained.exchange());
    let text = explained.unwrapped();
    assert!(text.contains(&format!("A: 1 {remark}")), "{}", explained.exchange());
}

#[test]
fn a_process_that_was_killed_is_not_passed_over() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // The script kills the child only after it has begun to count: a child killed earlier would have no counts to lose.
    let script = "sh -c 'echo >begun; sleep 60' & child=$!; while [ ! -e begun ]; do sleep 0.1; done; kill -9 $child; wait";
    let answer = place.run(["inspect", "calls", "-i", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    assert!(answer.stderr.contains("its counts are lost"), "{}", answer.exchange());
}

#[test]
fn a_profile_without_contexts_has_the_calls_and_claims_no_inclusive_cost() {
    if !has_valgrind() {
        return;
    }
    let place = compiled();
    let counted = calls(&place, &["--json", "--export", "app.callgrind"]).json();
    let read = place.run(["inspect", "calls", "--json", "--from", "app.callgrind"]).json();
    let of = |page: &Value, name: &str| {
        let functions = page["functions"].as_array().expect("functions").clone();
        functions.into_iter().find(|one| one["name"] == name).unwrap_or_default()
    };
    for (name, number) in [("work", 6), ("twice", 2), ("main", 1)] {
        let (one, other) = (of(&counted, name), of(&read, name));
        assert_eq!((&one["calls"], &other["calls"]), (&Value::from(number), &Value::from(number)), "{name}");
        assert_eq!(one["own"]["instructions"], other["own"]["instructions"], "{name}");
        assert!(one["inclusive"].is_object() && other["inclusive"].is_null(), "{other}");
    }
}

#[test]
fn a_profile_that_was_written_is_shown_and_explained_without_running_anything() {
    let place = Place::new();
    place.write("old.collapsed", "main;parse;hash 40000\nmain;print 20000\n");
    place.write("new.collapsed", "main;parse;hash 60000\nmain;print 20010\nmain;log 900\n");
    let shown =
        place.run(["inspect", "calls", "--from", "old.collapsed", "--export", "old.svg", "--json"]).json();
    assert_eq!(
        (&shown["functions"][0]["name"], &shown["unit"]),
        (&Value::from("hash"), &Value::from("samples"))
    );
    assert!(place.read("old.svg").contains("hash"));
    let mut bare = place.command(["explain", "old.collapsed", "new.collapsed"]);
    let answer = place.finish(bare.env("PATH", place.path()));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    for part in [
        "samples than A",
        "It shows first in hash: own code, 40,000 → 60,000",
        "log",
        "samples differ by chance",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.exchange());
    }
    // A difference of 10 in 20,000 samples lies within the sampling error.
    let json = place.run(["explain", "--json", "old.collapsed", "new.collapsed"]).json();
    let rows = json["explain"]["counts"][0]["rows"].as_array().expect("rows").clone();
    let print = rows.iter().find(|row| row["function"] == "print").expect("a row");
    assert_eq!((&print["within_spread"], &print["shown"]), (&Value::from(true), &Value::from(false)));
    place.write("new.collapsed", "main;parse;hash 40010\nmain;print 20010\nmain;log 5\n");
    let same = place.run(["explain", "old.collapsed", "new.collapsed"]);
    assert!(
        same.stdout.contains("No function differs by more than samples do by chance."),
        "{}",
        same.exchange()
    );
    for (content, says) in [("", "it is empty"), ("main;x y\n", "is not a whole number")] {
        place.write("new.collapsed", content);
        let answer = place.run(["explain", "old.collapsed", "new.collapsed"]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains("cannot read the profile ‘new.collapsed’"), "{}", answer.exchange());
        assert!(answer.stderr.contains(says), "{}", answer.exchange());
    }
}

#[test]
fn kept_profiles_are_explained_when_the_programs_are_gone() {
    if !has_valgrind() {
        return;
    }
    let place = compiled();
    let keep = |name: &str, source: &str| {
        place.write("app.c", source);
        output(&place, "cc", &["-O1", "-g", "-o", "app", "app.c"]);
        let words = ["inspect", "calls", "--export", name, "--", "./app"];
        let answer = place.run(words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    };
    let dearer = PROGRAM.replace("s += i;", "s += i ^ 3;");
    keep("old.calls", PROGRAM);
    keep("new.calls", &dearer);
    keep("renamed.calls", &dearer.replace("work(", "labour("));
    std::fs::remove_file(place.path().join("app")).expect("removed");
    let answer = place.run(["explain", "old.calls", "new.calls"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stdout.contains("It comes from work: own code"), "{}", answer.exchange());
    assert!(answer.stdout.contains("its code changed"), "{}", answer.exchange());
    let same = place.run(["explain", "old.calls", "old.calls"]);
    assert!(same.stdout.contains("execute the same"), "{}", same.exchange());
    // A caller of a renamed function has the same code.
    let renamed = place.run(["explain", "--json", "new.calls", "renamed.calls"]).json();
    assert_eq!(at(&renamed, "/explain/functions_changed"), 0, "{renamed:#}");
    let collapsed = place.run(["explain", "old.calls", "app.c"]);
    assert_eq!(collapsed.code, 2, "{}", collapsed.exchange());
}

#[test]
fn collections_of_a_profile_follow_from_what_the_program_allocates() {
    let place = Place::new();
    let profile = |work: u32, live: u32| {
        format!("main;schedule;work {work}\nmain;schedule;scheduleDoGC;GarbageCollect;evacuate {live}\n")
    };
    place.write("old.collapsed", profile(40_000, 20_000));
    place.write("new.collapsed", profile(46_000, 90_000));
    let answer = place.run(["explain", "old.collapsed", "new.collapsed"]);
    let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "It shows first in work: own code, 40,000 → 46,000 (100 % of the difference without garbage collection)",
        "Garbage collection (92 % of the difference; scheduleDoGC",
        "follows from what the program allocates and keeps in use, and from the collector’s settings.",
    ] {
        assert!(text.contains(part), "{part}: {}", answer.exchange());
    }
}
