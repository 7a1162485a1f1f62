//! Histories with a yardstick: a command that is launched together with every version.

use crate::repository::Repository;
use crate::scripted_readings;
use crate::support::{Answer, Place};
use serde_json::Value;

const YARDSTICK: &str = "md5sum data";

/// Takes a scripted history of twelve versions. `cost` and `yardstick` give the relative costs at each version.
fn weighed(place: &Place, cost: impl Fn(usize) -> f64, yardstick: impl Fn(usize) -> f64) -> Answer {
    let repository = Repository::new(place, "repo");
    let commits = repository.commit_allocations((0..12).map(|version| 1000 + version));
    let short = |place: usize| &commits[place][..10];
    let named = |name: &str, place: usize| format!("{name} @{}", short(place));
    let apps: Vec<(String, scripted_readings::Arm)> =
        (0..12).map(|i| (named("./app", i), scripted_readings::arm(cost(i), i as u64 + 1))).collect();
    let sticks: Vec<(String, scripted_readings::Arm)> =
        (0..12).map(|i| (named(YARDSTICK, i), scripted_readings::arm(yardstick(i), i as u64 + 50))).collect();
    let arms: Vec<(&str, scripted_readings::Arm)> =
        apps.iter().chain(&sticks).map(|(name, arm)| (name.as_str(), arm.clone())).collect();
    place.script(&arms);
    let words = [
        "--scripted",
        "script.json",
        "--rounds",
        "12",
        "--all",
        "--time-only",
        "--yardstick",
        YARDSTICK,
        "--json",
    ];
    let answer = place.history(&words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer
}

/// The changes of the only series of `metric`: the index of the version and the ratio of the levels.
fn changes(page: &Value, metric: &str) -> Vec<(u64, f64)> {
    let all = page["series"].as_array().expect("series");
    let series: Vec<&Value> = all.iter().filter(|one| one["metric"] == metric).collect();
    assert_eq!(series.len(), 1, "one subject has {metric}");
    let changes = series[0]["changes"].as_array().expect("changes").iter();
    changes
        .map(|one| (one["at"].as_u64().expect("a place"), one["ratio"].as_f64().expect("a ratio")))
        .collect()
}

#[test]
fn a_disturbance_that_also_slows_the_yardstick_does_not_change_the_ratio() {
    let place = Place::new();
    let slow = |version: usize| if version < 7 { 1.0 } else { 1.5 };
    let page = weighed(&place, slow, slow).json();
    let cpu = changes(&page, "time.cpu");
    assert!(matches!(cpu[..], [(7, ratio)] if (ratio - 1.5).abs() < 0.02), "{cpu:?}");
    assert_eq!(changes(&page, "yardstick.cpu"), []);
    assert_eq!(changes(&page, "yardstick.wall"), []);
}

#[test]
fn a_higher_cost_of_a_version_changes_the_ratio() {
    let place = Place::new();
    let answer = weighed(&place, |version| if version < 4 { 1.0 } else { 1.3 }, |_| 0.5);
    let page = answer.json();
    let ratio = changes(&page, "yardstick.cpu");
    assert!(matches!(ratio[..], [(4, ratio)] if (ratio - 1.3).abs() < 0.02), "{ratio:?}");
    let subjects: Vec<&Value> =
        page["series"].as_array().expect("series").iter().map(|one| &one["subject"]).collect();
    assert!(subjects.iter().all(|subject| **subject == "./app"), "the yardstick is not judged: {subjects:?}");
    let levels =
        page["series"].as_array().expect("series").iter().find(|one| one["metric"] == "yardstick.cpu");
    let first = levels.and_then(|one| one["levels"][0][2].as_f64()).expect("a level");
    assert!((first - 2.0).abs() < 0.02, "{first}");
    // A report of the stored history shows the yardstick too.
    let report = place.run(["history", "report", "--repo", "repo"]);
    assert!(report.stdout.contains("cpu / yardstick"), "{}", report.exchange());
}

#[test]
fn a_yardstick_is_another_command_and_can_be_launched() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 2000]);
    let same = place.history(&["--yardstick", "./app"]);
    assert!(same.code == 2 && same.stderr.contains("name another --yardstick"), "{}", same.exchange());
    let real = place.history(&["--rounds", "2", "--yardstick", "md5sum app", "--time-only"]);
    assert_eq!(real.code, 0, "{}", real.exchange());
    let run = place.run(["show", "last", "--json"]).json();
    let arms = run["arms"].as_array().expect("arms").iter();
    let sticks: Vec<&Value> = arms.filter(|arm| arm["role"] == "yardstick").collect();
    assert_eq!(sticks.len(), 2);
    assert!(sticks.iter().all(|arm| arm["metrics"]["time.wall"]["n"] == 2), "{sticks:#?}");
}
