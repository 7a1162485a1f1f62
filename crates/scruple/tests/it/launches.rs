//! How often commands are launched, and what reports say about figures that were read few times.

use crate::programs::BURN;
use crate::repository::Repository;
use crate::scripted_readings::{arm, noisy_arm};
use crate::support::{Place, at};
use serde_json::Value;

fn weigh(place: &Place, launches: &str, commands: &[&str]) -> Value {
    let answer = place.run(["run", "--no-store", "--json", "-r", launches].iter().chain(commands));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer.json()
}

/// The number of readings of a metric of the first arm; 0 if it is absent.
fn readings(run: &Value, key: &str) -> u64 {
    run["arms"][0]["metrics"][key]["n"].as_u64().unwrap_or(0)
}

#[test]
fn no_command_is_launched_more_often_than_was_given_for_all_passes_together() {
    let place = Place::new();
    place.shell_script("one", "echo x >> one.log");
    place.shell_script("other", "echo x >> other.log");
    // The readings of time, memory and allocations.
    let expected =
        [(1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 1, 1]), (4, [1, 1, 1]), (10, [7, 1, 1]), (17, [8, 3, 3])];
    for (launches, read) in expected {
        let run = weigh(&place, &launches.to_string(), &["./one", "./other"]);
        for log in ["one.log", "other.log"] {
            assert_eq!(place.read(log).lines().count(), launches, "{log} of {launches}");
            place.write(log, "");
        }
        let found = ["time.wall", "memory.peak", "malloc.count"].map(|key| readings(&run, key));
        assert_eq!(found, read, "{launches} launches");
    }
    for (option, read) in [("--time-only", [6, 0, 0]), ("--count-only", [0, 2, 2])] {
        let run = weigh(&place, "6", &[option, "./one"]);
        assert_eq!(place.read("one.log").lines().count(), 6, "{option}");
        place.write("one.log", "");
        let found = ["time.wall", "memory.peak", "malloc.count"].map(|key| readings(&run, key));
        assert_eq!(found, read, "{option}");
    }
}

#[test]
fn of_one_launch_the_peak_of_a_large_program_is_known_and_the_rest_has_a_reason() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    let large = weigh(&place, "1", &["./burn 0 100000000"]);
    let peak = at(&large, "/arms/0/metrics/memory.peak/estimate").as_f64().expect("a peak");
    assert!((100e6..104e6).contains(&peak), "{peak}");
    let run = weigh(&place, "1", &["./burn 0"]);
    let absent = |key: &str| run["arms"][0]["metrics"][key]["absent"].as_str().unwrap_or("").to_owned();
    assert_eq!(absent("memory.peak"), "it is too small to be read from a timed launch: give -r 2 or more");
    assert_eq!(absent("malloc.count"), "there were no launches left for it: give -r 4 or more");
    let table = place.run(["run", "--no-store", "-r", "1", "./burn 0"]).stdout;
    assert!(table.contains("too small to be read from a timed launch"), "{table}");
}

#[test]
fn too_few_launches_for_all_counters_are_reported_with_the_number_that_suffices() {
    let place = Place::new();
    let answer = |launches: &str| {
        let words = ["run", "--no-store", "--count-only", "-r", launches, "--metrics", "alloc", "/bin/true"];
        place.run(words).stdout
    };
    let text = answer("2");
    assert!(text.contains("there were no launches left for it: give -r 3 or more"), "{text}");
    let enough = answer("3");
    assert!(!enough.contains("launches left"), "{enough}");
}

#[test]
fn a_count_that_was_read_once_is_not_called_exact() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    let quality = |launches: &str| {
        let run = weigh(&place, launches, &["./burn 0 1000"]);
        at(&run, "/arms/0/metrics/malloc.count/quality").as_str().unwrap_or("").to_owned()
    };
    assert_eq!([quality("4"), quality("12")], ["near", "exact"]);
}

#[test]
fn launches_that_take_long_are_announced() {
    let place = Place::new();
    let slow = arm(1.0, 1).with("memory", "time.wall", |_| 1e9).with("timing", "time.wall", |_| 1e9);
    let announced = |words: &[&str]| {
        let words = [&["--no-store", "true"], words].concat();
        place.play(&[("true", slow.clone())], &words).stderr
    };
    assert_eq!(
        announced(&["-r", "30"]),
        "one launch of each command takes 1.0 s: 30 of each, about 30 s in all; -r and --budget limit this\n"
    );
    assert_eq!(announced(&["-r", "12"]), "");
    assert!(
        announced(&[]).ends_with(" of each, at most about 60 s in all; -r and --budget limit this\n"),
        "{}",
        announced(&[])
    );
}

#[test]
fn a_first_launch_that_alone_is_slow_does_not_announce_a_long_run() {
    let place = Place::new();
    let time = |pass| move |launch: usize| if pass == "memory" && launch == 0 { 4e9 } else { 1e7 };
    let cold = arm(1.0, 1).launches("memory", 3).with("memory", "time.wall", time("memory"));
    let cold = cold.with("timing", "time.wall", time("timing"));
    let words = |more: &[&'static str]| [&["--no-store", "true"], more].concat();
    for more in [&[][..], &["-r", "30"]] {
        let answer = place.play(&[("true", cold.clone())], &words(more));
        assert_eq!(answer.stderr, "", "{more:?}");
    }
}

#[test]
fn no_version_of_a_history_is_launched_more_often_than_was_given_for_all_passes_together() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for number in 1..=3 {
        let log = place.file(&format!("log{number}"));
        repository.write("app.sh", &format!("echo x >> {}\n", log.display()));
        repository.commit(&format!("version {number}"));
    }
    // The readings of time, memory and allocations.
    for (launches, read) in [(1, [1, 0, 0]), (3, [2, 1, 0]), (10, [5, 1, 2]), (17, [8, 3, 2])] {
        for number in 1..=3 {
            place.write(&format!("log{number}"), "");
        }
        let (store, given) = (format!("{launches}.db"), launches.to_string());
        let words = ["history", "--repo", "repo", "--store", &store, "--all", "-r", &given, "--json"];
        let answer = place.run(words.iter().chain(&["--artifact", "app.sh", "--", "sh", "app.sh"]));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let shown = place.run(["show", "last", "--json", "--store", &store]).json();
        let found = ["time.wall", "memory.peak", "malloc.count"].map(|key| readings(&shown, key));
        assert_eq!(found, read, "{launches} launches");
        for number in 1..=3 {
            let launched = place.read(&format!("log{number}")).lines().count();
            assert!((1..=launches).contains(&launched), "version {number}: {launched} of {launches}");
        }
    }
}

#[test]
fn outputs_of_versions_cannot_be_compared_in_a_single_launch() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2]);
    let answer = place.run(["history", "--repo", "repo", "-r", "1", "--same-output", "--", "true"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("give -r 2 or more"), "{}", answer.exchange());
}

#[test]
fn launches_that_take_long_because_their_output_is_read_do_not_limit_the_others() {
    let place = Place::new();
    // In the memory pass, Scruple reads the output.
    let slow = noisy_arm(1.0, 1, 0.9).with("memory", "time.wall", |_| 4e9);
    let answer = place.play(&[("true", slow)], &["--no-store", "--json", "--budget", "10s", "true"]);
    let blocks = readings(&answer.json(), "time.wall");
    assert!(blocks > 10, "{blocks} blocks");
}
