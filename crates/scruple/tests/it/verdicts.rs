//! The four verdicts, and which metric is the headline.

use crate::scripted_readings::{self, arm, noisy_arm, old_and_new};
use crate::support::Place;
use insta::assert_snapshot;

const TIMES: [&str; 4] = ["-r", "26", "--metrics", "time"];

#[test]
fn a_slower_arm_is_different_and_by_how_much() {
    let answer = old_and_new(arm(1.0, 1), arm(1.1, 2), &TIMES);
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      old   5.130 ms  [5.077, 5.196]    ▇█▇▆                                  reference
      new   5.644 ms  [5.585, 5.710]            ▆▄▆█  +10.0 % [+10.0, +10.1]  slower
    cpu
      old  3.9983 ms  [3.9968, 4.0011]  █                                     reference
      new  4.4006 ms  [4.3988, 4.4027]             █  +10.0 % [+10.0, +10.1]  slower

    ‘new’ takes 10.0 % more wall time than ‘old’ (95.2 % sure: +9.98 % to +10.1 %, 20 blocks).
    ");
}

#[test]
fn a_faster_arm_is_different_and_by_how_much() {
    let answer = old_and_new(arm(1.0, 1), arm(0.4, 2), &TIMES);
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      old   5.130 ms  [5.077, 5.196]               █                             reference
      new   2.052 ms  [2.031, 2.076]    █             0.4001 × [0.3999, 0.4003]  faster
    cpu
      old  3.9983 ms  [3.9968, 4.0011]             █                             reference
      new  1.6002 ms  [1.5996, 1.6010]  █             0.4001 × [0.4000, 0.4003]  faster

    ‘new’ is 2.50 times as fast in wall time as ‘old’ (95.2 % sure: 2.4984 × to 2.5005 ×, 20 blocks).
    ");
}

#[test]
fn arms_within_the_margin_are_the_same() {
    let answer = old_and_new(arm(1.0, 1), arm(1.001, 2), &TIMES);
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      old   5.130 ms  [5.077, 5.196]    ▆▆▃▃▃▆█ ▃█▆▆                          reference
      new   5.136 ms  [5.082, 5.196]    ▂▂▆▂▂▂▆▂ █▂▆  +0.12 % [+0.08, +0.17]  same
    cpu
      old  3.9983 ms  [3.9968, 4.0011]  █▂▁▁▃▂ ▃                              reference
      new  4.0045 ms  [4.0029, 4.0064]     ▄ ▄▄▄▆▂██  +0.13 % [+0.10, +0.18]  same

    ‘new’ and ‘old’ take the same wall time, within 2.0 % (95.2 % sure: +0.08 % to +0.17 %, 20 blocks).
    ");
}

#[test]
fn a_difference_that_may_be_below_the_margin_is_small() {
    let answer = old_and_new(noisy_arm(1.0, 1, 0.01), noisy_arm(1.02, 2, 0.01), &TIMES);
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      old  5.119 ms  [5.038, 5.203]  ██ █▆▆▃▆█▃                            reference
      new  5.259 ms  [5.169, 5.297]      ▂▅▅▄ ▇▄█  +2.21 % [+1.82, +2.67]  slightly slower
    cpu
      old  3.983 ms  [3.968, 4.011]  █▂▁▄▁▃                                reference
      new  4.085 ms  [4.069, 4.105]       ▄ ▅▅▅█▇  +2.29 % [+2.00, +2.78]  slightly slower

    ‘new’ takes more wall time than ‘old’, but the difference may be below 2.0 % (95.2 % sure: +1.82 %
    to +2.67 %, 20 blocks).
    ");
}

#[test]
fn noise_that_hides_everything_gives_no_verdict_but_advice() {
    let answer = old_and_new(noisy_arm(1.0, 5, 0.3), noisy_arm(1.01, 6, 0.3), &TIMES);
    assert_snapshot!(answer.exchange(), @r#"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      old  5.11 ms  [4.86, 5.24]   ▂▃▂▄▆█ ▂  ▃                           reference
      new  4.55 ms  [4.03, 5.39]  █▂▅▄ ▂▅▄▂▂ ▂  -7.37 % [-15.04, +3.02]  can’t tell
    cpu
      old  3.93 ms  [3.27, 4.58]  █ ▄ ▆▂▄▄ ▄▂▆                           reference
      new  3.45 ms  [3.09, 3.93]  █▄█ █ ▆ ▂▂▂   -9.17 % [-21.84, +3.13]  can’t tell

    Can’t tell whether ‘new’ takes more or less wall time than ‘old’: anything from -15.0 % to +3.02 %
    fits the readings; about 12 more blocks would tell (-m 32).
    "#);
}

#[test]
fn advice_can_be_followed_and_few_readings_are_not_said_to_be_due_to_waiting() {
    let answer = Place::new().run(["run", "--no-store", "-r", "3", "true", "sh -c :"]);
    let words = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("too few; at least 6 are needed"), "{}", answer.exchange());
    assert!(words.contains("instead of -r)"), "-m cannot be used with -r: {}", answer.exchange());
    let of_counts = words.contains("(a larger -r)") && !words.contains("--budget");
    assert!(of_counts, "the budget does not bound the launches of -r: {}", answer.exchange());
    assert!(!words.contains("wall time cannot tell"), "{}", answer.exchange());
}

#[test]
fn five_blocks_are_too_few_for_any_verdict() {
    let answer = old_and_new(arm(1.0, 1), arm(2.0, 2), &["-r", "7", "--metrics", "time"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 0
    --- stdout
    2 commands · 5 blocks, interleaved · seed 1

    wall
      old    5.11 ms  (5.01, 5.24)               reference
      new   10.21 ms  (10.02, 10.48)    +99.9 %  can’t tell
    cpu
      old  3.9976 ms  (3.9967, 4.0011)           reference
      new  8.0044 ms  (7.9990, 8.0075)  2.00 ×   can’t tell

    Can’t tell whether ‘new’ takes more or less wall time than ‘old’: 5 readings are too few; at least 6
    are needed; 1 more block may tell (-m 6).
    "#);
}

#[test]
fn where_wall_time_cannot_tell_cpu_time_decides_and_the_sentence_says_so() {
    let waiting =
        |seed: usize| move |launch: usize| 5e6 + 1e6 * ((launch * (7 + 4 * seed) + 3 * seed) % 13) as f64;
    let busy = |factor, seed| {
        arm(factor, seed).with("timing", "time.wall", waiting(seed as usize)).with(
            "timing",
            "time.wait",
            |launch| 1e6 + 1e5 * (launch % 5) as f64,
        )
    };
    let answer = old_and_new(busy(1.0, 1), busy(1.05, 2), &["-r", "26", "--metrics", "time.wall,time.cpu"]);
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      old    11.0 ms  [8.0, 14.0]       ▃▆▃▆▆▃▆▃▆▃▆█                           reference
      new    11.0 ms  [8.0, 14.0]       ▃▆▃▆▃▆▆▃▆▃▆█  0.00 % [-20.34, +27.80]  can’t tell
    cpu
      old  3.9983 ms  [3.9968, 4.0011]  █                                      reference
      new  4.2006 ms  [4.1988, 4.2026]             █  +5.03 % [+5.00, +5.08]   slower

    ‘new’ takes 5.0 % more cpu time than ‘old’ (95.2 % sure: +5.00 % to +5.08 %, 20 blocks); wall time
    cannot tell here.
    ! the machine is busy: ‘old’ spent 11 % of its wall time waiting for a core, so trust cpu time more
    ");
}

/// Half of the blocks take twice as long as the others, and one launch of ‘new’ is disturbed: its median falls among the
/// slow half, although it takes 5 % less in each other block.
#[test]
fn an_effect_that_the_medians_seem_to_contradict_is_explained() {
    let level = |launch: usize| if launch.is_multiple_of(2) { 1e7 } else { 2e7 };
    let old = arm(1.0, 1).with("timing", "time.wall", level);
    let disturbed = |launch: usize| if launch == 4 { 1.99e7 } else { 0.95 * level(launch) };
    let new = arm(1.0, 2).with("timing", "time.wall", disturbed);
    let words = ["-m", "20", "-M", "20", "--metrics", "time.wall"];
    let text = |new| old_and_new(old.clone(), new, &words).stdout;
    let answer = text(new);
    let joined = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.contains("-5.00 % [-5.00, -5.00] within blocks, although the medians differ by"),
        "{answer}"
    );
    let answer = text(arm(1.0, 2).with("timing", "time.wall", |launch| 0.95 * level(launch)));
    assert!(!answer.contains("although the medians"), "{answer}");
}

#[test]
fn measuring_stops_at_the_first_look_that_settles_the_verdict() {
    let answer = old_and_new(arm(1.0, 1), arm(1.5, 2), &["--metrics", "time.wall"]);
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    wall
      old  5.09 ms  [5.02, 5.24]  █                                     reference
      new  7.64 ms  [7.54, 7.86]            ██  +50.1 % [+49.9, +50.1]  slower

    ‘new’ is 1.50 times as slow in wall time as ‘old’ (99.4 % sure: 1.4994 × to 1.5015 ×, 10 blocks).
    ");
}

#[test]
fn measuring_goes_on_to_the_last_look_while_the_verdict_is_open() {
    let noisy = |factor, seed| noisy_arm(factor, seed, 0.2);
    let answer = old_and_new(noisy(1.0, 1), noisy(1.01, 2), &["-M", "40", "--metrics", "time.wall"]);
    assert!(answer.stdout.starts_with("2 commands · 40 blocks, interleaved"), "{}", answer.stdout);
}

#[test]
fn a_wider_margin_turns_a_difference_into_none() {
    let with_margin = |margin| {
        let words = ["-r", "26", "--metrics", "time.wall", "--margin", margin];
        old_and_new(arm(1.0, 1), arm(1.04, 2), &words).stdout
    };
    assert!(with_margin("2%").contains("takes 4.0 % more wall time"), "{}", with_margin("2%"));
    assert!(with_margin("0.1").contains("take the same wall time, within 10 %"), "{}", with_margin("0.1"));
}

#[test]
fn the_readings_do_not_depend_on_the_seed_of_a_script_but_the_answer_names_it() {
    let answer = old_and_new(arm(1.0, 1), arm(1.1, 2), &["-r", "26", "--seed", "7"]);
    assert!(answer.stdout.contains("seed 7"), "{}", answer.stdout);
}

#[test]
fn fewer_blocks_than_the_first_look_may_be_allowed() {
    let answer = old_and_new(arm(1.0, 1), arm(1.5, 2), &["-M", "7", "--metrics", "time.wall"]);
    assert!(answer.stdout.starts_with("2 commands · 7 blocks, interleaved"), "{}", answer.exchange());
}

#[test]
fn a_least_number_of_blocks_is_taken_also_where_the_budget_ends_before() {
    let words = ["-m", "8", "--budget", "1ms", "--metrics", "time.wall"];
    let answer = old_and_new(arm(1.0, 1), arm(1.5, 2), &words);
    assert!(answer.stdout.starts_with("2 commands · 8 blocks, interleaved"), "{}", answer.exchange());
    assert!(answer.stdout.contains("1.50 times as slow"), "{}", answer.exchange());
}

#[test]
fn commands_are_counted_without_runs_for_time() {
    let place = Place::new();
    place.script(&[
        ("old", scripted_readings::arm(1.0, 1)),
        ("new", scripted_readings::arm(1.0, 2).with("counting", "malloc.count", |_| 90.0)),
    ]);
    let words = [
        "run",
        "--no-store",
        "--scripted",
        "script.json",
        "--count-only",
        "-n",
        "old",
        "-n",
        "new",
        "true",
        "false",
    ];
    let answer = place.run(words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stdout.starts_with("2 commands · not timed · seed"), "{}", answer.exchange());
    assert!(answer.stdout.contains("(-10)"), "{}", answer.exchange());
    let page = place.run(words.iter().chain(&["--json"])).json();
    let metrics = page["arms"][1]["metrics"].as_object().expect("metrics").clone();
    assert!(metrics.contains_key("malloc.count") && metrics.contains_key("memory.peak"), "{metrics:?}");
    assert!(metrics.keys().all(|key| !key.starts_with("time.")), "{metrics:?}");
    // A limit that needs launches for time is refused, and not counted as kept.
    let limited = place.run(words.iter().chain(&["--limit", "time.wall<5ms"]));
    assert_eq!(limited.code, 2, "{}", limited.exchange());
    assert!(limited.stderr.contains("needs launches for time"), "{}", limited.exchange());
}

#[test]
fn the_sentence_on_what_a_runtime_allocated_names_a_thing() {
    let with = |bytes: f64| scripted_readings::arm(1.0, 1).with("counting", "alloc.bytes", move |_| bytes);
    let answer = old_and_new(with(100.0), with(90.0), &["-r", "15", "--metrics", "alloc.bytes"]);
    let text = answer.unwrapped();
    assert!(text.contains("‘new’ takes exactly 10 B (-10.00 %) less allocated memory than ‘old’"), "{text}");
}

#[test]
fn counts_that_were_read_too_few_times_say_so_and_what_gives_enough() {
    let new = || scripted_readings::arm(1.0, 2).with("counting", "malloc.count", |_| 90.0);
    let words = ["-r", "3", "--metrics", "malloc.count,malloc.bytes"];
    let differs = || new().with("counting", "malloc.bytes", |_| 90.0);
    let text = old_and_new(arm(1.0, 1), differs(), &words).unwrapped();
    assert!(text.contains("mallocs than ‘old’: 1 reading is too few; at least 3 are needed"), "{text}");
    let line = "Can’t tell about malloc bytes: 1 reading is too few; at least 3 are needed (-r or a larger --budget).";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("Can’t tell about mallocs"), "the sentence of the headline says it: {text}");
    let answer = old_and_new(arm(1.0, 1), new(), &["-r", "15", "--metrics", "malloc.count"]);
    assert!(!answer.stdout.contains("Can’t tell"), "{}", answer.exchange());
}
