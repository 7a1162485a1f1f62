//! Arms: their names, the reference, the twin, the shell, the tare, and commands that fail.

use crate::scripted_readings::{Arm, arm, noisy_arm, old_and_new};
use crate::support::Place;
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn without_names_the_commands_themselves_are_shown() {
    let place = Place::new();
    let words = ["--no-store", "-r", "16", "--metrics", "malloc.bytes", "true", "sleep 0"];
    let answer = place.play(&[("true", arm(1.0, 1)), ("sleep 0", arm(1.0, 2))], &words);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    malloc bytes
      true     4,096 B        reference
      sleep 0  4,096 B    ±0  same

    ‘sleep 0’ and ‘true’ take exactly the same malloc bytes.
    ");
}

#[test]
fn the_same_command_twice_makes_two_arms() {
    let place = Place::new();
    let words = ["--no-store", "-r", "16", "--metrics", "malloc.bytes", "true", "true"];
    let answer = place.play(&[("true", arm(1.0, 1)), ("true #2", arm(1.0, 2))], &words);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    malloc bytes
      true     4,096 B        reference
      true #2  4,096 B    ±0  same

    ‘true #2’ and ‘true’ take exactly the same malloc bytes.
    ");
}

#[test]
fn a_single_command_is_weighed_without_a_comparison() {
    let place = Place::new();
    let answer =
        place.play(&[("true", arm(1.0, 1))], &["--no-store", "-r", "16", "--metrics", "time.wall", "true"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    1 command · 10 blocks · seed 1

    wall
      true  5.09 ms  [5.02, 5.24]  █▄▄▄ ▄   ▄▄█
    ");
}

#[test]
fn the_reference_may_be_named_and_comes_first() {
    let place = Place::new();
    let words =
        ["--no-store", "-r", "26", "--metrics", "time.wall", "--reference", "sleep 0", "true", "sleep 0"];
    let answer = place.play(&[("true", arm(1.0, 1)), ("sleep 0", arm(1.1, 2))], &words);
    assert_snapshot!(answer.exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      sleep 0  5.644 ms  [5.585, 5.710]          ▆▄▆█                          reference
      true     5.130 ms  [5.077, 5.196]  ▇█▇▆          -9.11 % [-9.15, -9.07]  faster

    ‘true’ takes 9.1 % less wall time than ‘sleep 0’ (95.2 % sure: -9.15 % to -9.07 %, 20 blocks).
    ");
}

#[test]
fn the_reference_may_be_a_command_of_the_configuration() {
    let place = Place::new();
    place.write(
        "scruple.toml",
        "[[command]]\nname = \"one\"\nrun = \"true 1\"\n\n[[command]]\nname = \"two\"\nrun = \"true 2\"\n",
    );
    let arms = [("one", arm(1.0, 1)), ("two", arm(1.0, 2))];
    let words = |reference: &'static str| {
        ["--no-store", "-r", "16", "--metrics", "malloc.bytes", "--reference", reference]
    };
    for reference in ["two", "true 2"] {
        let answer = place.play(&arms, &words(reference));
        assert!(answer.stdout.contains("two  4,096 B        reference"), "{}", answer.exchange());
    }
    let answer = place.play(&arms, &words("three"));
    assert_snapshot!(answer.exchange(), @r#"
    exit 2
    --- stderr
    error: the reference ‘three’ is not one of the commands of scruple.toml: give --reference the name of one, or add commands
    "#);
}

#[test]
fn names_and_hooks_are_for_the_commands_as_given_wherever_the_reference_stands() {
    let place = Place::new();
    let arms = |words: &[&str]| {
        let words = [&["run", "--no-store", "--time-only", "-r", "1", "--json"][..], words].concat();
        let answer = place.run(&words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let json = answer.json();
        let arms = json["arms"].as_array().expect("arms").iter().filter(|arm| arm["role"] == "subject");
        let figures = |arm: &serde_json::Value| {
            let argv = arm["subject"]["argv"].as_array().expect("words");
            (arm["name"].as_str().expect("a name").to_owned(), argv.last().cloned().expect("a word"))
        };
        arms.map(figures)
            .map(|(name, word)| format!("{name}={}", word.as_str().unwrap_or("?")))
            .collect::<Vec<_>>()
    };
    let two = ["true 1", "true 2"];
    let named = |reference: &[&str], names: &[&str]| {
        let names = names.iter().flat_map(|name| ["-n", *name]);
        arms(&reference.iter().copied().chain(names).chain(two).collect::<Vec<_>>())
    };
    assert_eq!(named(&["--reference", "true 2"], &["one", "two"]), ["two=2", "one=1"]);
    assert_eq!(named(&["--reference", "true 3"], &["one", "two"]), ["true 3=3", "one=1", "two=2"]);
    assert_eq!(named(&["--reference", "true 3"], &["three", "one", "two"]), ["three=3", "one=1", "two=2"]);
    let zero = ["--reference", "true 3", "--reference-name", "three"];
    assert_eq!(named(&zero, &["one"]), ["three=3", "one=1", "true 2=2"]);
    // Of two equal commands, one becomes the reference, and the other remains an arm.
    assert_eq!(arms(&["--reference", "true 1", "true 1", "true 1"]), ["true 1=1", "true 1 #2=1"]);
    let hooks = ["-p", "echo one > mark", "-p", "echo two > mark", "--reference", "grep -q two mark"];
    assert_eq!(arms(&[&hooks[..], &["grep -q one mark", "grep -q two mark"]].concat()).len(), 2);
}

#[test]
fn three_arms_are_each_compared_with_the_first() {
    let place = Place::new();
    let words = ["--no-store", "-r", "26", "--metrics", "time.cpu", "-n", "a", "-n", "b", "-n", "c"];
    let words: Vec<&str> = words.iter().copied().chain(["true", "true 2", "true 3"]).collect();
    let arms = [("a", arm(1.0, 1)), ("b", arm(1.05, 2)), ("c", arm(0.95, 3))];
    assert_snapshot!(place.play(&arms, &words).exchange(), @r"
    exit 0
    --- stdout
    3 commands · 20 blocks, interleaved · seed 1

    cpu
      a  3.9983 ms  [3.9968, 4.0011]       █▆                               reference
      b  4.2006 ms  [4.1988, 4.2026]             █  +5.03 % [+4.99, +5.09]  slower
      c  3.8013 ms  [3.7989, 3.8025]  █             -4.96 % [-5.01, -4.92]  faster

    ‘b’ takes 5.0 % more cpu time than ‘a’ (97.6 % sure: +4.99 % to +5.09 %, 20 blocks).
    ‘c’ takes 5.0 % less cpu time than ‘a’ (97.6 % sure: -5.01 % to -4.92 %, 20 blocks).
    Fastest in cpu time: ‘c’; then ‘a’ 1.05 × [1.05, 1.05], ‘b’ 1.11 × [1.10, 1.11].
    ");
}

#[test]
fn the_twin_of_the_reference_widens_the_margin_to_what_it_shows() {
    let place = Place::new();
    let arms = [
        ("old", noisy_arm(1.0, 1, 0.01)),
        ("new", noisy_arm(1.04, 2, 0.01)),
        ("(reference again)", noisy_arm(1.05, 3, 0.01)),
    ];
    let words = ["--no-store", "--self", "-n", "old", "-n", "new", "-r", "26", "--metrics", "time.wall"];
    let words: Vec<&str> = words.iter().copied().chain(["true", "true 2"]).collect();
    assert_snapshot!(place.play(&arms, &words).exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 1

    wall
      old                5.119 ms  [5.038, 5.203]                          reference
      new                5.362 ms  [5.270, 5.401]  +4.22 % [+3.74, +4.74]  same within 5.8 %
      (reference again)  5.371 ms  [5.336, 5.481]  +5.32 % [+4.77, +5.84]  slower

    ‘new’ and ‘old’ take the same wall time, within 5.8 % (97.6 % sure: +3.74 % to +4.74 %, 20 blocks).
    ");
}

#[test]
fn a_shell_is_shown_as_a_row_of_its_own() {
    let place = Place::new();
    let words = ["--no-store", "-S", "sh", "-r", "16", "--metrics", "time.wall", "true | true"];
    let answer = place.play(&[("true | true", arm(1.0, 1)), ("(sh -c '')", arm(0.3, 2))], &words);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    1 command · 10 blocks · seed 1

    wall
      true | true  5.092 ms  [5.023, 5.236]             █
      (sh -c '')   1.527 ms  [1.508, 1.571]  █
    ");
}

#[test]
fn the_tare_is_reported_and_subtracted_where_it_matters() {
    let place = Place::new();
    let words = ["--no-store", "-r", "26", "--metrics", "time.wall", "true"];
    let answer = place.play(&[("true", arm(0.1, 1)), ("(empty program)", arm(0.02, 2))], &words);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    1 command · 20 blocks · seed 1

    wall
      true  513.0 µs  [507.7, 519.6]  ▄▂▄▂▂▄▆  █▄▄

    Tare: launching an empty program takes 103 µs of wall time; it is part of the figures above.
          net of that, ‘true’ takes 410 µs [405 µs, 417 µs].
    ");
}

#[test]
fn the_tare_is_of_processor_time_where_much_of_the_wall_time_was_waiting() {
    let place = Place::new();
    let waiting = |arm: Arm| arm.with("timing", "time.wait", |_| 4e5);
    let arms = [("true", waiting(arm(0.1, 1))), ("(empty program)", waiting(arm(0.02, 2)))];
    let answer = place.play(&arms, &["--no-store", "-r", "26", "--metrics", "time", "true"]);
    let tare = answer.stdout.lines().find(|line| line.starts_with("Tare: ")).unwrap_or_default();
    assert!(tare.contains("of cpu time; it is part"), "{}", answer.exchange());
}

#[test]
fn the_tare_and_the_verdict_are_about_times_that_are_shown() {
    let place = Place::new();
    let waiting = |arm: Arm| arm.with("timing", "time.wait", |_| 4e5);
    let shown = |metrics: &str, change: fn(Arm) -> Arm| {
        let arms = [("a", arm(0.1, 1)), ("b", arm(0.1, 2)), ("(empty program)", arm(0.02, 3))];
        let words = ["--no-store", "-n", "a", "-n", "b", "-r", "26", "--metrics", metrics, "true", "true 2"];
        place.play(&arms.map(|(name, arm)| (name, change(arm))), &words).stdout
    };
    for (metrics, named, other) in
        [("time.cpu,malloc", "of cpu time;", "wall"), ("time.wall,malloc", "of wall time;", "cpu")]
    {
        for text in [shown(metrics, |arm| arm), shown(metrics, waiting)] {
            assert!(text.contains(named) && text.contains("net of that, ‘b’"), "{text}");
            let about_times = text.lines().filter(|line| !line.starts_with("! "));
            assert!(about_times.into_iter().all(|line| !line.contains(other)), "{text}");
        }
    }
    assert!(!shown("malloc", |arm| arm).contains("Tare"));
}

#[test]
fn a_cost_not_above_the_tare_is_below_resolution_and_never_negative() {
    let place = Place::new();
    let words = ["--no-store", "-r", "26", "--metrics", "time.wall", "true"];
    let answer = place.play(&[("true", arm(0.02, 1)), ("(empty program)", arm(0.02, 2))], &words);
    assert!(answer.stdout.contains("‘true’ takes less than "), "{}", answer.exchange());
    assert!(answer.stdout.contains(", which is below resolution."), "{}", answer.exchange());
}

fn failing(arm: Arm, pass: &str, from: usize) -> Arm {
    arm.each(pass, |launch, entry| {
        if launch >= from {
            entry["exit"] = json!(3);
            entry["stderr"] = json!("no such thing\nsorry");
        }
    })
}

#[test]
fn a_command_that_fails_at_once_ends_the_run_with_its_error_output() {
    let answer = old_and_new(arm(1.0, 1), failing(arm(1.0, 2), "memory", 0), &["-r", "16"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stderr
    error: ‘new’ exited with code 3 in the memory pass (-i measures it regardless); its error output:
        no such thing
        sorry
    ");
}

#[test]
fn readings_before_a_failure_are_shown_and_kept() {
    let place = Place::new();
    let arms = [("old", arm(1.0, 1)), ("new", failing(arm(1.1, 2), "timing", 8))];
    let words = ["-n", "old", "-n", "new", "-r", "26", "--metrics", "time.wall", "true", "true 2"];
    let answer = place.play(&arms, &words);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stdout
    2 commands · 8 blocks, interleaved · seed 1 · failed: these are the readings taken so far

    wall
      old  5.09 ms  [5.01, 5.24]  █▆ █                                 reference
      new  5.60 ms  [5.51, 5.77]          █▆ █  +10.0 % [+9.9, +10.1]  slower

    ‘new’ takes 10.0 % more wall time than ‘old’ (99.2 % sure: +9.92 % to +10.1 %, 8 blocks).
    Stored as scripted-1 in store.db; `scruple show scripted-1` shows it again.
    --- stderr
    error: ‘new’ exited with code 3 in the timing pass (-i measures it regardless, and --show-output shows what it prints)
    ");
    let kept = place.run(["show", "last", "--metrics", "time.wall"]);
    assert!(kept.stdout.contains("2 commands · 8 blocks"), "{}", kept.exchange());
}

#[test]
fn ignored_failures_are_reported() {
    let answer = old_and_new(
        arm(1.0, 1),
        failing(arm(1.0, 2), "timing", 0),
        &["-i", "-r", "16", "--metrics", "malloc.bytes"],
    );
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    2 commands · 10 blocks, interleaved · seed 1

    malloc bytes
      old  4,096 B        reference
      new  4,096 B    ±0  same

    ‘new’ and ‘old’ take exactly the same malloc bytes.
    ! ‘new’ exited with code 3
    ");
}

#[test]
fn an_end_by_a_signal_names_the_signal() {
    let killed = arm(1.0, 2).each("memory", |_, entry| entry["signal"] = json!(11));
    let answer = old_and_new(arm(1.0, 1), killed, &["-r", "16"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stderr
    error: ‘new’ was ended by signal 11 (SIGSEGV) in the memory pass (-i measures it regardless, and --show-output shows what it prints)
    ");
}
