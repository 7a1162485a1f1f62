//! JSON, schema 1: durations in nanoseconds, sizes in bytes, ratios as numbers.

use scruple_core::harmless_text::{shown, steers};
use serde::Serialize;
use std::fmt::Write as _;

/// The version of the schema. New versions may add fields, but existing fields keep their meaning.
pub(crate) const SCHEMA: u32 = 1;

/// The fields that begin every document.
#[derive(Serialize)]
pub(crate) struct SchemaFields {
    version: &'static str,
    schema: u32,
}

impl SchemaFields {
    /// The fields of the documents that this program writes.
    pub(crate) const CURRENT: SchemaFields =
        SchemaFields { version: env!("CARGO_PKG_VERSION"), schema: SCHEMA };
}

#[derive(Serialize)]
struct DocumentWithHead<'a, T: Serialize> {
    scruple: SchemaFields,
    #[serde(flatten)]
    rest: &'a T,
}

/// Writes a document that is not a run, with the same head.
pub fn document(rest: &impl Serialize) -> String {
    written(&DocumentWithHead { scruple: SchemaFields::CURRENT, rest })
}

/// Writes a document as indented text. Serialization cannot fail: the keys of all documents are text.
pub(crate) fn written(document: &impl Serialize) -> String {
    inert(&(indented(&serde_json::to_string(document).unwrap_or_default()) + "\n"))
}

/// Breaks compact JSON into lines, indented by two spaces for each level. An array of numbers stays on one line, because
/// the indentation of readings would take more room than they do.
///
/// serde_json's own indenting writer would be compiled for each type of a document, beside its compact writer.
fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(2 * compact.len());
    let mut level = 0;
    let (mut quoted, mut escaped, mut empty) = (false, false, false);
    let mut end_of_numbers = 0;
    for (at, c) in compact.char_indices() {
        let closes = matches!(c, '}' | ']') && !quoted;
        if at < end_of_numbers {
            out.push(c);
            out.extend((c == ',').then_some(' '));
            continue;
        }
        level -= usize::from(closes);
        if !quoted && closes != empty {
            new_line(&mut out, level);
        }
        out.push(c);
        empty = matches!(c, '{' | '[') && !quoted;
        if empty && let Some(length) = numbers(&compact[at..]) {
            end_of_numbers = at + length;
            empty = false;
        }
        level += usize::from(empty);
        match c {
            ',' if !quoted => new_line(&mut out, level),
            ':' if !quoted => out.push(' '),
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
    }
    out
}

/// The length of the array that a text begins with, if it contains only numbers.
fn numbers(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?;
    let length = inside.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E' | ','))?;
    (length > 0 && inside[length..].starts_with(']')).then_some(length + 2)
}

fn new_line(out: &mut String, level: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level));
}

/// Escapes the characters of a JSON text that control a terminal.
pub(crate) fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (shown, others) = rest.split_at(shown(rest));
        out.push_str(shown);
        let mut others = others.chars();
        match others.next() {
            Some(c) if steers(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            Some(c) => out.push(c),
            None => return out,
        }
        rest = others.as_str();
    }
}

/// Writes a moment, given in milliseconds since 1970, in the format of RFC 3339.
pub fn timestamp(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_| milliseconds.to_string(), |moment| moment.to_string())
}

/// Writes a moment for readers, to the second: `2026-11-28 08:31:04 UTC`.
pub fn moment(milliseconds: i64) -> String {
    let text = timestamp(milliseconds);
    match text.get(..19).and_then(|text| text.split_once('T')) {
        Some((date, time)) => format!("{date} {time} UTC"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_indented_as_serde_json_does() {
        let values = serde_json::json!([
            {}, [], "", "{[,:\"\\", {"a\"b\\": [1, 2.5, null, true], "c": {"d": [], "e": {}, "f": [[[]]]}}, "\\", ["é\n"],
        ]);
        assert_eq!(indented(&values.to_string()), serde_json::to_string_pretty(&values).expect("JSON"));
        for value in values.as_array().expect("an array") {
            assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(value).expect("JSON"));
        }
    }

    #[test]
    fn an_array_of_numbers_stays_on_one_line() {
        let text = r#"{"a":[1,-2.5,1e-9],"b":[[3],[4,null]],"c":"[5,6]"}"#;
        let lines = indented(text);
        assert_eq!(lines.split_whitespace().collect::<String>(), text);
        let lines: Vec<&str> = lines.lines().map(str::trim).collect();
        assert_eq!(lines[1..5], [r#""a": [1, -2.5, 1e-9],"#, r#""b": ["#, "[3],", "["]);
        assert_eq!(lines[9], r#""c": "[5,6]""#);
    }
}
