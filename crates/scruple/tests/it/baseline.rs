//! Suites compared with stored runs.

use crate::fake::bench_words;
use crate::support::Place;

const SUITE: &str = "
import sys
sys.path.insert(0, sys.argv.pop(1))
from scruple_bench import bench, main

@bench('sum', budgets={'time.wall': {'max': '1 min'}})
def total():
    return sum(range(10))

main()
";

#[test]
fn limits_hold_against_a_baseline_as_they_do_without() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        return crate::programs::skip("there is no python3");
    }
    let place = Place::new();
    let suite = place.write("suite.py", SUITE);
    let sdk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python");
    let bench = |words: &[&str]| {
        let effort = ["bench", "--processes", "6", "--blocks", "6", "--time-only"];
        let program = ["--", "python3", suite.to_str().expect("a path"), sdk];
        place.run([&effort[..], words, &program[..]].concat())
    };
    let first = bench(&["--label", "before"]);
    assert_eq!(first.code, 0, "{}", first.exchange());
    let kept = bench(&["--baseline", "before", "--check"]);
    assert_eq!(kept.code, 0, "{}", kept.exchange());
    assert!(kept.stdout.contains("Limit time.wall<=1 min: kept by ‘sum’"), "{}", kept.exchange());
    let exceeded = bench(&["--baseline", "before", "--limit", "time.wall<1ns"]);
    // On a busy machine the processes may differ so much, or so few be undisturbed, that a limit cannot be decided.
    assert!(matches!(exceeded.code, 1 | 3), "{}", exceeded.exchange());
    let changed = bench(&["--baseline", "before", "--limit", "time.wall<+100000%"]);
    assert!(matches!(changed.code, 0 | 3), "{}", changed.exchange());
}

#[test]
fn cases_that_only_the_baseline_has_are_named() {
    let place = Place::new();
    let case = |name: &str| format!(r#"{{"name":"{name}","cost":5,"bytes":16}}"#);
    let (ant, bee) = (case("zoo/ant"), case("zoo/bee"));
    let bench = |options: &[&str], cases: &[&str]| {
        place.run(bench_words(&place, &[&["--count-only"], options].concat(), cases))
    };
    let first = bench(&["--label", "before"], &[&ant, &bee]);
    assert_eq!(first.code, 0, "{}", first.exchange());
    let against = |options: &[&str], cases: &[&str]| {
        let answer = bench(&[&["--baseline", "before"], options].concat(), cases);
        (answer.code, answer.stdout.lines().find(|line| line.contains("not compared")).map(str::to_owned))
    };
    let named = |names: &str| Some(format!("! not compared: {names} in the run "));
    let same = |found: &(i32, Option<String>), names: &str| {
        found.0 == 0
            && named(names).zip(found.1.clone()).is_some_and(|(start, line)| line.starts_with(&start))
    };
    let gone = against(&[], &[&ant]);
    assert!(same(&gone, "‘zoo/bee’ is"), "{gone:?}");
    let renamed = against(&[], &[&case("zoo/cow")]);
    assert!(same(&renamed, "‘zoo/ant’, ‘zoo/bee’ are"), "{renamed:?}");
    assert_eq!(against(&["--filter", "ant"], &[&ant, &bee]), (0, None), "the others were not asked for");
    assert_eq!(against(&[], &[&ant, &bee]), (0, None));
    let change = against(&["--limit", "alloc.bytes<+3%"], &[&ant, &bee, &case("zoo/cow")]);
    assert_eq!(change, (0, None), "a case that is new is no change");
}

#[test]
fn cases_of_which_a_baseline_has_other_metrics_are_said_not_to_be_compared() {
    let place = Place::new();
    let bench = |options: &[&str]| {
        let effort = ["--processes", "3", "--blocks", "12"];
        place.run(bench_words(
            &place,
            &[&effort, options].concat(),
            &[r#"{"name":"zoo/ant","cost":5,"bytes":16}"#],
        ))
    };
    assert_eq!(bench(&["--time-only", "--label", "times"]).code, 0);
    assert_eq!(bench(&["--label", "both"]).code, 0);
    let said = "! not compared: ‘zoo/ant’: no metric was read both in the run ";
    let counts = bench(&["--count-only", "--baseline", "times"]);
    assert!(counts.code == 0 && counts.stdout.contains(said), "{}", counts.exchange());
    let limited = ["--count-only", "--baseline", "times", "--limit", "alloc.bytes<+3%", "--label", "counts"];
    assert_eq!(bench(&limited).code, 3);
    let alike = bench(&["--count-only", "--baseline", "both"]);
    assert!(alike.code == 0 && !alike.stdout.contains("not compared"), "{}", alike.exchange());
    let stored = place.run(["compare", "times", "counts"]);
    assert!(stored.stdout.contains(&format!("{said}times and in counts")), "{}", stored.exchange());
}

#[test]
fn no_case_is_called_the_reference_where_that_is_in_the_baseline() {
    let place = Place::new();
    let ant = r#"{"name":"zoo/ant","cost":5,"bytes":16}"#;
    let bee = |does: &str| format!(r#"{{"name":"zoo/bee","cost":5,"bytes":16{does}}}"#);
    let skips = bee(r#","does":"skip""#);
    let bench = |options: &[&str], bee: &str| {
        let effort = ["--processes", "3", "--blocks", "12"];
        let answer = place.run(bench_words(&place, &[&effort, options].concat(), &[ant, bee]));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer.stdout
    };
    bench(&["--label", "skips"], &skips);
    bench(&["--label", "both"], &bee(""));
    bench(&["--time-only", "--label", "times"], &bee(""));
    let times = bench(&["--baseline", "times", "--metrics", "alloc.bytes", "--export", "times.md"], &bee(""));
    assert!(!times.contains(" reference\n") && !place.read("times.md").contains("| reference"), "{times}");
    // Of two stored runs, the earlier one is the reference, but not of a case that it has skipped.
    let answer = place.run(["compare", "skips", "both"]);
    let row = |name: &str| {
        answer.stdout.lines().find(|line| line.contains(name)).unwrap_or_default().trim_end().to_owned()
    };
    assert!(row("ant @skips").ends_with("reference"), "{}", answer.exchange());
    assert!(row("bee @both").ends_with("no counterpart"), "{}", answer.exchange());
}
