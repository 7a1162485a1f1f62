//! Parameters: their values in commands and names, and growth over them.

use crate::scripted_readings::{Arm, arm};
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;

/// Runs scripted arms with these names and values of `n`. An arm allocates 1000 + 32·n bytes.
fn scan(names: &[(&str, f64)], words: &[&str]) -> Answer {
    let arms: Vec<(&str, Arm)> = names
        .iter()
        .enumerate()
        .map(|(index, (name, n))| {
            let (bytes, cpu) = (1000.0 + 32.0 * n, 1e6 + 2e3 * n);
            let one = arm(1.0, index as u64).with("counting", "malloc.bytes", move |_| bytes).with(
                "timing",
                "time.cpu",
                move |launch| cpu + (launch * 37 % 11) as f64,
            );
            (*name, one)
        })
        .collect();
    Place::new().play(&arms, &["--no-store", "-r", "16"].iter().chain(words).copied().collect::<Vec<_>>())
}

#[test]
fn growth_over_a_number_is_found_exactly_where_the_metric_is_exact() {
    let names = [("true 10", 10.0), ("true 20", 20.0), ("true 30", 30.0), ("true 40", 40.0)];
    let words = ["-P", "n", "10", "40", "-D", "10", "--metrics", "malloc.bytes,time.cpu", "true {n}"];
    assert_snapshot!(scan(&names, &words).exchange(), @"
    exit 0
    --- stdout
    4 commands · 10 blocks, interleaved · seed 1

    cpu
      true 10  1.0200 ms  [1.0200, 1.0200]  █                                     reference
      true 20  1.0400 ms  [1.0400, 1.0400]     ▄█         +1.96 % [+1.96, +1.96]  same
      true 30  1.0600 ms  [1.0600, 1.0600]         █▆     +3.92 % [+3.92, +3.92]  slower
      true 40  1.0800 ms  [1.0800, 1.0800]             █  +5.88 % [+5.88, +5.88]  slower
    malloc bytes
      true 10    1,320 B                                                          reference
      true 20    1,640 B                                  +24.2 % (+320 B)        more
      true 30    1,960 B                                  +48.5 % (+640 B)        more
      true 40    2,280 B                                  +72.7 % (+960 B)        more

    ‘true 20’ and ‘true 10’ take the same cpu time, within 2.0 % (98.6 % sure: +1.96 % to +1.96 %, 10
    blocks).
    ‘true 30’ takes 3.9 % more cpu time than ‘true 10’ (98.6 % sure: +3.92 % to +3.92 %, 10 blocks).
    ‘true 40’ takes 5.9 % more cpu time than ‘true 10’ (98.6 % sure: +5.88 % to +5.88 %, 10 blocks).
    Growth: cpu time is 1.00 ms + 2.00 µs [2.00 µs, 2.00 µs] · n.
    Growth: malloc bytes is 1,000 B + 32 B · n, exactly.
    ");
}

#[test]
fn a_list_of_words_makes_an_arm_of_each_and_no_growth() {
    let names = [("true fast", 1.0), ("true best", 2.0)];
    let words = ["-L", "how", "fast,best", "--metrics", "malloc.bytes", "true {how}"];
    assert_snapshot!(scan(&names, &words).exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    malloc bytes
      true fast  1,032 B                     reference
      true best  1,064 B    +3.10 % (+32 B)  more

    ‘true best’ takes exactly 32 B (+3.10 %) more malloc bytes than ‘true fast’.
    ");
}

#[test]
fn two_lists_make_all_combinations() {
    let names = [("true a 1", 1.0), ("true a 2", 2.0), ("true b 1", 3.0), ("true b 2", 4.0)];
    let words = ["-L", "x", "a,b", "-L", "n", "1,2", "--metrics", "malloc.bytes", "true {x} {n}"];
    let answer = scan(&names, &words);
    let shown: Vec<&str> = answer.stdout.lines().filter(|line| line.starts_with("  true")).collect();
    assert_eq!(shown.len(), 4, "{}", answer.exchange());
}

#[test]
fn one_name_for_each_command_gets_the_parameters_behind_it() {
    let names = [("sort (n=1)", 1.0), ("sort (n=2)", 2.0), ("sort (n=3)", 3.0)];
    let words = ["-P", "n", "1", "3", "-n", "sort", "--metrics", "malloc.bytes", "true {n}"];
    assert_snapshot!(scan(&names, &words).exchange(), @r"
    exit 0
    --- stdout
    3 commands · 10 blocks, interleaved · seed 1

    malloc bytes
      sort (n=1)  1,032 B                     reference
      sort (n=2)  1,064 B    +3.10 % (+32 B)  more
      sort (n=3)  1,096 B    +6.20 % (+64 B)  more

    ‘sort (n=2)’ takes exactly 32 B (+3.10 %) more malloc bytes than ‘sort (n=1)’.
    ‘sort (n=3)’ takes exactly 64 B (+6.20 %) more malloc bytes than ‘sort (n=1)’.
    Growth: malloc bytes is 1,000 B + 32 B · n, exactly.
    ");
}

#[test]
fn growth_is_fitted_for_each_command_by_itself() {
    let names = [
        ("a (n=1)", 1.0),
        ("a (n=2)", 2.0),
        ("a (n=3)", 3.0),
        ("b (n=1)", 2.0),
        ("b (n=2)", 4.0),
        ("b (n=3)", 6.0),
    ];
    let words =
        ["-P", "n", "1", "3", "-n", "a", "-n", "b", "--metrics", "malloc.bytes", "true {n}", "true x{n}"];
    let answer = scan(&names, &words);
    let growth: Vec<&str> = answer.stdout.lines().filter(|line| line.starts_with("Growth")).collect();
    assert_snapshot!(growth.join("\n"), @r"
    Growth: malloc bytes of ‘a {n}’ is 1,000 B + 32 B · n, exactly.
    Growth: malloc bytes of ‘b {n}’ is 1,000 B + 64 B · n, exactly.
    ");
}

#[test]
fn parameters_are_columns_of_the_csv() {
    let names = [("true 0.5", 1.0), ("true 1.0", 2.0)];
    let words = ["-P", "n", "0.5", "1.0", "-D", "0.5", "--export-csv", "-", "true {n}"];
    let answer = scan(&names, &words);
    assert!(answer.stdout.lines().next().unwrap_or("").ends_with(",param:n"), "{}", answer.exchange());
}

#[test]
fn json_of_growth_names_its_metric_and_form() {
    let place = Place::new();
    let of = |n: f64| arm(1.0, 1).with("counting", "malloc.bytes", move |_| 100.0 + 32.0 * n);
    let arms: Vec<(String, Arm)> = (1..=4).map(|n| (format!("true {n}"), of(f64::from(n)))).collect();
    let arms: Vec<(&str, Arm)> = arms.iter().map(|(name, arm)| (name.as_str(), arm.clone())).collect();
    let words =
        ["--no-store", "-r", "10", "-P", "n", "1", "4", "--metrics", "malloc.bytes", "--json", "true {n}"];
    let growth = at(&place.play(&arms, &words).json(), "/growth").clone();
    assert_snapshot!(format!("{growth:#}"), @r#"
    [
      {
        "family": "",
        "fit": {
          "also_possible": [],
          "exact": true,
          "form": "n",
          "intercept": 100.0,
          "lower": [],
          "residual": 0.0,
          "slope": 32.0,
          "slope_interval": null
        },
        "metric": "malloc.bytes",
        "parameter": "n"
      }
    ]
    "#);
}
