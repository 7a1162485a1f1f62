//! The disk space of built versions.

use crate::repository::Repository;
use crate::support::Place;

#[test]
fn builds_are_cleaned_away_and_made_again_when_they_are_needed() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2, 3]);
    let clean = |words: &[&str]| {
        let answer = place.run(["history", "clean", "--repo", "repo"].iter().chain(words));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer.stdout
    };
    assert_eq!(clean(&[]), "nothing to remove: no version was built here\n");
    assert_eq!(place.history(&["--rounds", "2", "--time-only"]).code, 0);
    let builds = || {
        let built = place.work().join("history").read_dir().expect("a folder").flatten().next();
        built.map_or(0, |key| key.path().join("built").read_dir().map_or(0, Iterator::count))
    };
    assert!(clean(&["--dry-run"]).starts_with("repo: would free "), "{}", clean(&["--dry-run"]));
    assert!(clean(&["--older-than", "1d"]).contains("freed 0 B (0 builds); "));
    assert_eq!(builds(), 3);
    assert!(clean(&["--older-than", "0d"]).contains(" (3 builds); "));
    assert_eq!(builds(), 0);
    // Every reading exists already, so that nothing is built.
    assert_eq!(place.history(&["--rounds", "2", "--time-only"]).code, 0);
    assert_eq!(builds(), 0);
    // More rounds need the builds again, and continue the same arms.
    assert_eq!(place.history(&["--rounds", "4", "--time-only"]).code, 0);
    let recorded = place.recorded();
    assert_eq!((recorded.states(), recorded.count("time.wall")), (vec!["built"; 3], 12));
    assert_eq!(builds(), 3);
    assert!(clean(&[]).contains(" (3 builds), in "));
    assert_eq!(
        place.run(["history", "clean", "--all"]).stdout,
        "nothing to remove: no version was built here\n"
    );
}

#[test]
fn builds_that_an_earlier_history_made_use_no_budget() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations((0..9).map(|version| 100 * (version + 1)));
    let take = |name: &str| {
        let words = [
            "history",
            "--repo",
            "repo",
            "--adaptive",
            "--budget",
            "11s",
            "--build",
            "sleep 6",
            "--label",
            name,
        ];
        let build = ["--build", "cc -O1 -o app app.c", "--artifact", "app", "-n", name, "--", "./app"];
        let answer = place.run(words.iter().chain(&build));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let weighed = place.recorded().states().iter().filter(|state| **state == "built").count();
        (weighed, answer)
    };
    // Two builds of six seconds use up the budget: only the ends are built.
    assert_eq!(take("first").0, 2);
    // Another history finds them, and has time for the next version.
    let (weighed, answer) = take("second");
    assert!(answer.stderr.contains("version 1 of 9 was built before, in "), "{}", answer.stderr);
    assert!(weighed > 2, "{}", answer.exchange());
}
