//! Suites with many cases, and with cases that take longer than the budget.

use crate::fake::{bench, bench_freely};
use crate::support::Place;

#[test]
fn ten_thousand_cases_are_listed_and_as_many_as_are_wanted_weighed() {
    let place = Place::new();
    let list = bench(&place, &["--list"], &["--many", "10000"]);
    assert_eq!((list.code, list.stdout.lines().count()), (0, 10_000));
    let options = ["--no-store", "--seed", "7", "--processes", "1", "--blocks", "1", "--time-only"];
    let wanted = ["--filter", "many/000", "--filter", "many/001", "--filter", "many/002"];
    let answer = bench_freely(&place, &[&options[..], &wanted].concat(), &["--many", "10000"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let rows = answer.stdout.lines().filter(|line| line.contains(" 7.")).count();
    assert_eq!(rows, 300, "{}", answer.stdout.lines().take(8).collect::<Vec<_>>().join("\n"));
}

#[test]
fn cases_that_the_budget_does_not_suffice_for_are_left_out_and_reported() {
    let place = Place::new();
    let answer = bench_freely(
        &place,
        &["--no-store", "--budget", "100ms", "--seed", "7", "--time-only"],
        &["--many", "20000"],
    );
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let text = answer.unwrapped();
    assert!(text.contains("are left out: the budget"), "{text}");
    assert!(answer.stdout.lines().count() < 20_000);
}

#[test]
fn the_start_of_a_program_with_too_many_cases_counts_against_the_budget() {
    let place = Place::new();
    let log = place.file("asked");
    let words = ["--many", "5000", "--sleep", "1.2", "--log", &log.display().to_string()];
    let answer = bench_freely(&place, &["--no-store", "--budget", "1s", "--seed", "7"], &words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(text.contains("was spent first (the program takes "), "{text}");
    assert!(text.contains("are not counted: the budget ended"), "{text}");
    assert_eq!(place.read("asked").lines().count(), 1, "one process is asked for cases");
}

#[test]
fn a_program_that_starts_slowly_counts_all_cases_in_two_processes() {
    let place = Place::new();
    let starts = place.file("starts");
    let cases = ["a", "b", "c"].map(|name| format!(r#"{{"name":"zoo/{name}","cost":5,"bytes":16}}"#));
    let mut words = vec!["--sleep", "1.5", "--starts", starts.to_str().expect("a path")];
    words.extend(cases.iter().map(String::as_str));
    let answer = bench_freely(&place, &["--no-store", "--quick", "--seed", "7", "--json"], &words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    // Three processes for times. One for each case, three times, would take nine more.
    assert_eq!(place.read("starts").lines().count(), 5, "{}", answer.exchange());
    assert_eq!(answer.stdout.matches(r#""alloc.bytes": {"#).count(), 3, "{}", answer.stdout);
}

#[test]
fn a_case_that_takes_too_long_to_count_is_left_out_by_name() {
    let place = Place::new();
    let cases = [
        r#"{"name":"slow","cost":600000000,"bytes":16}"#,
        r#"{"name":"slower","cost":700000000,"bytes":17}"#,
        r#"{"name":"quick","cost":5,"bytes":18}"#,
    ];
    let options = ["--no-store", "--quick", "--seed", "7"];
    let answer = bench_freely(&place, &options, &cases);
    let text = answer.unwrapped();
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(text.contains("allocations of ‘slower’ are not counted: the budget ended"), "{text}");
    let row = |name: &str| answer.stdout.lines().find(|line| line.trim().starts_with(name)).expect("a row");
    assert!(row("quick").contains("18"), "{text}");
    assert!(!row("slower").contains(" B"), "{text}");
    // A limit needs the figure, so it is counted.
    let limited = [&options[..], &["--limit", "alloc.bytes<20"]].concat();
    let answer = bench_freely(&place, &limited, &cases);
    assert!(!answer.unwrapped().contains("are not counted"), "{}", answer.exchange());
}

#[test]
fn cases_that_share_a_slow_setup_are_all_counted() {
    let place = Place::new();
    let cases: Vec<String> = (0..6)
        .map(|number| format!(r#"{{"name":"shared/{number}","cost":5,"bytes":16,"shares":0.7}}"#))
        .collect();
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    let answer = bench_freely(&place, &["--no-store", "--quick", "--seed", "7", "--json"], &cases);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(!answer.stdout.contains("are not counted"), "{}", answer.stdout);
    assert!(!answer.stdout.contains("the budget of"), "{}", answer.stdout);
}

#[test]
fn a_process_that_took_long_to_declare_its_cases_is_the_one_that_is_timed() {
    let place = Place::new();
    let starts = place.file("starts");
    // The rest of the list is read in less time than the program took to start, also on a busy machine.
    let words = ["--many", "300", "--sleep", "3", "--starts", &starts.display().to_string()];
    let options = ["--no-store", "--budget", "20ms", "--seed", "7", "--time-only"];
    let answer = bench_freely(&place, &options, &words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.unwrapped().contains("cases, and all after these, are left out"), "{}", answer.stderr);
    assert_eq!(place.read("starts").lines().count(), 1);
}

#[test]
fn a_list_of_cases_without_end_is_cut_where_the_budget_ends() {
    let place = Place::new();
    let options = ["--no-store", "--budget", "200ms", "--seed", "7", "--time-only"];
    let answer = bench_freely(&place, &options, &["--many", "1000", "--endless", "yes"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let text = answer.unwrapped();
    assert!(text.contains("cases, and all after these, are left out"), "{text}");
    assert!(answer.stdout.contains("00000"), "{}", answer.stdout.len());
    place.assert_no_processes();
}
