//! Writes the explanation as Markdown, for a message.

use super::{remarks, row_words, words};
use crate::explain::findings::Findings;
use crate::render::markup::escaped;
use scruple_core::unit::share;
use std::fmt::Write as _;

/// Writes the sentences and a table with this many rows.
pub fn text(found: &Findings, rows: usize) -> String {
    let mut out = format!("A: `{}`  \nB: `{}`\n\n", bare(&found.names[0]), bare(&found.names[1]));
    write_lines(&words::answer(found), &mut out);
    table(found.origin(), rows, &mut out);
    if found.originates_in_script() {
        let _ = writeln!(out, "\n{}\n", words::OF_THE_INTERPRETER);
        table(found, rows, &mut out);
    }
    for script in found.script.iter().filter(|_| !found.originates_in_script()) {
        out.push('\n');
        write_lines(&words::answer(script), &mut out);
        table(script, rows, &mut out);
    }
    for (index, one) in found.closures.iter().take(rows).enumerate() {
        if index == 0 {
            out.push_str("\n| bytes | number | type of closures |\n|---:|---:|---|\n");
        }
        let [bytes, number] = row_words::closures(one);
        let _ = writeln!(out, "| {bytes} | {number} | {} |", escaped(&one.name));
    }
    for remark in remarks::remarks(found) {
        let _ = writeln!(out, "\n! {}", escaped(&remark));
    }
    for note in remarks::notes(found).into_iter().chain(remarks::counted(found)) {
        let _ = writeln!(out, "\n{}", escaped(&note));
    }
    out
}

fn write_lines(lines: &[String], out: &mut String) {
    for line in lines {
        let _ = writeln!(out, "{}\n", escaped(line));
    }
}

/// Writes the rows of the first count.
fn table(found: &Findings, rows: usize, out: &mut String) {
    let explanation = found.main();
    if found.shown_rows(explanation).next().is_some() {
        out.push_str("| difference | share | code | function | what |\n|---:|---:|---|---|---|\n");
    }
    for row in found.shown_rows(explanation).take(rows) {
        let part = explanation.share_of(row).map_or(String::new(), share);
        let what = row_words::first(row).unwrap_or_default();
        let cells = [
            row_words::signed(row.delta),
            part,
            row_words::code(row).to_owned(),
            row_words::function(row),
            what,
        ];
        let _ = writeln!(out, "| {} |", cells.map(|cell| escaped(&cell)).join(" | "));
    }
}

/// Removes backticks and line ends from a text, so that it can be written between backticks.
fn bare(text: &str) -> String {
    text.replace(['`', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use crate::render::markup::escaped;

    #[test]
    fn names_of_functions_are_no_markup() {
        assert_eq!(escaped("a<b>|*c*`d`"), "a&lt;b&gt;\\|\\*c\\*\\`d\\`");
    }
}
