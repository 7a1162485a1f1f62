//! Versions that are built several times, to measure the cost of building.

use crate::repository::Repository;
use crate::scripted_readings;
use crate::support::{Answer, Place};
use serde_json::Value;

/// Takes a history of two versions, the second of which takes a second longer to build and half as long to run. Returns
/// the answer and the report as JSON.
fn weighed(place: &Place, builds: &str) -> (Answer, Answer) {
    let repository = Repository::new(place, "repo");
    let commit = |seconds: &str| {
        repository.write("seconds", seconds);
        repository.write_program("app", &format!("#!/bin/sh\n: {seconds}\n"));
        repository.commit(seconds)
    };
    let names = ["0", "1"].map(|seconds| format!("./app @{}", &commit(seconds)[..10]));
    place.script(&[
        (names[0].as_str(), scripted_readings::arm(1.0, 1)),
        (names[1].as_str(), scripted_readings::arm(0.5, 2)),
    ]);
    let words = ["history", "--repo", "repo", "--scripted", "script.json", "--rounds", "8", "--time-only"];
    let steps = ["--build", "sleep $(cat seconds)", "--artifact", "app", "--builds", builds, "--", "./app"];
    let answer = place.run(words.iter().chain(&steps));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = place.run(["history", "report", "--repo", "repo", "--json"]);
    (answer, page)
}

fn build_times(page: &Value) -> Vec<usize> {
    let series = page["series"].as_array().expect("series").iter().find(|one| one["metric"] == "build.time");
    let points = series.expect("what building took")["points"].as_array().expect("points").iter();
    points.map(|point| point["readings"].as_array().expect("readings").len()).collect()
}

#[test]
fn several_builds_of_each_version_tell_after_how_many_runs_a_more_costly_build_pays_off() {
    let place = Place::new();
    let (answer, page) = weighed(&place, "8");
    let page = page.json();
    assert_eq!(build_times(&page), [8, 8], "{}", answer.exchange());
    let win = &page["break_even"][0];
    assert_eq!((&win["build_surely"], &win["run_surely"]), (&true.into(), &true.into()), "{win:#}");
    let [build, run, runs] = ["build", "run", "runs"].map(|key| win[key].as_f64().expect("a number"));
    assert!(build > 0.5e9 && run < 0.0 && (runs * -run / build - 1.0).abs() < 1e-9, "{win:#}");
    assert!(answer.stdout.contains("it pays off after"), "{}", answer.exchange());
}

#[test]
fn two_builds_of_each_version_do_not_tell_whether_a_more_costly_build_pays_off() {
    let place = Place::new();
    let (answer, page) = weighed(&place, "2");
    let page = page.json();
    assert_eq!(build_times(&page), [2, 2], "{}", answer.exchange());
    assert_eq!(page["break_even"][0]["runs"], Value::Null, "{page:#}");
    assert!(!answer.stdout.contains("it pays off after"), "{}", answer.exchange());
    let series = page["series"].as_array().expect("series");
    let cannot = series.iter().find(|one| one["metric"] == "build.time").map(|one| one["cannot"].clone());
    assert_eq!(
        cannot,
        Some(
            "2 readings of a version in rounds with others are too few: at least 6 are needed; use --builds 6".into()
        )
    );
}

#[test]
fn a_version_that_cannot_be_built_again_is_reported_and_keeps_its_readings() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write_program("app", "#!/bin/sh\n");
    let commit = repository.commit("once");
    let once = place.file("built").display().to_string();
    place.script(&[(format!("./app @{}", &commit[..10]).as_str(), scripted_readings::arm(1.0, 1))]);
    let step = format!("[ ! -e {0} ] && touch {0}", shell_words::quote(&once));
    let words = ["history", "--repo", "repo", "--scripted", "script.json", "--rounds", "8", "--time-only"];
    let more = ["--build", &step, "--artifact", "app", "--builds", "3", "--", "./app"];
    let answer = place.run(words.iter().chain(&more));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stdout.contains("could be built once and not again"), "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!((recorded.states(), recorded.readings("once", "build.time").len()), (vec!["built"], 1));
    assert!(recorded.remarks().contains(&"rebuild-failed"));
}

#[test]
fn a_history_that_was_written_as_json_is_imported_as_it_was() {
    let place = Place::new();
    let (_, page) = weighed(&place, "2");
    place.write("history.json", &page.stdout);
    let elsewhere = ["--store", "elsewhere.db"];
    let imported = place.run(["store", "import", "history.json"].iter().chain(&elsewhere));
    assert_eq!(imported.code, 0, "{}", imported.exchange());
    assert!(imported.stdout.contains("Imported 2 versions of 1 subject"), "{}", imported.exchange());
    let again = place.run(["history", "report", "last", "--json"].iter().chain(&elsewhere));
    assert_eq!(again.json(), page.json(), "the same readings, judged the same");
    let twice = place.run(["store", "import", "history.json"].iter().chain(&elsewhere));
    assert_eq!(twice.code, 2, "{}", twice.exchange());
    assert!(twice.stderr.contains("is in the store already"), "{}", twice.exchange());
    // The import refuses readings of a version that the file does not list.
    let mut stray = page.json();
    stray["arms"][0]["version"] = "elsewhere".into();
    place.write("stray.json", stray.to_string());
    let refused = place.run(["store", "import", "stray.json", "--store", "third.db"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{}", refused.exchange());
    assert!(refused.stderr.contains("not in history.versions"), "{}", refused.exchange());
}
