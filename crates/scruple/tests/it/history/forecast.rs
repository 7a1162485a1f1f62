//! The cost of a history is announced before it is spent.

use crate::repository::Repository;
use crate::support::{Answer, Place, at};
use std::process::Stdio;

/// Starts a history of three versions that takes long, and interrupts it when its standard error has these words.
/// Returns what it wrote there.
fn line_with(place: &Place, flag: &str, words: &str) -> String {
    let build = format!("cc {flag} -o app app.c");
    let history = ["history", "--repo", "repo", "--rounds", "200", "--build", &build, "--artifact", "app"];
    let output = place.file(&format!("output{flag}"));
    let mut child = place
        .command(history.iter().chain(&["--", "./app"]))
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&output).expect("a file"))
        .spawn()
        .expect("scruple runs");
    let text = || std::fs::read_to_string(&output).expect("a file");
    while !text().contains(words) {
        assert!(child.try_wait().expect("a child").is_none(), "it ended: {}", text());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    assert_eq!(child.wait().expect("an end").code(), Some(130), "{}", text());
    text()
}

#[test]
fn builds_launches_and_time_of_a_whole_history_are_announced_with_what_they_are_based_on() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for version in ["first", "second", "third"] {
        let body = format!("(void)\"{version}\"; struct timespec t = {{0, 50000000}}; nanosleep(&t, 0);");
        repository.commit_program(version, 10, 100, &body);
    }
    let first = line_with(&place, "-O1", "round 1: ");
    let lines: Vec<&str> = first.lines().collect();
    let counted = lines[0].strip_prefix("up to 3 builds and ").and_then(|rest| rest.split(' ').next());
    let launches: u32 = counted.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{first}"));
    assert!(launches > 3 * 200, "rounds, and launches that count: {first}");
    assert!(lines[0].ends_with("the time is estimated after the first build and launch"), "{first}");
    let place_of = |words: &str| {
        lines.iter().position(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words}: {first}"))
    };
    let forecast = place_of(": about ");
    assert!(place_of("version 1 of 3 built") < forecast && forecast < place_of("version 2 of 3 built"));
    assert!(lines[forecast].contains("a rough guess from what was built and launched so far"), "{first}");
    assert_eq!(first.matches(": about ").count(), 1, "{first}");
    // Another history of the repository knows the costs at once.
    let second = line_with(&place, "-O2", "version 1 of 3 built");
    let line = second.lines().next().unwrap_or_default();
    assert!(line.starts_with(&format!("up to 3 builds and {launches} launches: about ")), "{second}");
    assert!(line.contains("what another history of this repository recorded"), "{second}");
}

#[test]
fn a_version_without_build_steps_is_not_said_to_be_built() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for text in ["one", "two"] {
        repository.write("data", text);
        repository.commit(text);
    }
    let answer = place.run(["history", "--repo", "repo", "--rounds", "2", "--", "cat", "data"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stderr.contains("version 1 of 2 copied: "), "{}", answer.stderr);
    assert!(!answer.stderr.contains(" built in "), "{}", answer.stderr);
}

#[test]
fn counting_is_part_of_the_budget() {
    for farm in ["", "[farm]\nkind = \"here\"\nnodes = 1\n"] {
        let place = Place::new();
        let repository = Repository::new(&place, "repo");
        place.write("scruple.toml", farm);
        for number in 1..=5 {
            // The padding is set in the timing pass only.
            repository.write("app.sh", &format!("# {number}\n[ -n \"$SCRUPLE_PADDING\" ] || sleep 0.3\n"));
            repository.commit(&format!("version {number}"));
        }
        let words =
            ["history", "--repo", "repo", "--adaptive", "--budget", "3s", "--json", "--artifact", "app.sh"];
        let answer = place.run(words.iter().chain(&["--", "sh", "app.sh"]));
        let states = |answer: &Answer| -> Vec<String> {
            let json = answer.json();
            let versions = at(&json, "/history/versions").as_array().expect("versions").clone();
            versions.iter().map(|version| version["state"].as_str().unwrap_or("").to_owned()).collect()
        };
        let ends = ["built", "skipped", "skipped", "skipped", "built"];
        assert_eq!(states(&answer), ends, "{farm}: {}", answer.stderr);
        let again = place.run(words.iter().chain(&["--", "sh", "app.sh"]));
        assert_eq!(states(&again), ends, "the time is stored: {farm}: {}", again.stderr);
    }
}
