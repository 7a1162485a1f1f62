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

/// Breaks compact JSON into lines, indented by two spaces for each level.
///
/// serde_json's own indenting writer would be compiled for each type of a document, beside its compact writer.
fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(2 * compact.len());
    let mut level = 0;
    let (mut quoted, mut escaped, mut empty) = (false, false, false);
    for c in compact.chars() {
        let closes = matches!(c, '}' | ']') && !quoted;
        level -= usize::from(closes);
        if !quoted && closes != empty {
            new_line(&mut out, level);
        }
        out.push(c);
        empty = matches!(c, '{' | '[') && !quoted;
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
}
