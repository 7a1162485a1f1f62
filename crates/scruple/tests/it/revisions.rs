//! `scruple compare` of two revisions: both are built and weighed side by side.

use crate::repository::{BUILD, Repository};
use crate::support::{Answer, Place};
use std::fs::File;
use std::time::{Duration, SystemTime};

fn compare(place: &Place, words: &[&str]) -> Answer {
    let words =
        [&["compare", "--repo", "repo", "--no-store", "-r", "17"], &BUILD[..], words, &["--", "./app"]]
            .concat();
    place.run(words)
}

/// The estimate of a metric of the arm with this index.
fn estimate(answer: &Answer, arm: usize, metric: &str) -> f64 {
    answer.json()["arms"][arm]["metrics"][metric]["estimate"].as_f64().expect("an estimate")
}

#[test]
fn two_revisions_are_weighed_side_by_side_with_what_they_cost_to_build() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 5000, 2000]);
    let answer = compare(&place, &["HEAD~2", "HEAD", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!([0, 1].map(|arm| estimate(&answer, arm, "malloc.bytes")), [1000.0, 2000.0]);
    let run = answer.json();
    assert_eq!(run["arms"][0]["name"], "./app @HEAD~2");
    assert_eq!(run["arms"][1]["version"], repository.git(&["rev-parse", "HEAD"]));
    assert_eq!(run["arms"][1]["metrics"]["time.wall"]["n"], 8);
    assert_eq!(run["arms"][1]["metrics"]["build.time"]["n"], 1);
    assert!(estimate(&answer, 1, "build.bytes") > 1000.0);
    // With one build of each version, build times cannot be distinguished.
    let comparisons = run["comparisons"].as_array().expect("comparisons");
    let build = comparisons.iter().find(|one| one["metric"] == "build.time").expect("a comparison");
    assert_eq!(build["verdict"], "can't tell");
    let table = compare(&place, &["HEAD~2", "HEAD", "--limit", "malloc.bytes<+3%"]);
    assert_eq!(table.code, 1, "{}", table.exchange());
    assert!(table.stdout.contains("built bytes"), "{}", table.exchange());
    assert_eq!(compare(&place, &["HEAD~1", "HEAD", "--limit", "malloc.bytes<+3%"]).code, 0);
    // A revision that returns below an exceeded limit keeps the limit.
    let limit = |from: &str, to: &str| compare(&place, &[from, to, "--limit", "malloc.bytes<1500"]).code;
    assert_eq!([limit("HEAD", "HEAD~2"), limit("HEAD~2", "HEAD")], [0, 1]);
    place.assert_no_processes();
}

#[test]
fn uncommitted_changes_are_compared_with_the_merge_base() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000]);
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.commit_program("topic", 10, 2000, "");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit_program("main went on", 10, 7000, "");
    repository.git(&["checkout", "--quiet", "topic"]);
    let answer = compare(&place, &["--base", "main", "--json", "--time-only"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.json()["arms"][1]["name"].as_str().is_some_and(|name| name.starts_with("./app @HEAD (")));
    repository.write("app.c", &crate::repository::program(10, 3000, ""));
    let objects = || repository.git(&["count-objects"]);
    let before = objects();
    let answer = compare(&place, &["--base", "main", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!([0, 1].map(|arm| estimate(&answer, arm, "malloc.bytes")), [1000.0, 3000.0]);
    assert_eq!(answer.json()["arms"][1]["name"], "./app @working tree");
    assert_eq!((objects(), repository.git(&["status", "--porcelain"])), (before, "M app.c".to_owned()));
}

#[test]
fn a_change_that_the_times_of_the_files_hide_is_seen() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.git(&["config", "core.trustctime", "false"]);
    let some_time_ago = SystemTime::now() - Duration::from_secs(1000);
    let set_time = |name: &str| {
        let file = File::options().write(true).open(place.path().join("repo").join(name));
        file.and_then(|file| file.set_modified(some_time_ago)).expect("a time");
    };
    repository.write("app.c", &crate::repository::program(10, 2000, ""));
    set_time("app.c");
    repository.commit("a program");
    repository.write("app.c", &crate::repository::program(10, 3000, ""));
    set_time("app.c");
    set_time(".git/index");
    let answer = compare(&place, &["HEAD", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!([0, 1].map(|arm| estimate(&answer, arm, "malloc.bytes")), [2000.0, 3000.0]);
}

#[test]
fn one_build_of_each_version_does_not_show_whether_a_more_costly_build_pays_off() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_program("slow", 10, 100, "usleep(60000);");
    repository.write("costly", "");
    repository.commit_program("fast", 10, 100, "");
    let step = "if [ -e costly ]; then sleep 1; fi";
    let answer = compare(&place, &["HEAD~1", "HEAD", "--clean", "--build", step]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(text.contains("./app, from HEAD~1 to HEAD: a build took"), "{}", answer.exchange());
    assert!(text.contains("more, which may be chance; a run of it takes"), "{}", answer.exchange());
    assert!(text.contains("less: can’t tell whether it pays off"), "{}", answer.exchange());
}

#[test]
fn incomparable_runs_give_one_error() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000]);
    repository.commit_program("broken", 10, 1, "this is no C");
    let answer = compare(&place, &["HEAD~1", "HEAD"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (4, ""));
    assert!(
        answer
            .stderr
            .contains("‘HEAD’ cannot be weighed: the step ‘cc -O1 -o app app.c’ exited with code 1; see")
    );
    // On a runner of a pipeline nobody can open the log.
    let lines: Vec<&str> = answer.stderr.lines().skip(1).collect();
    assert!(lines.iter().any(|line| line.contains("this is no C")), "{}", answer.exchange());
    assert!(lines.len() <= 12 && lines.iter().all(|line| line.starts_with("    ")), "{}", answer.exchange());
    let answer = compare(&place, &["v1", "HEAD"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("there is no revision ‘v1’"), "{}", answer.exchange());
    let answer = place.run(["compare", "last"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("name a second stored run"), "{}", answer.exchange());
}

#[test]
fn every_command_of_the_configuration_is_compared_with_itself() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 2000]);
    place.write(
        "scruple.toml",
        "[[command]]\nname = \"one\"\nrun = \"./app\"\n[[command]]\nname = \"two\"\nrun = \"echo two\"\n\
         [build]\nsteps = [\"cc -O1 -o app app.c\"]\nartifacts = [\"app\"]\n",
    );
    let run = |words: &[&str]| {
        let words = [&["compare", "--repo", "repo", "--no-store", "-r", "17"], words].concat();
        place.run(words)
    };
    let answer = run(&["HEAD~1", "HEAD", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = answer.json();
    let comparisons = page["comparisons"].as_array().expect("comparisons").iter();
    let bytes: Vec<[&str; 3]> = comparisons
        .filter(|one| one["metric"] == "malloc.bytes")
        .map(|one| ["reference", "arm", "verdict"].map(|key| one[key].as_str().unwrap_or("")))
        .collect();
    assert_eq!(bytes, [["one @HEAD~1", "one @HEAD", "different"], ["two @HEAD~1", "two @HEAD", "same"],]);
    assert_eq!(
        page["arms"].as_array().map(|arms| arms.iter().filter(|arm| arm["role"] == "subject").count()),
        Some(4)
    );
    assert_eq!(
        page["warnings"]
            .as_array()
            .map_or(0, |all| all.iter().filter(|one| one["code"] == "outputs-differ").count()),
        0
    );
    let table = run(&["HEAD~1", "HEAD"]);
    assert_eq!(table.code, 0, "{}", table.exchange());
    let only = run(&["HEAD~1", "HEAD", "-n", "two", "--json"]).json();
    assert_eq!(only["arms"][0]["name"], "two @HEAD~1");
    let against_base = run(&["--base", "HEAD~1", "--json"]);
    assert_eq!(against_base.json()["arms"].as_array().map(Vec::len), Some(5));
    // A name that is neither a run nor a revision is a usage error.
    assert_eq!(run(&["nothing", "HEAD"]).code, 2);
}

#[test]
fn here_is_the_working_folder_in_steps_and_commands_and_files_outside_the_builds_are_named() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1000, 2000]);
    place.write("tool", "#!/bin/sh\ntest -s \"$1\"\n");
    place.write("input.txt", "text\n");
    let step = "(cat {here}/tool; sed 's/^/# /' app.c) > app && chmod +x app";
    let words = ["--repo", "repo", "--build", step, "--artifact", "app", "HEAD~1", "HEAD", "--", "./app"];
    for verb in [&["compare", "--no-store", "-r", "4"][..], &["explain"]] {
        if verb == ["explain"] && !crate::programs::has_valgrind() {
            continue;
        }
        let of = |input| place.run([verb, &words, &[input]].concat());
        let answer = of("{here}/input.txt");
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{}", answer.exchange());
        let answer = of("input.txt");
        assert_eq!(answer.code, 4, "{}", answer.exchange());
        assert!(answer.stderr.contains("write {here}/input.txt, or keep it"), "{}", answer.exchange());
    }
}

#[test]
fn a_script_that_is_the_same_for_all_versions_is_named() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1000, 2000]);
    place.write("tool.sh", "true\n");
    let words = "compare --no-store -r 4 --repo repo --build true --artifact app.c HEAD~1 HEAD -- sh";
    let of = |script| place.run(words.split(' ').chain([script]));
    let answer = of("{here}/tool.sh");
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let remark = "runs the present {here}/tool.sh, and what that loads from beside it";
    assert!(answer.unwrapped().contains(remark), "{}", answer.exchange());
    let answer = of("tool.sh");
    assert!(answer.stderr.contains("is not one of them: keep it with each version"), "{}", answer.exchange());
}
