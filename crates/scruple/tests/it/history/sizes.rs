//! Histories whose versions are weighed at different sizes of the work, and compared by the cost of one more unit of
//! it.

use crate::repository::Repository;
use crate::support::{Answer, Place};

/// A program that allocates 5000 bytes at its start, and `each` bytes for each unit of work. Its first argument is the
/// number of units.
fn program(each: u64, more: &str) -> String {
    format!(
        "#include <stdlib.h>\n#include <unistd.h>\nint main(int argc, char **argv) {{\nvoid *volatile p = malloc(5000);\n\
         for (long i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--) {{ p = malloc({each}); {more} }}\nreturn 0; }}\n"
    )
}

const CONFIGURATION: &str = "[[command]]\nname = \"work\"\nrun = \"./app {n}\"\n\
    [build]\nsteps = [\"cc -O1 -o app app.c\"]\nartifacts = [\"app\"]\n[history]\nparams = { n = 2000 }\n";

fn take(place: &Place, words: &[&str]) -> Answer {
    place.run(["history", "--repo", "repo", "--rounds", "5"].iter().chain(words))
}

#[test]
fn a_slow_commit_has_less_work_and_is_compared_by_slope() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let commit = |title: &str, each: u64, more: &str| {
        repository.write("app.c", &program(each, more));
        repository.commit(title)
    };
    commit("fast", 24, "usleep(20);");
    let slow = commit("slow", 24, "usleep(15000);");
    commit("fast again", 24, "usleep(20);");
    commit("a byte", 25, "usleep(20);");
    let overlay = format!("size = \"n\"\n[[history.overlay]]\ncommits = \"{slow}\"\nparams = {{ n = 20 }}\n");
    place.write("scruple.toml", CONFIGURATION.to_owned() + &overlay);
    let answer = take(&place, &["--all", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = answer.json();
    let series = |subject: &str, metric: &str| {
        let all = page["series"].as_array().expect("series");
        let one = all.iter().find(|one| one["subject"] == subject && one["metric"] == metric);
        one.unwrap_or_else(|| panic!("no {metric} of {subject} in {}", answer.exchange())).clone()
    };
    // A slope does not contain the 5000 bytes of the start.
    let bytes = series("work per n", "malloc.bytes");
    let values: Vec<f64> = bytes["points"]
        .as_array()
        .expect("points")
        .iter()
        .filter_map(|point| point["value"].as_f64())
        .collect();
    assert_eq!(values, [24.0, 24.0, 24.0, 25.0]);
    assert_eq!(bytes["changes"].as_array().map(Vec::len), Some(1));
    assert_eq!(bytes["changes"][0]["at"], 3);
    // The slow version has a hundredth of the work, and takes much longer for each unit. Undivided, both would take
    // longer than this. A busy machine may make sleeps some milliseconds longer, those of either size.
    let times = series("work per n", "time.wall");
    let [fast, slow] = [0, 1].map(|place| times["points"][place]["value"].as_f64().expect("a value"));
    assert!((5e6..150e6).contains(&slow) && (5e3..10e6).contains(&fast), "{fast} {slow}");
    // Metrics that are not additive, such as peak memory, have one series for each size.
    assert_eq!(series("work (n=20)", "memory.peak")["points"].as_array().map(Vec::len), Some(1));
    assert_eq!(series("work (n=2000)", "memory.peak")["points"].as_array().map(Vec::len), Some(3));
    assert_eq!(series("work", "build.bytes")["points"].as_array().map(Vec::len), Some(4));
    let warnings = page["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().any(|one| one["code"] == "slope"), "{warnings:?}");
    let csv = place.run(["history", "report", "--repo", "repo", "--export-csv", "-"]);
    assert!(csv.stdout.contains(";24;;"), "{}", csv.exchange());
    // Each block launches both sizes, and the store keeps the readings of both.
    let recorded = place.recorded();
    let sizes: Vec<f64> = recorded.arms().iter().filter_map(|arm| arm["params"]["n"].as_f64()).collect();
    assert_eq!(sizes, [2000.0, 200.0, 20.0, 2.0, 2000.0, 200.0, 2000.0, 200.0]);
}

#[test]
fn other_work_that_is_no_size_is_not_compared() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write("app.c", &program(24, ""));
    let old = repository.commit("old");
    repository.write("app.c", &program(25, ""));
    repository.commit("new");
    let overlay = format!("[[history.overlay]]\ncommits = \"{old}\"\nparams = {{ n = 1000 }}\n");
    place.write("scruple.toml", CONFIGURATION.to_owned() + &overlay);
    let answer = take(&place, &["--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = answer.json();
    let bytes: Vec<(&str, f64)> = page["series"]
        .as_array()
        .expect("series")
        .iter()
        .filter(|one| one["metric"] == "malloc.bytes")
        .filter_map(|one| Some((one["subject"].as_str()?, one["points"][0]["value"].as_f64()?)))
        .collect();
    assert_eq!(bytes, [("work (n=1000)", 29_000.0), ("work (n=2000)", 55_000.0)]);
    assert!(page["series"].as_array().is_some_and(|all| {
        all.iter().all(|one| one["metric"] != "malloc.bytes" || one["changes"] == serde_json::json!([]))
    }));
}

#[test]
fn an_invalid_size_of_the_work_is_one_error() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1]);
    let wrong = |size: &str| {
        place.write("scruple.toml", CONFIGURATION.to_owned() + size);
        let answer = take(&place, &[]);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""));
        answer.stderr
    };
    assert!(wrong("size = \"m\"\n").contains("no command has {m} in it"));
    let overlay = "size = \"n\"\n[[history.overlay]]\ncommits = \"HEAD\"\nparams = { n = 1 }\n";
    assert!(
        wrong(overlay).contains("a whole number of at least 2, but scruple.toml sets ‘n’ to ‘1’"),
        "{}",
        wrong(overlay)
    );
    assert!(wrong("sise = \"n\"\n").contains("did you mean ‘size’?"));
}
