//! Exports for documents: Markdown, AsciiDoc, Org.

use crate::formats::play;
use crate::scripted_readings::arm;
use crate::support::Place;
use insta::assert_snapshot;

#[test]
fn markdown_has_a_table_and_sentences() {
    let place = Place::new();
    play(&place, &["--export", "out.md"]);
    assert_snapshot!(place.read("out.md"), @r#"
    | Command | wall | cpu | peak memory | mallocs | malloc bytes | Compared |
    |:---|---:|---:|---:|---:|---:|:---|
    | `old \| 1` | 4.00 ms [4.00 ms, 4.00 ms] | 2.00 ms [2.00 ms, 2.00 ms] | 1.50 MB | 100 | 4,096 B | reference |
    | `new, "2"` | 5.00 ms [5.00 ms, 5.00 ms] | 2.50 ms [2.50 ms, 2.50 ms] | 1.50 MB | 100 | 4,100 B | +25.0 % [+25.0, +25.0] slower (wall) |

    ‘new, "2"’ takes 25.0 % more wall time than ‘old \| 1’ (98.4 % sure: +25.0 % to +25.0 %, 7 blocks).
    "#);
}

#[test]
fn asciidoc_has_a_table_and_sentences() {
    let place = Place::new();
    play(&place, &["--export", "out.adoc"]);
    assert_snapshot!(place.read("out.adoc"), @r#"
    [cols="<,>,>,>,>,>,<", options="header"]
    |===
    | Command
    | wall
    | cpu
    | peak memory
    | mallocs
    | malloc bytes
    | Compared

    | `old \| 1`
    | 4.00 ms [4.00 ms, 4.00 ms]
    | 2.00 ms [2.00 ms, 2.00 ms]
    | 1.50 MB
    | 100
    | 4,096 B
    | reference

    | `new, "2"`
    | 5.00 ms [5.00 ms, 5.00 ms]
    | 2.50 ms [2.50 ms, 2.50 ms]
    | 1.50 MB
    | 100
    | 4,100 B
    | +25.0 % [+25.0, +25.0] slower (wall)
    |===

    ‘new, "2"’ takes 25.0 % more wall time than ‘old | 1’ (98.4 % sure: +25.0 % to +25.0 %, 7 blocks).
    "#);
}

#[test]
fn org_has_a_table_and_sentences() {
    let place = Place::new();
    play(&place, &["--export", "out.org"]);
    assert_snapshot!(place.read("out.org"), @r#"
    | Command | wall | cpu | peak memory | mallocs | malloc bytes | Compared |
    |--+--+--+--+--+--+---|
    | =old \vert{} 1= | 4.00 ms [4.00 ms, 4.00 ms] | 2.00 ms [2.00 ms, 2.00 ms] | 1.50 MB | 100 | 4,096 B | reference |
    | =new, "2"= | 5.00 ms [5.00 ms, 5.00 ms] | 2.50 ms [2.50 ms, 2.50 ms] | 1.50 MB | 100 | 4,100 B | +25.0 % [+25.0, +25.0] slower (wall) |

    ‘new, "2"’ takes 25.0 % more wall time than ‘old | 1’ (98.4 % sure: +25.0 % to +25.0 %, 7 blocks).
    "#);
}

#[test]
fn a_file_on_standard_output_has_it_for_itself() {
    let place = Place::new();
    for words in [["--export", "json:-"], ["--export-json", "-"]] {
        let answer = play(&place, &words);
        assert_eq!(answer.json()["arms"].as_array().map(Vec::len), Some(2));
        assert!(answer.stderr.contains("takes 25.0 % more wall time"), "{}", answer.exchange());
    }
}

#[test]
fn a_name_is_one_line() {
    let place = Place::new();
    let words =
        ["run", "--no-store", "--time-only", "-r", "1", "-n", "two\nlines", "--export-markdown", "-", "true"];
    let answer = place.run(words);
    assert!(answer.stdout.contains("\n| `two�lines` |"), "{}", answer.exchange());
}

#[test]
fn an_estimate_of_nothing_is_shown_in_the_unit_of_its_bounds() {
    let place = Place::new();
    let system = |launch: usize| if launch.is_multiple_of(4) { 3.5e6 } else { 0.0 };
    let one = || crate::scripted_readings::arm(1.0, 1).with("timing", "time.sys", system);
    let words = ["-n", "one", "-r", "26", "--metrics", "time.sys", "true"];
    let answer = place.play(&[("one", one())], &words);
    assert!(answer.stdout.contains("?0.0") && answer.stdout.contains(" ms "), "{}", answer.exchange());
    assert!(!answer.stdout.contains("3500000"), "{}", answer.exchange());
}

/// A count that was read once has not repeated: no format may show it as exact.
#[test]
fn a_count_that_was_read_once_is_marked() {
    let place = Place::new();
    let once = [("true", arm(1.0, 1))];
    for format in ["md", "adoc", "org"] {
        let file = format!("{format}:-");
        let answer = place
            .play(&once, &["--no-store", "-r", "4", "--metrics", "malloc.bytes", "--export", &file, "true"]);
        assert!(answer.stdout.contains("| ≈"), "{}", answer.exchange());
    }
}
