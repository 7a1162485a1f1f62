//! Which two versions of a repository `scruple check` weighs, and what it says of the others.

use super::gate;
use crate::repository::{BUILD, Repository};
use crate::support::Place;

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
