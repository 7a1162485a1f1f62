//! Histories that are resumed and named, and their progress messages.

use crate::repository::Repository;
use crate::support::Place;

/// C statements that allocate as many bytes as the environment has characters.
const COPIES: &str = "extern char **environ;\nsize_t held = 0;\n\
    for (char **e = environ; *e; e++) for (char *c = *e; *c; c++) held++;\nvoid *volatile q = malloc(held);\nq = q;";

#[test]
fn counts_are_the_same_if_another_shell_continues_a_history() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let first = repository.commit_program("first", 10, 100, COPIES);
    repository.commit_program("second", 20, 100, COPIES);
    let words = ["--rounds", "2", "--json"];
    let answer = place.history(&[&[first.as_str()], &words[..]].concat());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let all = ["history", "--repo", "repo", "--build", "cc -O1 -o app app.c", "--artifact", "app"];
    let other = [("SHELL_OF_ANOTHER_KIND", "with a long value, as they have"), ("LANG", "C.UTF-8")];
    let mut again = place.command(all.iter().chain(&words).chain(&["--", "./app"]));
    let answer = place.finish(again.envs(other));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    let bytes = |title: &str| recorded.readings(title, "malloc.bytes");
    assert!(
        !bytes("first").is_empty() && bytes("first")[0] == bytes("second")[0],
        "{:?} {:?}",
        bytes("first"),
        bytes("second")
    );
    let series = answer.json()["series"].clone();
    let series =
        series.as_array().expect("series").iter().find(|one| one["metric"] == "malloc.bytes").cloned();
    let series = series.expect("bytes were counted");
    assert_eq!(
        (series["exact"].as_bool(), series["changes"].as_array().map(Vec::len)),
        (Some(true), Some(0))
    );
}

#[test]
fn a_history_that_is_resumed_has_the_margin_that_is_given_or_else_its_own() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([100_000, 101_000]);
    let minor = |more: &[&str]| {
        let answer =
            place.history(&[&["--rounds", "2", "--json", "--metrics", "malloc.bytes"], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer.json()["events"][0]["minor"].as_bool()
    };
    assert_eq!(minor(&[]), Some(true));
    assert_eq!(minor(&["--margin", "0.1%"]), Some(false));
    assert_eq!(minor(&[]), Some(false));
}

#[test]
fn here_is_the_folder_of_the_configuration_in_build_steps_too() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1]);
    place.write("flags", "-O1");
    place.write(
        "scruple.toml",
        "[[command]]\nname = \"work\"\nrun = \"./app\"\n[build]\n\
         steps = [\"here=x; test ${here} = x && cc $(cat {here}/flags) -o app app.c\"]\nartifacts = [\"app\"]\n",
    );
    let answer = place.run(["history", "--repo", "repo", "--rounds", "1", "--time-only"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.recorded().states(), ["built"]);
}

#[test]
fn each_build_and_each_round_is_printed_where_no_terminal_shows_it() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2]);
    let answer = place.history(&["--rounds", "2"]);
    let lines = |what: &str| answer.stderr.lines().filter(|line| line.contains(what)).count();
    assert_eq!((lines(" built in "), lines("timed 2 versions")), (2, 2), "{}", answer.stderr);
    assert!(lines("counted and checked: ") >= 2, "{}", answer.stderr);
    assert!(answer.stderr.contains("version 2 of 2 built in "), "{}", answer.stderr);
}

#[test]
fn six_builds_that_fail_in_a_row_end_it_and_the_same_command_goes_on() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for version in 0..8 {
        repository.commit_program(&format!("broken {version}"), 10, 100, "fail_to_compile(;");
    }
    repository.commit_program("good", 10, 100, "");
    let take = |words: &[&str]| place.history(&[words, &["--rounds", "1", "--time-only", "--all"]].concat());
    let answer = take(&[]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(answer.stderr.contains("6 builds failed one after the other, the last at "), "{}", answer.stderr);
    assert!(answer.stderr.contains("version 6 of 9 failed: "), "{}", answer.stderr);
    let states = |wanted: &str| place.recorded().states().iter().filter(|state| **state == wanted).count();
    assert_eq!((states("build-failed"), states("queued")), (6, 3));
    assert_eq!(take(&[]).code, 0);
    assert_eq!((states("build-failed"), states("built")), (8, 1));
    // With `--keep-going`, failures never stop the history.
    assert_eq!(take(&["--retry", "--keep-going"]).code, 0);
}

#[test]
fn a_history_without_weighed_versions_hides_no_other_and_each_can_be_named() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2]);
    assert_eq!(place.history(&["--rounds", "1", "--time-only"]).code, 0);
    let status = |words: &[&str]| {
        let answer = place.run(["history", "status", "--repo", "repo"].iter().chain(words));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer.stdout
    };
    let good = status(&[]).split_whitespace().next().expect("an id").to_owned();
    let wrong =
        ["history", "--repo", "repo", "--build", "cc -o app app.c", "--artifact", "app", "--", "./ap"];
    assert_eq!(place.run(wrong).code, 4);
    // `history status` shows the failed history; `history report` shows the newest one that could be weighed.
    let lines = status(&[]);
    assert!(!lines.starts_with(&good) && lines.contains("run-failed"), "{lines}");
    assert!(place.run(["history", "report", "--repo", "repo"]).stdout.contains("2 versions: 2 weighed"));
    let (_, others) = lines.split_once("Other histories of this repository").expect("others");
    let other = others.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("an id");
    assert!(other == good && others.contains("-- ./app"), "{others}");
    assert!(status(&[other]).contains("  built "));
    let wrong = lines.split_whitespace().next().expect("an id");
    assert_eq!(place.run(["history", "report", wrong]).code, 0);
    // The name of a history that does not exist is an error.
    let missing = place.run(["history", "report", "nothing"]);
    assert_ne!(missing.code, 0);
}

#[test]
fn an_interrupted_history_with_nothing_left_to_do_is_complete() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1]);
    assert_eq!(place.history(&["--rounds", "2", "--time-only"]).code, 0);
    let store = rusqlite::Connection::open(place.file("store.db")).expect("the store");
    store.execute("UPDATE run SET state = 'interrupted'", []).expect("changed");
    drop(store);
    let answer = place.history(&["--rounds", "2", "--time-only"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.recorded().ended(), "complete");
}

#[test]
fn a_shown_history_is_its_report_and_its_json_names_the_versions_of_its_arms() {
    let place = Place::new();
    let commits = Repository::new(&place, "repo").commit_allocations([1, 2, 3]);
    assert_eq!(place.history(&["--rounds", "2", "--time-only"]).code, 0);
    let report = place.run(["history", "report", "--repo", "repo"]);
    assert_eq!(place.run(["show", "last"]).stdout, report.stdout);
    let shown = place.run(["show", "last", "--json"]).stdout;
    assert!(commits.iter().all(|commit| shown.contains(&format!("./app @{}", &commit[..10]))), "{shown}");
}

#[test]
fn peak_memory_is_read_as_often_as_a_verdict_needs_also_where_it_was_read_less_often() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2]);
    let readings = || {
        let page = place.run(["history", "report", "--repo", "repo", "--json"]).json();
        let series = page["series"].as_array().expect("series").clone();
        let peak = series.into_iter().find(|one| one["metric"] == "memory.peak").expect("peak memory");
        let points = peak["points"].as_array().expect("points").iter();
        let counts: Vec<usize> =
            points.map(|point| point["readings"].as_array().expect("readings").len()).collect();
        (counts, peak["cannot"].as_str().map(str::to_owned))
    };
    assert_eq!(place.history(&["--rounds", "2"]).code, 0);
    let (counts, cannot) = readings();
    assert!(counts.iter().all(|count| *count < 6), "{counts:?}");
    assert!(cannot.is_some_and(|why| why.contains("use --rounds 6")));
    assert_eq!(place.history(&["--rounds", "6"]).code, 0);
    let (counts, cannot) = readings();
    assert!(counts.iter().all(|count| *count >= 6) && cannot.is_none(), "{counts:?} {cannot:?}");
}

#[test]
fn counts_that_few_launches_left_out_are_read_when_a_history_is_resumed_with_more() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1000, 2000]);
    let take = |launches: &str| {
        let answer = place.history(&["-r", launches]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let recorded = place.recorded();
        let count = |metric: &str| recorded.readings("version 1", metric).len();
        ["time.wall", "memory.peak", "malloc.bytes"].map(count)
    };
    assert_eq!(take("1"), [1, 0, 0]);
    assert_eq!(take("3"), [2, 1, 0]);
    assert_eq!(take("4"), [2, 2, 2], "an instrument is attached twice or not at all");
    assert_eq!(take("4"), [2, 2, 2], "no work is left");
}

#[test]
fn instructions_that_cannot_be_counted_in_so_few_launches_do_not_keep_a_history_from_ending() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1000]);
    let words = ["-r", "3", "--metrics", "instructions", "--yardstick", "true"];
    let answer = place.history(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(answer.stderr.matches("counted and checked: ").count(), 1, "{}", answer.stderr);
}

#[test]
fn a_command_for_which_the_budget_leaves_nothing_says_so() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations(1..=3);
    let take = |more: &[&str]| {
        let answer = place.history(&[&["--time-only"], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer.stderr
    };
    let sentence = "nothing more is done within the budget of 1 ns: this history has taken ";
    let first = take(&["--budget", "1ns"]);
    assert!(!first.contains(sentence) && first.contains("round 6: timed 3 versions"), "{first}");
    let again = take(&["--budget", "1ns"]);
    assert!(again.contains(sentence) && !again.contains("timed 3 versions"), "{again}");
    assert_eq!(take(&["--rounds", "6"]), "");
}

#[test]
fn a_subcommand_behind_options_is_answered_with_the_right_order() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1]);
    let answer = place.run(["history", "--repo", "repo", "status"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("before all options: `scruple history status …`"), "{}", answer.stderr);
}
