//! `scruple trend`: one subject over the stored runs.

use crate::scripted_readings::arm;
use crate::support::{Place, at};
use insta::assert_snapshot;

/// A place with nine runs, the last three of which allocate more and are slower.
fn place_with_nine_runs() -> Place {
    let place = Place::new();
    for seed in 1..=9 {
        let (factor, bytes) = if seed > 6 { (1.2, 5000.0) } else { (1.0, 4096.0) };
        let arm = arm(factor, seed).with("counting", "malloc.bytes", move |_| bytes);
        let seed = seed.to_string();
        let answer = place.play(&[("parse", arm)], &["-n", "parse", "-r", "16", "--seed", &seed, "true"]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    }
    place
}

#[test]
fn a_trend_names_the_run_that_changed_and_stays_on_one_class_of_machines() {
    let place = place_with_nine_runs();
    let mut run = place.run(["show", "last", "--json"]).json();
    run["run"]["id"] = "elsewhere".into();
    run["provenance"]["machine_class"] = "xeon/8/x86_64".into();
    place.write("again.json", run.to_string());
    assert_eq!(place.run(["store", "import", "again.json"]).code, 0);
    let words = ["trend", "parse", "--machine", "scripted", "--metrics", "time.cpu,malloc.bytes"];
    assert_snapshot!(place.run(words).exchange(), @r#"
    exit 0
    --- stdout
    parse · 9 runs, 1970-01-01 00:00 to 1970-01-01 00:00 UTC · scripted

    cpu  4.00 ms → 4.80 ms  (+20.1 %)
      ▁▁▁▁▁▁███
            1
      1  1970-01-01 00:00 scripted-7  +20.0 % [+20.0, +20.1]
      Without a change, runs differ by ±0.0 %. In so few runs, drift of the machine may look like a
      change.

    malloc bytes  4,096 B → 5,000 B  (+22.1 %)
      ▁▁▁▁▁▁███
            1
      1  1970-01-01 00:00 scripted-7  4,096 B → 5,000 B (+22.1 %)

    1 run of the class ‘xeon/8/x86_64’ left out, whose times cannot be compared: --machine xeon/8/x86_64
    shows it
    "#);
    let found = place.run([&words[..], &["--json"]].concat()).json();
    assert_eq!(at(&found, "/trend/runs").as_array().map(Vec::len), Some(9));
    let bytes = at(&found, "/trend/series").as_array().expect("series").iter();
    let bytes = bytes.clone().find(|one| one["metric"] == "malloc.bytes").expect("bytes");
    assert_eq!((at(bytes, "/changes/0/at"), at(bytes, "/exact")), (&6.into(), &true.into()));
    let all = place.run(["trend", "parse", "--machine", "all"]);
    assert!(all.stdout.contains("10 runs"), "{}", all.exchange());
    assert!(all.stdout.contains("machines of several classes"), "{}", all.exchange());
}

#[test]
fn counts_that_were_read_once_in_each_run_may_vary_without_a_change() {
    let place = Place::new();
    for seed in 1..=9 {
        let arm = arm(1.0, seed).with("counting", "malloc.bytes", move |_| 4096.0 + (seed % 3) as f64);
        let answer =
            place.play(&[("parse", arm)], &["-n", "parse", "-r", "3", "--seed", &seed.to_string(), "true"]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    }
    let read = place.run(["show", "last", "--json"]).json();
    assert_eq!(at(&read, "/arms/0/metrics/malloc.bytes/n"), 1);
    let found = place.run(["trend", "parse", "--metrics", "malloc.bytes", "--json"]).json();
    assert_eq!(at(&found, "/trend/series/0/exact"), false);
    assert!(at(&found, "/trend/series/0/changes").as_array().is_some_and(Vec::is_empty));
}

#[test]
fn a_subject_that_no_run_has_is_an_error_that_names_those_there_are() {
    let place = place_with_nine_runs();
    let answer = place.run(["trend", "parses"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("no stored run has ‘parses’: there are ‘parse’"), "{}", answer.exchange());
    let answer = place.run(["trend"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("name a subject: there are ‘parse’"), "{}", answer.exchange());
    // The command that lists the runs reads the store that was named.
    std::fs::copy(place.file("store.db"), place.file("other.db")).expect("a copy of the store");
    let answer = place.run(["trend", "parses", "--store", "other.db"]);
    assert!(answer.stderr.contains("`scruple store list --store other.db` shows"), "{}", answer.exchange());
    let answer = place.run(["history", "report", "last", "--store", "other.db"]);
    assert!(answer.stderr.contains("`scruple store list --store other.db` shows"), "{}", answer.exchange());
    let answer = place.run(["trend", "parse", "--machine", "nowhere"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("there are ‘scripted’"), "{}", answer.exchange());
    assert_eq!(place.run(["trend", "parse", "--metrics", "gc.count"]).code, 2);
}
