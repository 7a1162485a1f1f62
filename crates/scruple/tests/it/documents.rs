//! What is written for documents: Markdown, AsciiDoc, Org.

use crate::formats::play;
use crate::support::Place;
use insta::assert_snapshot;

#[test]
fn markdown_has_a_table_and_sentences() {
    let place = Place::new();
    play(&place, &["--export-markdown", "out.md"]);
    assert_snapshot!(place.read("out.md"), @r#"
    | Command | wall | cpu | peak memory | mallocs | malloc bytes | Compared |
    |:---|---:|---:|---:|---:|---:|:---|
    | `old \| 1` | 4.00 ms [4.00 ms, 4.00 ms] | 2.00 ms [2.00 ms, 2.00 ms] | 1.50 MB | 100 | 4,096 B | reference |
    | `new, "2"` | 5.00 ms [5.00 ms, 5.00 ms] | 2.50 ms [2.50 ms, 2.50 ms] | 1.50 MB | 100 | 4,100 B | +25.0 % [+25.0, +25.0] slower (wall) |

    ‘new, "2"’ takes 25.0 % more wall time than ‘old | 1’ (98.4 % sure: +25.0 % to +25.0 %, 7 blocks).
    "#);
}

#[test]
fn asciidoc_has_a_table_and_sentences() {
    let place = Place::new();
    play(&place, &["--export-asciidoc", "out.adoc"]);
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
    play(&place, &["--export-org", "out.org"]);
    assert_snapshot!(place.read("out.org"), @r#"
    | Command | wall | cpu | peak memory | mallocs | malloc bytes | Compared |
    |--+--+--+--+--+--+---|
    | =old \vert{} 1= | 4.00 ms [4.00 ms, 4.00 ms] | 2.00 ms [2.00 ms, 2.00 ms] | 1.50 MB | 100 | 4,096 B | reference |
    | =new, "2"= | 5.00 ms [5.00 ms, 5.00 ms] | 2.50 ms [2.50 ms, 2.50 ms] | 1.50 MB | 100 | 4,100 B | +25.0 % [+25.0, +25.0] slower (wall) |

    ‘new, "2"’ takes 25.0 % more wall time than ‘old | 1’ (98.4 % sure: +25.0 % to +25.0 %, 7 blocks).
    "#);
}
