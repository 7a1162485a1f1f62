//! The table on terminals of several widths, with and without colour.

use crate::scripted_readings::{Arm, arm};
use crate::support::{Answer, Place};
use insta::assert_snapshot;

const LONG: &str = "a program with a name that is rather long for a table --and=an-option";

fn show(width: &str) -> Answer {
    let place = Place::new();
    place.script(&[("short", arm(1.0, 1)), (LONG, arm(1.1, 2))]);
    let words = ["--no-store", "-n", "short", "-n", LONG, "-r", "26", "true", "true 2"];
    let metrics = ["--metrics", "time.wall,malloc.bytes"];
    let mut command =
        place.command(["run", "--scripted", "script.json"].iter().chain(&words).chain(&metrics));
    place.finish(command.env("COLUMNS", width))
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn sixty_columns_drop_the_histogram_and_the_intervals_and_shorten_names() {
    let answer = show("60");
    assert!(widest(&answer.stdout) <= 60, "{}", answer.stdout);
    assert_snapshot!(answer.stdout, @"
    2 commands · 20 blocks, interleaved · seed 1

    wall
      short          5.130 ms                          reference
      a program wi…  5.644 ms  +10.0 % [+10.0, +10.1]  slower
    malloc bytes
      short           4,096 B                          reference
      a program wi…   4,096 B  ±0                      same
    Columns that do not fit: intervals; set COLUMNS=75 to see
    them.

    ‘a program with a name that is rather long for a table
    --and=an-option’ takes 10.0 % more wall time than ‘short’
    (95.2 % sure: +9.98 % to +10.1 %, 20 blocks).
    ");
}

#[test]
fn columns_that_do_not_fit_are_named_with_the_width_that_shows_them() {
    for (width, left_out) in [("60", "intervals;"), ("45", "intervals;"), ("42", "intervals, differences;")] {
        let answer = show(width);
        assert!(widest(&answer.stdout) <= width.parse().expect("a number"), "{}", answer.stdout);
        assert_eq!(answer.stdout.contains("  +10.0 %"), width != "42", "{}", answer.stdout);
        let text = answer.unwrapped();
        assert!(text.contains(&format!("Columns that do not fit: {left_out}")), "{}", answer.stdout);
        let (_, rest) = text.split_once("COLUMNS=").expect("the width of the whole table");
        let whole: usize = rest.split(' ').next().and_then(|width| width.parse().ok()).expect("a number");
        let is_whole = |width: usize| {
            let text = show(&width.to_string()).stdout;
            assert!(widest(&text) <= width, "{text}");
            text.contains("[5.077, 5.196]") && text.contains("[+10.0, +10.1]") && !text.contains("do not fit")
        };
        assert!(is_whole(whole) && !is_whole(whole - 1), "{}", answer.stdout);
    }
}

#[test]
fn metrics_of_another_tool_are_left_out_before_those_that_many_tools_have() {
    let place = Place::new();
    let line = "BenchmarkJoin-2  2000  176.7 ns/op  3.5 widgets/op  870 requests/s  64 B/op  1 allocs/op\n";
    place.write("bench.txt", format!("goos: linux\npkg: example.com/words\n{}", line.repeat(6)));
    assert_eq!(place.run(["store", "import", "bench.txt"]).code, 0);
    let shown = place.finish(place.command(["show", "last"]).env("COLUMNS", "50"));
    assert!(widest(&shown.stdout) <= 50, "{}", shown.stdout);
    assert!(shown.stdout.contains("allocated") && shown.stdout.contains("64 B"), "{}", shown.stdout);
    let left_out =
        shown.stdout.lines().find(|line| line.starts_with("Columns that do not fit")).expect("a line");
    assert!(left_out.contains("go.widgets") && !left_out.contains("allocated"), "{}", shown.stdout);
    let (_, rest) = shown.stdout.split_once("COLUMNS=").expect("the width of the whole table");
    let whole: usize = rest.split(' ').next().and_then(|width| width.parse().ok()).expect("a number");
    let is_whole = |width: usize| {
        let shown = place.finish(place.command(["show", "last"]).env("COLUMNS", width.to_string())).stdout;
        widest(&shown) <= width && shown.contains("go.widgets") && !shown.contains("do not fit")
    };
    assert!(is_whole(whole) && !is_whole(whole - 1), "{}", shown.stdout);
}

#[test]
fn no_line_is_wider_than_eighty_columns() {
    let answer = show("80");
    assert!(widest(&answer.stdout) <= 80, "{}", answer.stdout);
    assert_snapshot!(answer.stdout, @"
    2 commands · 20 blocks, interleaved · seed 1

    wall
      short              5.130 ms  [5.077, 5.196]                          reference
      a program with a…  5.644 ms  [5.585, 5.710]  +10.0 % [+10.0, +10.1]  slower
    malloc bytes
      short               4,096 B                                          reference
      a program with a…   4,096 B                  ±0                      same

    ‘a program with a name that is rather long for a table --and=an-option’ takes
    10.0 % more wall time than ‘short’ (95.2 % sure: +9.98 % to +10.1 %, 20 blocks).
    ");
}

#[test]
fn two_hundred_columns_have_room_for_everything() {
    let answer = show("200");
    assert!(answer.stdout.contains(LONG) && widest(&answer.stdout) <= 200, "{}", answer.stdout);
    assert_snapshot!(answer.stdout, @"
    2 commands · 20 blocks, interleaved · seed 1

    wall
      short                                                                  5.130 ms  [5.077, 5.196]  ▇█▇▆                                  reference
      a program with a name that is rather long for a table --and=an-option  5.644 ms  [5.585, 5.710]          ▆▄▆█  +10.0 % [+10.0, +10.1]  slower
    malloc bytes
      short                                                                   4,096 B                                                        reference
      a program with a name that is rather long for a table --and=an-option   4,096 B                                ±0                      same

    ‘a program with a name that is rather long for a table --and=an-option’ takes 10.0 % more wall time than ‘short’ (95.2 % sure: +9.98 % to +10.1 %, 20 blocks).
    ");
}

fn coloured(words: &[&str], environment: &[(&str, &str)]) -> String {
    let place = Place::new();
    let arms: [(&str, Arm); 2] = [("old", arm(1.0, 1)), ("new", arm(1.1, 2))];
    place.script(&arms);
    let all = ["run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", "new", "-r", "16"];
    let rest = ["--metrics", "malloc.bytes", "true", "true 2"];
    let mut command = place.command(all.iter().chain(&rest).chain(words));
    place.finish(command.envs(environment.iter().copied())).stdout
}

#[test]
fn there_is_no_colour_without_a_terminal() {
    assert!(!coloured(&[], &[]).contains('\u{1b}'));
}

#[test]
fn colour_can_be_forced() {
    let text = coloured(&["--color=always"], &[("NO_COLOR", "1")]);
    assert_snapshot!(text.replace('\u{1b}', "␛"), @r"
    2 commands · 10 blocks, interleaved · seed 1

    ␛[1mmalloc bytes␛[0m
      old  4,096 B        ␛[2mreference␛[0m
      new  4,096 B    ±0  ␛[2msame␛[0m

    ␛[1m‘new’ and ‘old’ take exactly the same malloc bytes.␛[0m
    ");
}

#[test]
fn colour_can_be_disabled_and_no_color_is_respected() {
    let forced = [("CLICOLOR_FORCE", "1")];
    assert!(coloured(&[], &forced).contains('\u{1b}'));
    assert!(!coloured(&["--color=never"], &forced).contains('\u{1b}'));
    assert!(!coloured(&[], &[("NO_COLOR", "1"), ("CLICOLOR", "1")]).contains('\u{1b}'));
}
