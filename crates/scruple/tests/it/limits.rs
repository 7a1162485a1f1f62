//! Exact metrics, absent metrics, and limits on both.

use crate::scripted_readings::{Arm, arm, noisy_arm, old_and_new};
use crate::support::Place;
use insta::assert_snapshot;

fn bytes(arm: Arm, bytes: f64) -> Arm {
    arm.with("counting", "malloc.bytes", move |_| bytes)
}

#[test]
fn exact_metrics_are_the_same_or_differ_by_a_single_byte() {
    let answer = old_and_new(
        bytes(arm(1.0, 1), 268_000.0),
        bytes(arm(1.0, 2), 268_001.0),
        &["-r", "16", "--metrics", "malloc"],
    );
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    mallocs
      old        100                   reference
      new        100    ±0             same
    malloc bytes
      old  268,000 B                   reference
      new  268,001 B    0.00 % (+1 B)  more
    malloc peak
      old    2,048 B                   reference
      new    2,048 B    ±0             same

    ‘new’ takes exactly 1 B (0.00 %) more malloc bytes than ‘old’.
    ");
}

#[test]
fn exact_readings_that_disagree_are_shown_with_their_range_and_judged_as_noisy() {
    let wavering = |arm: Arm| {
        arm.launches("counting", 2).with("counting", "malloc.bytes", |launch| 4096.0 + 16.0 * launch as f64)
    };
    let place = Place::new();
    let arms = [("old", wavering(arm(1.0, 1))), ("new", bytes(arm(1.0, 2), 4096.0))];
    let words =
        ["--no-store", "-n", "old", "-n", "new", "true", "true new", "-r", "16", "--metrics", "malloc.bytes"];
    let answer = place.play(&arms, &[words.as_slice(), &["--export", "page.html"]].concat());
    assert_snapshot!(answer.exchange(), @r#"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    malloc bytes
      old  ≈4,112 B  (4,096 B, 4,112 B)           reference
      new   4,096 B                      -0.39 %  same

    ‘new’ and ‘old’ take the same malloc bytes, within 2.0 %.
    "#);
    let page = std::fs::read_to_string(place.file("page.html")).expect("a page");
    assert!(page.contains("≈4") && !page.contains("≈4,096"), "{page}");
}

#[test]
fn one_more_of_what_is_counted_is_written_in_the_singular() {
    for (count, sentence) in
        [(101.0, "exactly 1 (+1.00 %) more malloc than"), (102.0, "exactly 2 (+2.00 %) more mallocs than")]
    {
        let more = arm(1.0, 2).with("counting", "malloc.count", |_| count);
        let answer = old_and_new(arm(1.0, 1), more, &["-r", "16", "--metrics", "malloc.count"]);
        assert!(answer.stdout.contains(sentence), "{}", answer.exchange());
    }
}

#[test]
fn a_metric_that_went_from_nothing_to_something_has_no_ratio_but_a_difference() {
    let answer = old_and_new(
        bytes(arm(1.0, 1), 0.0),
        bytes(arm(1.0, 2), 32.0),
        &["-r", "16", "--metrics", "malloc.bytes"],
    );
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    malloc bytes
      old   0 B           reference
      new  32 B    +32 B  more

    ‘new’ takes exactly 32 B more malloc bytes than ‘old’.
    ");
}

#[test]
fn absent_metrics_say_why_and_are_never_zero() {
    let without = |arm: Arm| {
        ["malloc.count", "malloc.bytes", "malloc.peak"]
            .iter()
            .fold(arm, |arm, key| arm.absent("counting", key, "the program is statically linked"))
    };
    let answer =
        old_and_new(without(arm(1.0, 1)), without(arm(1.0, 2)), &["-r", "16", "--metrics", "malloc,memory"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    peak memory
      old  1.50 MB        reference
      new  1.50 MB    ±0  same within 20 %
    mallocs, malloc bytes, malloc peak
      old, new: absent, because the program is statically linked

    ‘new’ and ‘old’ take the same peak memory, within 20 %.
    ");
}

#[test]
fn a_metric_that_one_arm_lacks_is_shown_for_the_other() {
    let why = "/the/folder/of/the/new/program is linked statically, so its malloc cannot be wrapped";
    let without = arm(1.0, 2).absent("counting", "malloc.count", why);
    let answer = old_and_new(arm(1.0, 1), without, &["-r", "16", "--metrics", "malloc.count"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    mallocs
      old  100
      new: absent, because /the/folder/of/the/new/program is linked statically, so its malloc cannot
        be wrapped
    ");
}

#[test]
fn a_limit_that_is_kept_exits_with_0() {
    let answer = old_and_new(
        arm(1.0, 1),
        arm(0.9, 2),
        &["-r", "26", "--metrics", "time.cpu", "--limit", "malloc.bytes<4096", "--limit", "time.cpu<+3%"],
    );
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    cpu
      old  3.9983 ms  [3.9968, 4.0011]             █                           reference
      new  3.6005 ms  [3.5990, 3.6022]  █             -9.97 % [-10.00, -9.93]  faster

    ‘new’ takes 10.0 % less cpu time than ‘old’ (95.2 % sure: -10.0 % to -9.93 %, 20 blocks).
    Limit malloc.bytes<4096: kept by ‘old’, which has 4,096 B
    Limit malloc.bytes<4096: kept by ‘new’, which has 4,096 B
    Limit time.cpu<+3%: kept by ‘new’, which has -9.97 % [-10.0 %, -9.93 %]
    ");
}

#[test]
fn a_limit_that_is_exceeded_exits_with_1() {
    let answer = old_and_new(
        arm(1.0, 1),
        bytes(arm(1.1, 2), 5000.0),
        &["-r", "26", "--metrics", "time.cpu", "--limit", "malloc.bytes<4.5kB", "--limit", "time.cpu<+3%"],
    );
    assert_snapshot!(answer.exchange(), @"
    exit 1
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    cpu
      old  3.9983 ms  [3.9968, 4.0011]  █                                     reference
      new  4.4006 ms  [4.3988, 4.4027]             █  +10.0 % [+10.0, +10.1]  slower

    ‘new’ takes 10.0 % more cpu time than ‘old’ (95.2 % sure: +10.00 % to +10.1 %, 20 blocks).
    Limit malloc.bytes<4.5kB: kept by ‘old’, which has 4,096 B
    Limit malloc.bytes<4.5kB: EXCEEDED by ‘new’, which has 5,000 B
    Limit time.cpu<+3%: EXCEEDED by ‘new’, which has +10.0 % [+10.00 %, +10.1 %]
    ");
}

#[test]
fn a_limit_that_the_readings_cannot_decide_exits_with_3() {
    let noisy = |seed| noisy_arm(1.0, seed, 0.3);
    let answer =
        old_and_new(noisy(5), noisy(6), &["-r", "26", "--metrics", "time.cpu", "--limit", "time.cpu<+1%"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 3
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    cpu
      old  3.93 ms  [3.27, 4.58]  █ ▄ ▆▂▄▄ ▄▂▆                         reference
      new  3.41 ms  [3.06, 3.89]  █▄█▂▆▄▂▂ ▂▂   -10.1 % [-22.6, +2.1]  can’t tell

    Can’t tell whether ‘new’ takes more or less cpu time than ‘old’: anything from -22.6 % to +2.11 %
    fits the readings; about 15 more blocks would tell (-m 35).
    Limit time.cpu<+1%: can’t tell for ‘new’: -10.1 % [-22.6 %, +2.11 %]
    "#);
}

#[test]
fn a_limit_on_an_absent_metric_cannot_be_decided() {
    let without =
        |seed| arm(1.0, seed).absent("counting", "malloc.bytes", "the program is statically linked");
    let answer = old_and_new(
        without(1),
        without(2),
        &["-r", "16", "--metrics", "time.cpu", "--limit", "malloc.bytes<4MB"],
    );
    assert_snapshot!(answer.exchange(), @"
    exit 3
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    cpu
      old  3.9978 ms  [3.9968, 4.0011]   █▂▄ ▂ ▂▂                             reference
      new  4.0014 ms  [3.9989, 4.0038]  ▃   ▃▃▆  ▃▃█  +0.07 % [+0.02, +0.12]  same

    ‘new’ and ‘old’ take the same cpu time, within 2.0 % (95.1 % sure: +0.02 % to +0.12 %, 10 blocks).
    Limit malloc.bytes<4MB: can’t tell for ‘old’: malloc.bytes was not weighed: the program is
      statically linked
    Limit malloc.bytes<4MB: can’t tell for ‘new’: malloc.bytes was not weighed: the program is
      statically linked
    ");
}

#[test]
fn an_exceeded_limit_outweighs_one_that_cannot_be_decided() {
    let without = arm(1.2, 2).absent("counting", "malloc.bytes", "the program is statically linked");
    let limits = ["-r", "26", "--limit", "malloc.bytes<4MB", "--limit", "time.cpu<+3%"];
    assert_eq!(old_and_new(arm(1.0, 1), without, &limits).code, 1);
}

#[test]
fn a_limit_can_be_meant_for_one_arm_only() {
    let limit = |text| {
        let words = ["-r", "16", "--limit", text];
        old_and_new(bytes(arm(1.0, 1), 9000.0), arm(1.0, 2), &words).code
    };
    assert_eq!(limit("new:malloc.bytes<5kB"), 0);
    assert_eq!(limit("old:malloc.bytes<5kB"), 1);
    assert_eq!(limit("o*:malloc.bytes<5kB"), 1);
}

#[test]
fn a_change_limit_on_the_reference_alone_is_undecided() {
    let words = ["-r", "26", "--metrics", "time.cpu", "--limit", "old:time.cpu<+3%"];
    let answer = old_and_new(arm(1.0, 1), arm(1.0, 2), &words);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    assert!(answer.stdout.contains("Limit old:time.cpu<+3%: can’t tell for ‘old’"), "{}", answer.exchange());
}

#[test]
fn limits_of_scruple_toml_for_a_command_of_the_command_line_are_said_not_to_be_checked() {
    let place = Place::new();
    let table = |keys: &str| place.write("scruple.toml", format!("[limits]\n{keys}"));
    let words = ["--no-store", "-n", "old", "true", "-r", "16", "--metrics", "malloc.bytes"];
    let played = || place.play(&[("old", bytes(arm(1.0, 1), 9000.0))], &words);
    table("\"zoo.app.cache.hits\" = { max = 5 }\n\"o*.malloc.bytes\" = { max = \"5 kB\" }\n");
    assert_snapshot!(played().exchange(), @"
    exit 0
    --- stdout
    1 command · 10 blocks · seed 1

    malloc bytes
      old  9,000 B

    ! the limits of scruple.toml are for its own commands and are not checked here; this option sets
      one: --limit 'o*:malloc.bytes<=5 kB'
    ");
    // Another command, and a change where nothing is compared.
    for other in ["\"new.malloc.bytes\" = { max = \"5 kB\" }\n", "\"*.malloc.bytes\" = { max = \"+3%\" }\n"] {
        table(other);
        let answer = played();
        assert!(answer.code == 0 && !answer.stdout.contains("limits"), "{}", answer.exchange());
    }
}
