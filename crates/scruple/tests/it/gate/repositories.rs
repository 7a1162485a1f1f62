//! Which two versions of a repository `scruple check` weighs, and its remarks on the others.

use super::gate;
use crate::fake::{fake, write_bench};
use crate::programs::{has_valgrind, python};
use crate::repository::{BUILD, Repository};
use crate::support::{Place, at};

#[test]
fn a_shallow_clone_of_a_merge_is_weighed_against_the_branch_that_it_merges_into() {
    let place = Place::new();
    let origin = Repository::new(&place, "origin");
    origin.commit_allocations([1000]);
    origin.git(&["checkout", "--quiet", "-b", "topic"]);
    origin.commit_allocations([1000, 2000]);
    origin.git(&["checkout", "--quiet", "main"]);
    origin.write("notes", "more");
    let tip = origin.commit("notes");
    origin.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "topic"]);
    let url = format!("file://{}", place.file("origin").display());
    let clone = |depth: &str| {
        let _ = std::fs::remove_dir_all(place.file("repo"));
        origin.git(&["clone", "--quiet", "--depth", depth, &url, &place.file("repo").display().to_string()]);
    };
    clone("2");
    let answer = gate(&place, &["--base", &tip]);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    assert!(answer.stdout.contains("the clone is shallow and ends at"), "{}", answer.exchange());
    // Both branches changed, and what is common to both is cut off on one side.
    origin.git(&["checkout", "--quiet", "topic"]);
    origin.commit_allocations([3000]);
    clone("3");
    let answer = gate(&place, &["--base", &tip]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
}

#[test]
fn changes_inside_a_submodule_are_not_taken_for_none() {
    let place = Place::new();
    let part = Repository::new(&place, "part");
    part.write("part.h", "int part = 1;\n");
    part.commit("part");
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000]);
    let url = format!("file://{}", place.file("part").display());
    repository.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "part"]);
    repository.commit("a submodule");
    let remark = "‘part’ has changes that are not committed in the submodule";
    let answer = gate(&place, &["--base", "HEAD"]);
    assert!(!answer.stdout.contains(remark), "{}", answer.exchange());
    repository.write("part/part.h", "int part = 2;\n");
    let answer = gate(&place, &["--base", "HEAD"]);
    assert!(answer.stdout.contains(remark), "{}", answer.exchange());
}

#[test]
fn an_empty_repository_has_no_commits_yet() {
    let place = Place::new();
    Repository::new(&place, "repo");
    for words in [&[][..], &["--base", "main"]] {
        let answer = gate(&place, words);
        assert_eq!(answer.code, 2);
        assert!(
            answer.stderr.contains("‘repo’ has no commits yet")
                || answer.stderr.contains("/repo’ has no commits yet"),
            "{}",
            answer.exchange()
        );
    }
}

#[test]
fn nobody_is_advised_to_commit_the_files_that_scruple_writes() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2]);
    let check = |results: &[&str]| {
        let words = ["check", "--repo", "repo", "--base", "HEAD~1", "-r", "3", "--gate", "malloc"];
        place.command(words.iter().chain(results).chain(&BUILD).chain(&["--", "./app"]))
    };
    // A build in the working tree leaves its artefact there.
    repository.write("app", "a program");
    // Each check finds what the checks before it have written.
    for results in [
        ["--store", "repo/kept.db", "--export", "repo/check.md"],
        ["--store", "repo/kept.db", "--export", "repo/check.md"],
        ["--store", "other.db", "--export", "repo/check.html"],
        ["--store", "other.db", "--export", "other.html"],
    ] {
        let shown = place.finish(&mut check(&results)).unwrapped();
        assert!(shown.contains("These decide") && !shown.contains("git add"), "{results:?}: {shown}");
    }
    place.finish(check(&["--store", "other.db"]).stdout(place.create("repo/log.txt")));
    let shown = place.read("repo/log.txt");
    assert!(shown.contains("These decide") && !shown.contains("git add"), "{shown}");
    repository.write("new.c", "int new;\n");
    let shown = place.finish(&mut check(&["--store", "other.db"])).unwrapped();
    assert!(shown.contains("‘new.c’ is not tracked by git"), "{shown}");
}

#[test]
fn the_base_is_the_branch_also_if_a_tag_has_its_name() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([2, 1]);
    repository.git(&["branch", "trunk"]);
    repository.git(&["tag", "trunk", "HEAD~1"]);
    repository.commit_allocations([2]);
    let answer = gate(&place, &["--base", "trunk"]);
    assert_eq!(answer.code, 1, "more than on the branch, as much as at the tag: {}", answer.exchange());
}

/// As on a push to the main branch, where a gate that only passes would seem to have weighed something.
#[test]
fn a_gate_of_a_commit_against_itself_says_so() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1]);
    let answer = gate(&place, &["--base", "HEAD"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(text.contains("Gate kept without measuring: ‘HEAD ("), "{}", answer.exchange());
    assert!(text.contains(" are the same commit, so there is no change to weigh."), "{}", answer.exchange());
}

#[test]
fn a_regression_of_a_script_is_named_by_its_function() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let source = |times: u32| {
        format!(
            "def tally(n):\n    for _ in range({times}): n += 1\n    return n\nfor i in range(100): tally(i)\n"
        )
    };
    repository.write("app.py", &source(10));
    repository.commit("one");
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.write("app.py", &source(400));
    repository.commit("two");
    let words =
        "check --repo repo --no-store --gate instructions --build true -r 12 --budget 10min --json --";
    let answer = place.run(words.split(' ').chain([python, "app.py"]));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let found = answer.json();
    let origin = at(&found, "/check/origins/0");
    let counts = "bytecode instructions of Python";
    assert_eq!((&origin["function"], &origin["counts"]), (&"tally".into(), &counts.into()), "{found:#}");
    assert_eq!((&origin["file"], &origin["lines"]), (&"app.py".into(), &serde_json::json!([2, 2])));
}

#[test]
fn where_a_regression_comes_from_is_not_looked_for_beyond_the_budget() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000]);
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.commit_program("more", 10, 1001, "");
    let answer = gate(&place, &["--budget", "100us"]);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let text = answer.unwrapped();
    let remark = "--budget left no time to find where regressions of ‘./app’ come from: `scruple explain --repo repo --build ";
    assert!(text.contains(remark) && text.contains(" -- ./app` says it"), "{}", answer.exchange());
    let whole = |line: &str| line.contains("`scruple explain ") && line.contains(" -- ./app`");
    assert!(answer.stdout.lines().any(whole), "a command on two lines is none: {}", answer.exchange());
    assert!(!text.contains("Where it comes from"), "{}", answer.exchange());
    let advice = "no figure that decides could be read. More launches, with a larger -r, may decide.";
    for (program, code) in [("false", 4), ("true", 3)] {
        let words = ["check", "--repo", "repo", "--no-store", "--build", "true", "-r", "1", "--", program];
        let answer = place.run(words);
        assert_eq!(answer.code, code, "{}", answer.exchange());
        assert_eq!(answer.unwrapped().contains(advice), code == 3, "{}", answer.exchange());
        assert!(!answer.stderr.contains("-i measures"), "there is no such option: {}", answer.exchange());
    }
}

#[test]
fn what_is_known_of_the_versions_is_said_in_the_results_of_suites_as_well() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 2000]);
    repository.write("new.c", "");
    let words = "check --repo repo --no-store --base HEAD~1 --build true --artifact app.c --gate alloc.bytes --budget 1ms";
    let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    words.extend(["--export", "gate.md", "--bench", "--"].map(str::to_owned));
    words.extend(fake(&place, &[r#"{"name":"zoo/ant","cost":5,"bytes":16}"#]));
    let script = words.iter_mut().find(|word| word.ends_with("fake_bench.py")).expect("a script");
    *script = "{here}/fake_bench.py".to_owned();
    let answer = place.run(words);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{}", answer.exchange());
    for text in ["runs the present {here}/fake_bench.py, and what", "new.c"] {
        assert_eq!(answer.unwrapped().matches(text).count(), 1, "{text}: {}", answer.exchange());
    }
    let comment = std::fs::read_to_string(place.file("gate.md")).expect("a comment");
    assert!(comment.contains("runs the present") && comment.contains("new.c"), "{comment}");
}

#[test]
fn cases_of_one_name_in_two_programs_have_the_names_of_their_programs() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let commit = |bytes: [&str; 2]| {
        for (program, bytes) in ["one", "two"].into_iter().zip(bytes) {
            let case = format!(r#"{{"name":"sum","cost":5,"bytes":{bytes}}}"#);
            write_bench(&place, &repository, program, &[&case]);
        }
        repository.commit("step");
    };
    let bench = |name: &str| format!("[[bench]]\nname = \"{name}\"\nprogram = \"./{name}\"\n");
    let limits = "[limits]\n\"two/sum.alloc.bytes\" = { max = \"40 B\" }\n";
    repository.write("scruple.toml", &format!("{}{}{limits}", bench("one"), bench("two")));
    commit(["16", "32"]);
    commit(["16", "48"]);
    let words = "check --base HEAD~1 --no-store --build true --artifact one --artifact two --gate alloc.bytes --budget 1ms";
    let mut command = place.command(words.split(' '));
    let answer = place.finish(command.current_dir(place.file("repo")));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(text.contains("regression two/sum allocated 32 B → 48 B"), "{text}");
    assert!(text.contains("Limit two/sum:alloc.bytes<=40 B: exceeded by ‘two/sum @HEAD"), "{text}");
}
