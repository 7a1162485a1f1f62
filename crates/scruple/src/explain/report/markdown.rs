//! The explanation as Markdown, for a message.

use super::words;
use crate::explain::findings::Found;
use scruple_core::unit::share;
use std::fmt::Write as _;

/// Writes the sentences and a table.
pub fn text(found: &Found, rows: usize) -> String {
    let mut out = format!("A: `{}`  \nB: `{}`\n\n", bare(&found.names[0]), bare(&found.names[1]));
    for line in words::answer(found) {
        let _ = writeln!(out, "{}\n", escape(&line));
    }
    let explanation = found.main();
    let delta = explanation.delta();
    if found.telling(explanation).next().is_some() {
        out.push_str("| difference | share | code | function | what |\n|---:|---:|---|---|---|\n");
    }
    for row in found.telling(explanation).take(rows) {
        let part = if delta.round() == 0.0 { String::new() } else { share(row.delta / delta) };
        let what = row.parts.first().map_or(String::new(), |part| words::tell(row, part));
        let cells = [words::signed(row.delta), part, words::code(row).to_owned(), words::function(row), what];
        let _ = writeln!(out, "| {} |", cells.map(|cell| escape(&cell)).join(" | "));
    }
    for remark in words::remarks(found) {
        let _ = writeln!(out, "\n{}", escape(&remark));
    }
    out
}

/// Text between backticks.
fn bare(text: &str) -> String {
    text.replace(['`', '\n', '\r'], " ")
}

/// Text in which nothing is markup.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' => out.extend(['\\', letter]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_of_functions_are_no_markup() {
        assert_eq!(escape("a<b>|*c*`d`"), "a&lt;b&gt;\\|\\*c\\*\\`d\\`");
    }
}
