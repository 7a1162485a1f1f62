//! Histories of bench programs: each case is a subject of its own.

use crate::fake::write_bench;
use crate::repository::Repository;
use crate::support::{Answer, Place};
use serde_json::Value;

/// Build options for the bench program of [`commit_cases`], which needs no build.
const THERE: [&str; 4] = ["--build", "true", "--artifact", "bench"];

/// Commits a bench program with `cases`; `fake_bench.py` describes their format.
pub fn commit_cases(place: &Place, repository: &Repository, title: &str, cases: &[&str]) {
    write_bench(place, repository, "bench", cases);
    repository.commit(title);
}

fn take(place: &Place, words: &[&str]) -> Answer {
    let history = ["history", "--repo", "repo", "--json"];
    place.run(history.iter().chain(&THERE).chain(words))
}

/// The changes of `metric` of `subject`: the title of the version, the level before, and the level after.
fn changes(answer: &Answer, subject: &str, metric: &str) -> Vec<(String, f64, f64)> {
    let page = answer.json();
    let series = page["series"].as_array().expect("series");
    let one = series.iter().find(|one| one["subject"] == subject && one["metric"] == metric);
    let one = one.unwrap_or_else(|| panic!("no {metric} of {subject} in {}", answer.exchange()));
    let changes = one["changes"].as_array().expect("changes").iter();
    let texts = |change: &Value| {
        let at = change["at"].as_u64().expect("a place") as usize;
        let title = page["history"]["versions"][at]["title"].as_str().expect("a title").to_owned();
        (title, change["from"].as_f64().expect("a level"), change["to"].as_f64().expect("a level"))
    };
    changes.map(texts).collect()
}

fn remarks(answer: &Answer) -> Vec<String> {
    let page = answer.json();
    let warnings = page["warnings"].as_array().expect("warnings");
    warnings.iter().map(|one| format!("{}: {}", one["code"], one["text"]).replace('"', "")).collect()
}

#[test]
fn each_case_is_weighed_over_the_versions_and_may_come_and_go() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let commit = |title: &str, cases: &[&str]| commit_cases(&place, &repository, title, cases);
    let old = r#"{"name":"old","cost":50}"#;
    commit("first", &[r#"{"name":"parse","cost":100,"bytes":16}"#, old]);
    commit("second", &[r#"{"name":"parse","cost":100,"bytes":16}"#, old]);
    commit("slower", &[r#"{"name":"parse","cost":130,"bytes":16}"#, old]);
    commit("a byte", &[r#"{"name":"parse","cost":130,"bytes":17}"#, r#"{"name":"new","cost":9}"#]);
    commit("last", &[r#"{"name":"parse","cost":130,"bytes":17}"#, r#"{"name":"new","cost":9}"#]);
    let answer = take(&place, &["--rounds", "6", "--bench", "--", "./bench"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let times = changes(&answer, "parse", "time.wall");
    assert_eq!(times.len(), 1, "{}", answer.exchange());
    assert!(times[0].0 == "slower" && (times[0].2 / times[0].1 - 1.3).abs() < 0.01, "{times:?}");
    assert_eq!(changes(&answer, "parse", "alloc.bytes"), [("a byte".to_owned(), 16.0, 17.0)]);
    assert_eq!(changes(&answer, "old", "time.wall"), []);
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built", "same-binary", "built", "built", "same-binary"]);
    // One fresh process gives one reading: the cost of an iteration less the 2 ns of the tare.
    let parse = recorded.readings_of("slower", "parse", "time.wall");
    assert!(parse.len() == 6 && parse.iter().all(|one| (one - 130.0).abs() < 1.0), "{parse:?}");
    assert_eq!(recorded.readings_of("slower", "new", "time.wall"), [0.0; 0]);
    let short = recorded.version("a byte")["commit"].as_str().expect("an id")[..10].to_owned();
    let texts = remarks(&answer);
    assert!(texts.contains(&format!("came-and-went: ‘new’ is new at {short}")), "{texts:?}");
    assert!(texts.contains(&format!("came-and-went: ‘old’ is gone at {short}")), "{texts:?}");
    // A second history with the same options measures nothing again.
    let before = recorded.count("time.wall");
    assert_eq!(take(&place, &["--rounds", "6", "--bench", "--", "./bench"]).code, 0);
    assert_eq!(place.recorded().count("time.wall"), before);
}

#[test]
fn a_case_that_fails_is_recorded_and_a_program_without_cases_is_passed_over() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let commit = |title: &str, cases: &[&str]| commit_cases(&place, &repository, title, cases);
    let good = r#"{"name":"good","cost":50}"#;
    commit("whole", &[good, r#"{"name":"bad","cost":50}"#]);
    commit("half", &[good, r#"{"name":"bad","cost":50,"does":"throw"}"#]);
    commit("nothing", &[r#"{"name":"bad","cost":50,"does":"die"}"#]);
    repository.write_program("bench", "#!/bin/sh\nprintf 'one\\n  two\\n' >&2\nexit 3\n");
    repository.commit("no bench program");
    let answer = take(&place, &["--rounds", "3", "--bench", "--", "./bench"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built", "built", "run-failed", "run-failed"]);
    let half = recorded.version("half")["commit"].as_str().expect("an id")[..10].to_owned();
    let failed = format!("case-failed: ‘bad’ has no figures at {half}: ValueError: it threw");
    assert!(remarks(&answer).contains(&failed), "{:?}", remarks(&answer));
    assert_eq!(recorded.readings_of("half", "good", "time.wall").len(), 3);
    assert_eq!(recorded.absent("half", "bad", "time.wall"), "ValueError: it threw");
    let why = |title: &str| recorded.version(title)["why"].as_str().unwrap_or("").to_owned();
    assert!(
        why("nothing").starts_with("every case of ‘./bench’ failed, such as ‘bad’: "),
        "{}",
        why("nothing")
    );
    let said = why("no bench program");
    assert!(said.contains("exited with code 3") && said.contains("one two"), "{said}");
    place.assert_no_processes();
}

#[test]
fn a_version_at_which_every_case_is_skipped_has_not_failed() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let commit = |title: &str, cases: &[&str]| commit_cases(&place, &repository, title, cases);
    let (skips, dies) =
        (r#"{"name":"here","cost":50,"does":"skip"}"#, r#"{"name":"bad","cost":50,"does":"die"}"#);
    commit("whole", &[r#"{"name":"here","cost":50}"#]);
    commit("skipped", &[skips]);
    commit("neither", &[skips, dies]);
    let answer = take(&place, &["--rounds", "3", "--bench", "--", "./bench"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built", "built", "run-failed"]);
    assert_eq!(recorded.absent("skipped", "here", "time.wall"), "skipped: no such device");
    let why = recorded.version("neither")["why"].as_str().unwrap_or("").to_owned();
    assert!(why.starts_with("every case of ‘./bench’ failed or was skipped, such as ‘bad’: "), "{why}");
}

#[test]
fn commands_and_bench_programs_of_the_configuration_are_weighed_together() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    commit_cases(&place, &repository, "first", &[r#"{"name":"parse","cost":50}"#]);
    repository.git(&["rm", "--quiet", "bench"]);
    repository.write("kept", "");
    repository.commit("without a bench program");
    place.write(
        "scruple.toml",
        "[[command]]\nname = \"work\"\nrun = \"true\"\n[[bench]]\nname = \"micro\"\nprogram = \"./bench\"\n[build]\nsteps = [\"true\"]\n",
    );
    let answer = place.run(["history", "--repo", "repo", "--rounds", "3", "--time-only", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built"; 2]);
    assert_eq!(recorded.readings_of("first", "micro/parse", "time.wall").len(), 3);
    assert_eq!(recorded.readings_of("without a bench program", "work", "time.wall").len(), 3);
    let texts = remarks(&answer);
    assert!(
        texts.iter().any(|text| text.starts_with("bench-failed: at ") && text.contains("micro")),
        "{texts:?}"
    );
    let one = place.run(["history", "--repo", "repo", "--rounds", "1", "--time-only", "-n", "work"]);
    assert!(one.code == 0 && !one.stdout.contains("micro"), "{}", one.exchange());
    let none = place.run(["history", "--repo", "repo", "-n", "wrok"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("scruple.toml has no command or bench program ‘wrok’: it has ‘work’, ‘micro’"),
        "{}",
        none.stderr
    );
}

#[test]
fn a_bench_program_in_c_is_built_and_weighed_at_every_version() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let sdk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/c");
    for bytes in [100, 100, 101] {
        repository.write(
            "bench.c",
            &format!(
                "#define SCRUPLE_IMPLEMENTATION\n#include \"scruple.h\"\n#include <stdlib.h>\n\
                 static void allocate(void *input) {{ void *volatile p = malloc({bytes}); (void)input; free(p); }}\n\
                 int main(int argc, char **argv) {{ scruple_bench(\"allocate\", allocate); return scruple_main(argc, argv); }}\n"
            ),
        );
        repository.commit(&format!("{bytes}"));
    }
    let step = format!("cc -O1 -pthread -I{sdk} -o bench bench.c");
    let words = ["history", "--repo", "repo", "--rounds", "3", "--all", "--json", "--artifact", "bench"];
    let answer = place.run(words.iter().chain(&["--build", &step, "--bench", "--", "./bench"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(changes(&answer, "allocate", "malloc.bytes"), [("101".to_owned(), 100.0, 101.0)]);
    let recorded = place.recorded();
    assert_eq!(recorded.readings_of("101", "allocate", "time.wall").len(), 3);
    assert_eq!(recorded.readings_of("101", "./bench", "build.time").len(), 1);
    place.assert_no_processes();
}

#[test]
fn cases_are_counted_in_an_environment_that_is_the_same_from_every_shell() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let case = r#"{"name":"parse","cost":5,"bytes":100,"marked":"OF_A_SHELL"}"#;
    commit_cases(&place, &repository, "the first", &[case]);
    let words = ["history", "--repo", "repo", "--json", "--rounds", "1"];
    let words: Vec<&str> = words.iter().chain(&THERE).chain(&["--bench", "--", "./bench"]).copied().collect();
    let answer = place.finish(place.command(words).env("OF_A_SHELL", "ten bytes!"));
    let page = answer.json();
    let series = page["series"].as_array().expect("series").iter();
    let bytes = series.filter(|one| one["metric"] == "alloc.bytes" && one["subject"] == "parse");
    let readings: Vec<f64> = bytes
        .flat_map(|one| one["points"].as_array().expect("points"))
        .flat_map(|point| point["readings"].as_array().expect("readings"))
        .filter_map(Value::as_f64)
        .collect();
    assert!(!readings.is_empty() && readings.iter().all(|bytes| *bytes == 100.0), "{}", answer.exchange());
}
