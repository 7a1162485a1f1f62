//! `scruple check` with limits, and its advice if it can't tell.

use super::{bytes, scripted};
use crate::fake::{fake, fake_line};
use crate::scripted_readings::{arm, noisy_arm};
use crate::support::{Answer, Place};

#[test]
fn a_limit_decides_beside_the_metrics() {
    let place = Place::new();
    let gate = |limit: &str| scripted(&place, arm(1.0, 1), arm(1.1, 2), &["--limit", limit]).code;
    assert_eq!(["time.cpu<+3%", "time.cpu<+30%", "malloc.bytes<4kB"].map(gate), [1, 0, 1]);
}

#[test]
fn a_count_that_neither_side_has_is_named_with_the_reason() {
    let place = Place::new();
    let lacks = |seed| arm(1.0, seed).absent("counting", "malloc.count", "it is linked statically");
    let answer = scripted(&place, lacks(1), lacks(2), &[]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let remark = "! mallocs decide nothing: it is linked statically";
    assert_eq!(answer.unwrapped().matches(remark).count(), 1, "{}", answer.exchange());
}

#[test]
fn a_gate_that_cannot_tell_names_the_option_that_was_given() {
    let place = Place::new();
    let noisy = |seed| noisy_arm(1.0, seed, 0.3);
    place.script(&[("old", noisy(5)), ("new", noisy(6))]);
    let words = "check run --scripted script.json --no-store -n old -n new --gate time.cpu";
    let given = |more: &[&str]| {
        let answer = place.run(words.split(' ').chain(more.iter().copied()).chain(["true", "true new"]));
        assert_eq!(answer.code, 3, "{}", answer.exchange());
        answer.unwrapped()
    };
    assert!(given(&["-r", "26"]).contains("More launches, with a larger -r, may decide."));
    assert!(given(&["--budget", "1s", "-M", "20"]).contains("A larger --budget may decide."));
}

#[test]
fn a_count_that_varies_in_the_new_version_only_gets_the_reading_that_decides() {
    let place = Place::new();
    let against = fake_line(&place, &[r#"{"name":"zoo/ant","cost":5,"bytes":16}"#]);
    let varies =
        format!(r#"{{"name":"zoo/ant","cost":5,"bytes":24,"drawn":"{}"}}"#, place.file("draws").display());
    let words = "check bench --no-store --count-only --gate alloc.bytes --against";
    let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    words.extend([against, "--".to_owned()]);
    words.extend(fake(&place, &[&varies]));
    let answer = place.run(words);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
}

#[test]
fn a_change_that_returns_below_a_limit_passes() {
    let place = Place::new();
    let gate = |limit: &str| {
        let answer = scripted(&place, bytes(arm(1.0, 1), 5000.0), arm(1.0, 2), &["--limit", limit]);
        (answer.code, answer.stdout.contains("exceeded by ‘old’"))
    };
    assert_eq!(gate("malloc.bytes<4.5kB"), (0, false));
    assert_eq!(gate("old:malloc.bytes<4.5kB"), (1, true));
}

#[test]
fn launches_that_are_given_go_to_what_decides() {
    let place = Place::new();
    place.script(&[("old", bytes(arm(1.0, 1), 1000.0)), ("new", bytes(arm(1.0, 2), 2000.0))]);
    let given = |launches: &str, deciding: &str| {
        let all = ["check", "run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", "new"];
        place.run([&all[..], &["-r", launches, "--gate", deciding, "true", "true new"]].concat())
    };
    let answer = given("6", "malloc");
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let answer = given("6", "malloc,time.cpu");
    assert!(answer.stdout.contains("1 reading is too few"), "{}", answer.exchange());
}

/// Gates the counts of two builds of a suite with these cases.
fn gate_cases(place: &Place, cases: [&[&str]; 2], more: &[&str]) -> Answer {
    let [old, new] = cases;
    let words = ["check", "bench", "--no-store", "--count-only", "--gate", "alloc.bytes"];
    let mut words: Vec<String> = words.iter().chain(more).map(|word| (*word).to_owned()).collect();
    words.extend(["--against".to_owned(), fake_line(place, old), "--".to_owned()]);
    words.extend(fake(place, new));
    place.run(words)
}

const ANT: &str = r#"{"name":"zoo/ant","cost":5,"bytes":16}"#;
const BEE: &str = r#"{"name":"zoo/bee","cost":5,"bytes":32}"#;

#[test]
fn a_case_that_is_skipped_on_either_side_does_not_pass_in_silence() {
    let place = Place::new();
    let skips = r#"{"name":"zoo/ant","cost":5,"bytes":16,"does":"skip"}"#;
    let gate = |old: &str, new: &str| gate_cases(&place, [&[old, BEE], &[new, BEE]], &[]);
    let lost = gate(ANT, skips);
    assert_eq!(lost.code, 3, "{}", lost.exchange());
    assert!(lost.stdout.contains("16 B → –"), "{}", lost.exchange());
    assert!(lost.stdout.contains("no such device"), "{}", lost.exchange());
    let limited = gate_cases(&place, [&[ANT, BEE], &[skips, BEE]], &["--limit", "zoo/ant:alloc.bytes<20B"]);
    assert_eq!(limited.code, 3, "{}", limited.exchange());
    let why = "‘zoo/ant @new’: alloc.bytes was not weighed: skipped: no such device";
    assert!(limited.unwrapped().contains(why), "{}", limited.exchange());
    for new in [ANT, skips] {
        let answer = gate(skips, new);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let remark = "! ‘zoo/ant’ is not gated, because old does not run it: skipped: no such device";
        assert!(answer.stdout.contains(remark), "{}", answer.exchange());
    }
}

#[test]
fn a_gate_says_why_a_case_of_either_side_has_failed() {
    let place = Place::new();
    let throws = r#"{"name":"zoo/ant","cost":5,"bytes":16,"does":"throw"}"#;
    let why = "failed: ValueError: it threw";
    let lost = gate_cases(&place, [&[ANT, BEE], &[throws, BEE]], &[]);
    assert_eq!(lost.code, 4, "{}", lost.exchange());
    assert!(lost.stdout.contains(why), "{}", lost.exchange());
    let mended = gate_cases(&place, [&[throws, BEE], &[ANT, BEE]], &[]);
    let remark = format!("! ‘zoo/ant’ is not gated, because old does not run it: {why}");
    assert!(mended.stdout.contains(&remark), "{}", mended.exchange());
}

/// Each process runs one iteration that does not count and then one that does, into which the second event of two falls,
/// and none of three.
#[test]
fn one_collection_more_in_a_long_iteration_is_no_regression() {
    let place = Place::new();
    let [old, new] =
        [3, 2].map(|every| format!(r#"{{"name":"long","cost":10000000,"pause":[{every},1000]}}"#));
    let one = gate_cases(&place, [&[&old], &[&new]], &["--gate", "gc.count"]);
    assert!(one.code == 0 && one.stdout.contains("These decide: allocated, GCs"), "{}", one.exchange());
}

#[test]
fn limits_hold_for_the_cases_of_the_change_and_not_for_removed_ones() {
    let place = Place::new();
    let outcome = |cases: [&[&str]; 2], limit: &str| {
        let answer = gate_cases(&place, cases, &["--limit", limit]);
        (answer.code, answer.stdout.contains("only this version has it"))
    };
    let (removed, added): ([&[&str]; 2], [&[&str]; 2]) = ([&[ANT, BEE], &[ANT]], [&[ANT], &[ANT, BEE]]);
    assert_eq!(outcome(removed, "alloc.bytes<20B"), (0, false), "the removed case exceeds it");
    assert_eq!(outcome(removed, "alloc.bytes<+3%"), (0, false));
    assert_eq!(outcome(removed, "zoo/bee:alloc.bytes<40B"), (3, true), "no case of the change keeps it");
    assert_eq!(outcome(removed, "zoo/bee @old:alloc.bytes<20B"), (1, false));
    assert_eq!(outcome(added, "alloc.bytes<+3%"), (0, false));
    assert_eq!(outcome(added, "zoo/bee:alloc.bytes<+3%").0, 3);
    assert_eq!(outcome(added, "alloc.bytes<20B"), (1, false));
}

#[test]
fn budgets_of_the_change_are_limits_and_those_of_the_base_are_not() {
    let place = Place::new();
    let ant = |bytes: u32, most: u32| {
        format!(
            r#"{{"name":"zoo/ant","cost":5,"bytes":{bytes},"budgets":{{"alloc.bytes":{{"max":{most}}}}}}}"#
        )
    };
    let outcome = |old: (u32, u32), new: (u32, u32)| {
        let (old, new) = (ant(old.0, old.1), ant(new.0, new.1));
        let answer = gate_cases(&place, [&[&old, BEE], &[&new, BEE]], &[]);
        (answer.code, answer.stdout.contains("‘zoo/ant @old’"))
    };
    assert_eq!(outcome((16, 8), (16, 20)), (0, false), "a budget that the change raises");
    assert_eq!(outcome((16, 8), (8, 9)), (0, false), "a change that mends what exceeded a budget");
    assert_eq!(outcome((16, 20), (16, 8)), (1, false));
}
