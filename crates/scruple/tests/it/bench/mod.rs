//! `scruple bench` on a program with simulated clocks: tables, selections, comparisons, limits.

mod answers;
mod budgets;
mod earlier_code;
mod faults;
mod live;
mod python;
mod shared_core;

use crate::fake::{bench, bench_freely, fake, fake_line};
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;

const ONE: &str = r#"{"name":"zoo/ant","cost":5,"bytes":16,"tags":["small"]}"#;
const TWO: &str = r#"{"name":"zoo/bee","cost":10}"#;
const NONE: &str = r#"{"name":"air","cost":0}"#;

#[test]
fn net_raw_and_tare_stand_side_by_side_and_a_body_that_costs_nothing_is_below_resolution() {
    let answer = bench(&Place::new(), &["--no-store"], &[ONE, TWO, NONE]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    3 cases · 3 fresh processes · seed 7

                     net      ±       raw     tare  allocated
    zoo
      ant   5.00 ns       0.4 %   7.00 ns  2.00 ns       16 B
      bee  10.0  ns       0.2 %  12.0  ns  2.00 ns        0 B

      air   <    20.0 ps          2.00 ns  2.00 ns        0 B

    The net cost of ‘air’ is below resolution: it costs no more than the loop around it, or the compiler
    has removed its work.
    ");
}

#[test]
fn a_case_without_a_name_is_a_row_that_shows_so() {
    let words = [r#"{"name":"","cost":5}"#, r#"{"name":"a/ ","cost":5}"#];
    let answer = bench(&Place::new(), &["--no-store"], &words);
    let rows = answer.stdout.lines().map(str::trim_start);
    let rows: Vec<&str> = rows.filter_map(|line| Some(line.split_once("’ ")?.0)).collect();
    assert_eq!(rows[..2], ["‘", "‘ "], "{}", answer.exchange());
}

#[test]
fn a_case_stands_in_the_group_that_it_declares() {
    let bird = r#"{"name":"zoo/wren","group":"birds","cost":5}"#;
    let whole = r#"{"name":"miles/hour","group":"","cost":5}"#;
    let below = r#"{"name":"zoo/miles/hour","group":"zoo","cost":5}"#;
    let hostile = r#"{"name":"x","group":"\u001b[2J","cost":5}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[whole, bird, below, hostile]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    4 cases · 3 fresh processes · seed 7

                      net      ±      raw     tare  allocated
      miles/hour  5.00 ns  0.4 %  7.00 ns  2.00 ns        0 B
    birds
      zoo/wren    5.00 ns  0.4 %  7.00 ns  2.00 ns        0 B
    zoo
      miles/hour  5.00 ns  0.4 %  7.00 ns  2.00 ns        0 B
    �[2J
      x           5.00 ns  0.4 %  7.00 ns  2.00 ns        0 B
    ");
}

#[test]
fn detail_shows_a_panel_below_each_case() {
    let answer = bench(&Place::new(), &["--no-store", "--detail"], &[ONE]);
    let (clock, rest): (Vec<_>, Vec<_>) =
        answer.exchange().lines().map(str::to_owned).partition(|line| line.contains("the core ran at"));
    assert_eq!(clock.len(), 1, "{clock:?}");
    assert!(clock[0].ends_with(" GHz"), "{clock:?}");
    assert_snapshot!(rest.join("\n"), @r"
    exit 0
    --- stdout
    1 case · 3 fresh processes · seed 7

               net      ±      raw     tare  allocated
    zoo
      ant  5.00 ns  0.4 %  7.00 ns  2.00 ns       16 B
          OLS slope 7.00 ns [7.00 ns, 7.00 ns]   intercept 20.0 ns [20.0 ns, 20.0 ns]   R² 1.0000 [1.0000, 1.0000]
          mean 7.00 ns   sd 0.678 ps   median 7.00 ns   10th percentile 7.00 ns   36 batches in 3 processes
          outliers: 0 low severe, 0 low mild, 0 high mild, 0 high severe; they inflate the variance by 2.7 % (slight); 0.0 % of batches disturbed
          7.00 ns █   ▅     ▆         █                  ▇ 7.00 ns
          cpu time net of the tare 5.00 ns [4.98 ns, 5.02 ns]
    ");
}

#[test]
fn cases_are_counted_without_processes_for_time() {
    let answer = bench_freely(&Place::new(), &["--no-store", "--count-only", "--seed", "7"], &[ONE, TWO]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 0
    --- stdout
    2 cases · not timed · seed 7

           allocated
    zoo
      ant       16 B
      bee        0 B
    "#);
}

#[test]
fn cases_are_listed_and_selected_by_name_or_tag() {
    let place = Place::new();
    let all = bench(&place, &["--list"], &[ONE, TWO, NONE]);
    assert_snapshot!(all.exchange(), @r"
    exit 0
    --- stdout
    zoo/ant
    zoo/bee
    air
    ");
    let list = |filter: &str| bench(&place, &["--list", "--filter", filter], &[ONE, TWO, NONE]);
    assert_eq!(list("zoo").stdout, "zoo/ant\nzoo/bee\n");
    assert_eq!(list("small").stdout, "zoo/ant\n");
    assert_snapshot!(list("whale").exchange(), @r"
    exit 2
    --- stderr
    error: no case matches ‘whale’: `scruple bench --list` shows them
    ");
}

#[test]
fn only_selected_cases_are_run() {
    let place = Place::new();
    let answer = bench(&place, &["--no-store", "--filter", "bee"], &["--log", "log", ONE, TWO, NONE]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(place.read("log").lines().all(|asked| asked == "zoo/bee"), "{}", place.read("log"));
}

#[test]
fn a_stored_run_is_a_baseline() {
    let place = Place::new();
    let slow = r#"{"name":"zoo/ant","cost":7,"bytes":24}"#;
    let stored = bench(&place, &["--label", "before"], &[ONE, TWO]);
    assert_eq!(stored.code, 0, "{}", stored.exchange());
    let answer = bench(&place, &["--no-store", "--baseline", "before"], &[slow, TWO]);
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: --baseline needs a store: leave --no-store out
    ");
    let answer = bench(&place, &["--baseline", "before"], &[slow, TWO]);
    assert!(answer.stdout.contains("The runs were taken "), "{}", answer.exchange());
    // The remarks about the two environments depend on the machine. Unlike the times, the core is real: if it was
    // shared during one of the runs only, the verdict is can't tell.
    for (start, effect, verdict) in [
        ("  ant   7.00 ns ", "+28.6 % [+28.5, +28.6] ", "slower"),
        ("  bee  10.0  ns ", "0.00 % [-0.01, +0.01] ", "same"),
    ] {
        let row = answer.stdout.lines().find(|line| line.starts_with(start));
        let rest = row.and_then(|row| Some(row.split_once(effect)?.1));
        let expected = rest.is_some_and(|rest| rest.starts_with(verdict) || rest.starts_with("can’t tell"));
        assert!(expected, "{}", answer.exchange());
    }
}

#[test]
fn two_builds_are_compared_case_by_case() {
    let place = Place::new();
    let old = fake_line(&place, &[ONE, TWO]);
    let slower = r#"{"name":"zoo/ant","cost":6,"bytes":16}"#;
    let options = ["--no-store", "--processes", "6", "--against", &old];
    let answer =
        bench_freely(&place, &[&["--seed", "7", "--blocks", "12"], &options[..]].concat(), &[slower, TWO]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    4 cases · 6 fresh processes · seed 7

                     net      ±       raw     tare  allocated                   vs reference
    zoo
      ant @old   5.00 ns  0.4 %   7.00 ns  2.00 ns       16 B  reference
      bee @old  10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B  reference
      ant @new   6.00 ns  0.3 %   8.00 ns  2.00 ns       16 B  +14.3 % [+14.3, +14.3] slower
      bee @new  10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B  0.00 % [0.00, 0.00] same

    ‘zoo/ant @new’ takes 14.3 % more wall time than ‘zoo/ant @old’ (97.5 % sure: +14.3 % to +14.3 %, 6
    processes).
    ‘zoo/bee @new’ and ‘zoo/bee @old’ take the same wall time, within 1.0 % (97.5 % sure: 0.00 % to
    0.00 %, 6 processes).
    Differences are of raw times, which contain the tare, up to 29 % (‘zoo/ant @old’): nets may differ
    by more.
    ");
}

#[test]
fn advice_on_cases_counts_processes_and_asks_for_more_than_there_were() {
    let against = |old: &str, new: &str| {
        let place = Place::new();
        let old = fake_line(&place, &[old]);
        let options = ["--no-store", "--seed", "7", "--blocks", "12", "--processes", "6", "--against"];
        bench_freely(&place, &[&options[..], &[&*old]].concat(), &[new])
    };
    let asked = |answer: &Answer| -> u32 {
        let words = answer.unwrapped();
        let number = words.split("--processes ").nth(1).and_then(|rest| rest.split([' ', ')']).next());
        number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{}", answer.exchange()))
    };
    let same = r#"{"name":"one","cost":100}"#;
    let answer = against(same, r#"{"name":"one","cost":92,"spreads":true}"#);
    assert!(answer.unwrapped().contains("more processes would tell"), "{}", answer.exchange());
    assert!(asked(&answer) > 6, "{}", answer.exchange());
    // The tare jumps as well, so that few of the processes have readings that count.
    let answer = against(same, r#"{"name":"one","cost":100,"jumps":true}"#);
    assert!(answer.unwrapped().contains("at least 3 are needed"), "{}", answer.exchange());
    assert!(asked(&answer) > 6, "{}", answer.exchange());
}

#[test]
fn two_programs_run_a_case_in_batches_of_as_many_iterations() {
    let place = Place::new();
    let iterations = |cost: u32| {
        let case = |cost: u32| format!(r#"{{"name":"one","cost":{cost}}}"#);
        let old = fake(&place, &[&format!("'{}'", case(10))]).join(" ");
        let options = ["--no-store", "--json", "--time-only", "--processes", "6", "--against", &old];
        let answer = bench_freely(&place, &options, &[&case(cost)]).json();
        assert!(answer["comparisons"].as_array().is_some_and(|all| !all.is_empty()));
        let of = |arm: usize| at(&answer, &format!("/arms/{arm}/metrics/batch.iterations/readings")).clone();
        (of(0), of(2))
    };
    let (old, new) = iterations(17);
    assert_eq!(old, new, "the same number in each block");
    let (old, new) = iterations(1000);
    assert!(old[0].as_f64() > new[0].as_f64().map(|n| 10.0 * n), "a program a hundred times as slow");
    // A run with `--baseline` takes the iterations per batch from the stored run. The seed, and thus the jitter, is the
    // same in both.
    let place = Place::new();
    let stored = |label: &str, cost: u32, more: &[&str]| {
        let options = [&["--label", label, "--time-only"], more].concat();
        let answer = bench(&place, &options, &[&format!(r#"{{"name":"one","cost":{cost}}}"#)]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let stored = place.run(["show", label, "--json"]).json();
        at(&stored, "/arms/0/metrics/batch.iterations/readings").clone()
    };
    let old = stored("old", 10, &[]);
    assert_ne!(old, stored("alone", 17, &[]));
    assert_eq!(old, stored("new", 17, &["--baseline", "old"]));
}

#[test]
fn every_case_can_be_compared_with_one() {
    let answer = bench(&Place::new(), &["--no-store", "--reference", "zoo/ant"], &[ONE, TWO]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 cases · 3 fresh processes · seed 7

                net      ±       raw     tare  allocated                   vs reference
    zoo
      ant   5.00 ns  0.4 %   7.00 ns  2.00 ns       16 B  reference
      bee  10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B  +71.4 % [+71.4, +71.5] slower

    Differences are of raw times, which contain the tare, up to 29 % (‘zoo/ant’): nets may differ by
    more.
    ");
    let answer = bench(&Place::new(), &["--no-store", "--reference", "ant"], &[ONE, TWO]);
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: there is no case ‘ant’ to compare with: `scruple bench --list` shows the names
    ");
}

#[test]
fn numbers_of_threads_are_those_of_the_case_or_of_the_command_line() {
    let place = Place::new();
    let shared = r#"{"name":"shared","cost":40,"threads":[1,2]}"#;
    let answer = bench(&place, &["--no-store"], &[shared, TWO]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    3 cases · 3 fresh processes · seed 7

                             net      ±      raw     tare  allocated  threads.fairness
      shared ×1 threads  40.0 ns  0.1 %  42.0 ns  2.00 ns        0 B
      shared ×2 threads  20.0 ns  0.1 %  21.0 ns  1.00 ns        0 B             1.000
    zoo
      bee                10.0 ns  0.2 %  12.0 ns  2.00 ns        0 B

    Scaling of ‘shared’:
        1 threads         23.8 M/s     1.00 ×   efficiency 100 %
        2 threads         47.6 M/s     2.00 ×   efficiency 100 %   fairness 1.000
    ");
    let both = bench(&place, &["--no-store", "--against", &fake_line(&place, &[shared])], &[shared]);
    assert_eq!(both.stdout.matches("Scaling of ‘shared @").count(), 2, "{}", both.exchange());
    let list = bench(&place, &["--list", "--threads", "1,4"], &[shared, TWO]);
    assert_eq!(list.stdout, "shared ×1 threads\nshared ×4 threads\nzoo/bee\n");
}

#[test]
fn batches_in_which_threads_took_turns_are_run_again_and_do_not_count() {
    let place = Place::new();
    let turns = r#"{"name":"shared","cost":40,"threads":[2],"turns":6}"#;
    let answer = bench(&place, &["--no-store", "--detail"], &[turns]);
    assert!(answer.stdout.contains("shared ×2 threads  20.0 ns  0.1 %"), "{}", answer.exchange());
    let (before, _) = answer
        .stdout
        .split_once(" of 36 blocks, in which not all threads had a core all the time")
        .expect("some");
    let left_out: u32 = before.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a number");
    // Without repeating, 28 blocks would be left out: each of both batches takes turns in six of ten.
    assert!((1..20).contains(&left_out), "{}", answer.exchange());
}

#[test]
fn an_exceeded_limit_of_a_case_is_exit_code_1_unless_limits_are_only_reported() {
    let place = Place::new();
    let fine = r#"{"name":"fine","cost":5,"bytes":16,"budgets":{"alloc.bytes":{"max":16},"time.wall":{"max":"1 µs"}}}"#;
    let fat = r#"{"name":"fat","cost":5,"bytes":17,"budgets":{"alloc.bytes":{"max":16}}}"#;
    assert_eq!(bench(&place, &["--no-store", "--check"], &[fine]).code, 0);
    assert_eq!(bench(&place, &["--no-store"], &[fine, fat]).code, 1);
    assert_eq!(bench(&place, &["--no-store", "--no-check"], &[fine, fat]).code, 0);
    let answer = bench(&place, &["--no-store", "--check", "--export", "report.xml"], &[fine, fat]);
    assert_snapshot!(answer.exchange(), @r"
    exit 1
    --- stdout
    2 cases · 3 fresh processes · seed 7

                net      ±      raw     tare  allocated
      fine  5.00 ns  0.4 %  7.00 ns  2.00 ns       16 B
      fat   5.00 ns  0.4 %  7.00 ns  2.00 ns       17 B

    Limit alloc.bytes<=16: kept by ‘fine’, which has 16 B
    Limit time.wall<=1 µs: kept by ‘fine’, which has 7.00 ns
    Limit alloc.bytes<=16: EXCEEDED by ‘fat’, which has 17 B
    ");
    assert_snapshot!(place.read("report.xml"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuite name="scruple" tests="3" failures="1" errors="0" skipped="0">
      <testcase classname="scruple" name="fine: alloc.bytes&lt;=16" time="0.000000"></testcase>
      <testcase classname="scruple" name="fine: time.wall&lt;=1 µs" time="0.000000"></testcase>
      <testcase classname="scruple" name="fat: alloc.bytes&lt;=16" time="0.000000"><failure message="exceeded: 17 B"></failure></testcase>
    </testsuite>
    "#);
}

#[test]
fn a_limit_may_be_a_least_or_name_another_case() {
    let least = r#"{"name":"lazy","cost":5,"bytes":16,"budgets":{"alloc.bytes":{"min":17}}}"#;
    let beside =
        r#"{"name":"double","cost":10,"tare":2,"budgets":{"time.wall":{"max":"+50%","against":"single"}}}"#;
    let lost = r#"{"name":"lost","cost":10,"budgets":{"time.wall":{"max":"+50%","against":"nobody"}}}"#;
    let single = r#"{"name":"single","cost":5,"tare":2}"#;
    let answer = bench(&Place::new(), &["--no-store", "--check"], &[single, least, beside, lost]);
    assert_snapshot!(answer.exchange(), @r"
    exit 1
    --- stdout
    4 cases · 3 fresh processes · seed 7

                   net      ±       raw     tare  allocated
      single   5.00 ns  0.4 %   7.00 ns  2.00 ns        0 B
      lazy     5.00 ns  0.4 %   7.00 ns  2.00 ns       16 B
      double  10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B
      lost    10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B

    Limit alloc.bytes>=17: EXCEEDED by ‘lazy’, which has 16 B
    Limit time.wall<=+50% against ‘single’: EXCEEDED by ‘double’, which has +71.4 % [+71.4 %, +71.4 %]
    Limit time.wall<=+50% against ‘nobody’: can’t tell for ‘lost’: there is no case ‘nobody’ with this
      metric to compare with
    ");
}

#[test]
fn limits_of_cases_stand_in_the_configuration_too() {
    let place = Place::new();
    place.write("scruple.toml", "[limits]\n\"zoo/*.alloc.bytes\" = { max = \"10 B\" }\n");
    let answer = bench(&place, &["--no-store", "--check"], &[ONE, TWO]);
    assert_snapshot!(answer.exchange(), @r"
    exit 1
    --- stdout
    2 cases · 3 fresh processes · seed 7

                net      ±       raw     tare  allocated
    zoo
      ant   5.00 ns  0.4 %   7.00 ns  2.00 ns       16 B
      bee  10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B

    Limit zoo/*:alloc.bytes<=10 B: EXCEEDED by ‘zoo/ant’, which has 16 B
    Limit zoo/*:alloc.bytes<=10 B: kept by ‘zoo/bee’, which has 0 B
    ");
}

#[test]
fn a_limit_may_be_on_a_metric_that_the_program_brings() {
    let place = Place::new();
    let visited = r#"{"name":"visited","cost":5,"visits":3}"#;
    let answer = bench(&place, &["--no-store", "--limit", "zoo.visits<2"], &[visited]);
    assert_snapshot!(answer.exchange(), @r"
    exit 1
    --- stdout
    1 case · 3 fresh processes · seed 7

                   net      ±      raw     tare  allocated
      visited  5.00 ns  0.4 %  7.00 ns  2.00 ns        0 B

    Limit zoo.visits<2: EXCEEDED by ‘visited’, which has 3
    ");
    assert_eq!(bench(&place, &["--no-store", "--limit", "zoo.visits<4"], &[visited]).code, 0);
    let answer = bench(&place, &["--no-store", "--limit", "zoo.vists<4"], &[visited]);
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: there is no metric ‘zoo.vists’ in the limit ‘zoo.vists<4’: did you mean ‘zoo.visits’?
    ");
    let answer = bench(&place, &["--no-store", "--limit", "visitor:time.wall<4ns"], &[visited]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
}

#[test]
fn a_fresh_case_shares_no_process() {
    let place = Place::new();
    let fresh = r#"{"name":"alone","cost":5,"fresh":true}"#;
    let answer = bench(&place, &["--no-store", "--time-only"], &["--log", "log", ONE, TWO, fresh]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let log = place.read("log");
    assert_eq!(log.lines().filter(|asked| *asked == "alone").count(), 3, "{log}");
    assert_eq!(log.lines().filter(|asked| *asked == "zoo/ant zoo/bee").count(), 3, "{log}");
    assert_eq!(log.lines().count(), 6, "{log}");
}

#[test]
fn intervals_are_pairs_in_json_and_readings_keep_their_processes() {
    let answer = bench(&Place::new(), &["--no-store", "--json"], &[ONE]);
    let json = answer.json();
    let wall = at(&json, "/arms/0/metrics/time.wall");
    assert!(at(wall, "/net/interval").as_array().is_some_and(|pair| pair.len() == 2), "{wall:#}");
    let blocks: Vec<u64> =
        at(wall, "/blocks").as_array().into_iter().flatten().filter_map(|block| block.as_u64()).collect();
    assert_eq!(blocks.len(), 36);
    assert_eq!((blocks[0], blocks[12], blocks[24]), (0, 1_000_000, 2_000_000));
}

#[test]
fn latency_and_throughput_in_one_table_are_distinguished() {
    let chained = r#"{"name":"chained","cost":5,"timing":"latency"}"#;
    let loose = r#"{"name":"loose","cost":3,"timing":"throughput"}"#;
    let place = Place::new();
    let both = bench(&place, &["--no-store"], &[chained, loose]).stdout;
    assert!(both.contains(" timing") && both.contains(" latency") && both.contains(" throughput"), "{both}");
    let one = bench(&place, &["--no-store"], &[chained]).stdout;
    assert!(!one.contains("timing"), "{one}");
    let detail = bench(&place, &["--no-store", "--detail"], &[loose]).stdout;
    assert!(detail.contains("throughput: from one result to the next"), "{detail}");
    let json = bench(&place, &["--no-store", "--json"], &[chained]).stdout;
    assert!(json.contains(r#""timing": "latency""#) || json.contains(r#""timing":"latency""#), "{json}");
}
