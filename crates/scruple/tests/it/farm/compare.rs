//! `scruple compare` of two revisions on a farm: they are built once, and every node weighs both of them.

use crate::farm::command_lines::readings;
use crate::programs::or_skip;
use crate::repository::{BUILD, Repository, blocks};
use crate::slurm_cluster::Cluster;
use crate::support::{Place, at};
use serde_json::Value;

/// A place with a repository of two versions. The second one allocates twice as much.
pub fn place_with_versions() -> (Place, Repository) {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 2000]);
    (place, repository)
}

/// The words that compare these revisions, in six blocks.
pub fn words<'a>(revisions: &[&'a str]) -> Vec<&'a str> {
    let words = ["compare", "--repo", "repo", "--seed", "7", "-r", "15", "--json"];
    words.iter().chain(&BUILD).chain(revisions).chain(&["--", "./app"]).copied().collect()
}

/// Checks a comparison of the first version with the second one by this many units.
pub fn check(document: &Value, names: [&str; 2], units: usize) {
    for (name, bytes) in names.into_iter().zip([1000.0, 2000.0]) {
        assert_eq!(readings(document, name, "time.cpu").len(), 6 * units, "{name}: each unit once");
        let mut exact = readings(document, name, "malloc.bytes");
        exact.dedup();
        assert_eq!(exact, [bytes], "{name}");
        assert_eq!(readings(document, name, "build.time").len(), 1, "{name} was built once");
    }
    for arm in document["arms"].as_array().expect("arms").iter().filter(|arm| arm["role"] == "subject") {
        let blocks = blocks(arm);
        assert!(blocks.windows(2).all(|pair| pair[0] < pair[1]), "{blocks:?}");
    }
    let all = document["comparisons"].as_array().expect("comparisons");
    let bytes = all.iter().find(|one| one["metric"] == "malloc.bytes").expect("a comparison");
    assert_eq!(bytes["verdict"], "different");
}

#[test]
fn units_weigh_both_revisions_like_this_machine_and_each_is_built_once() {
    let (place, repository) = place_with_versions();
    let words = words(&["HEAD~1", "HEAD"]);
    let here = place.run(&words);
    assert_eq!(here.code, 0, "{}", here.exchange());
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nnodes = 2\nscratch = \"scratch\"\n");
    let answer = place.run(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let (here, document) = (here.json(), answer.json());
    check(&document, ["./app @HEAD~1", "./app @HEAD"], 2);
    assert_eq!(document["arms"][1]["version"], repository.git(&["rev-parse", "HEAD"]));
    for name in ["./app @HEAD~1", "./app @HEAD"] {
        for metric in ["malloc.count", "malloc.bytes", "malloc.peak", "build.bytes"] {
            let (mut ours, mut theirs) = (readings(&here, name, metric), readings(&document, name, metric));
            ours.dedup();
            theirs.dedup();
            assert!(ours.len() == 1 && ours == theirs, "{name}, {metric}: {ours:?} and {theirs:?}");
        }
    }
    assert_eq!(at(&document, "/provenance/nodes/0/name"), "here");
    let lines = std::fs::read_dir(place.file("cache/scruple/farm/lines")).expect("a folder");
    assert_eq!(lines.count(), 0, "what is in the store is not kept twice");
    place.assert_no_processes();
}

#[test]
fn a_working_tree_and_versions_for_nodes_without_a_compiler_are_built_on_this_machine() {
    let (place, repository) = place_with_versions();
    let node = format!("PATH={} exec {} \"$@\"", place.file("none").display(), env!("CARGO_BIN_EXE_scruple"));
    place.shell_script("on-a-node", &node);
    place.write(
        "scruple.toml",
        "[farm]\nkind = \"here\"\nscratch = \"scratch\"\nprogram = \"./on-a-node\"\nbuilds = \"here\"\n",
    );
    let answer = place.run(words(&["HEAD~1", "HEAD"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    check(&answer.json(), ["./app @HEAD~1", "./app @HEAD"], 1);
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nscratch = \"scratch\"\n");
    // Changes that are not committed are built here.
    repository.commit_program("smaller", 1000, 1000, "");
    repository.write("app.c", &crate::repository::program(1000, 2000, ""));
    let answer = place.run(words(&["HEAD"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    check(&answer.json(), ["./app @HEAD", "./app @working tree"], 1);
}

#[test]
fn a_build_that_fails_on_a_node_is_reported_with_its_output_and_is_tried_again() {
    let (place, _repository) = place_with_versions();
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nscratch = \"scratch\"\n");
    let build = format!("{} && cat {}", BUILD[1], place.file("needed").display());
    let mut words = words(&["HEAD~1", "HEAD"]);
    words.iter_mut().filter(|word| **word == BUILD[1]).for_each(|word| *word = &build);
    let answer = place.run(&words);
    assert!(
        answer.code == 4
            && answer.stderr.contains("‘HEAD~1’ cannot be weighed")
            && answer.stderr.contains("; its log ends with:\n    + ")
            && answer.stderr.contains("No such file"),
        "{}",
        answer.exchange()
    );
    place.write("needed", "");
    let answer = place.run(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    check(&answer.json(), ["./app @HEAD~1", "./app @HEAD"], 1);
}

#[test]
fn slurm_builds_two_revisions_and_weighs_both_of_them_on_each_node() {
    let Some(cluster) = or_skip(Cluster::start()) else { return };
    let (place, _repository) = place_with_versions();
    place.write("scruple.toml", "[farm]\nkind = \"slurm\"\n");
    let answer = place.finish(cluster.configure(&mut place.command(words(&["HEAD~1", "HEAD"]))));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    check(&answer.json(), ["./app @HEAD~1", "./app @HEAD"], 4);
    assert_eq!(place.run(["store", "list", "--json"]).stdout.matches("\"complete\"").count(), 1);
    cluster.assert_no_jobs();
}
