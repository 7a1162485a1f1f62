//! Writes the gate as SARIF 2.1.0 (OASIS): a result for each function that causes a deciding regression and that the
//! change touches. A regression without known lines has no result, because a wrong line is worse than none.

use super::origin_words;
use crate::check::origins::RegressionOrigin;
use crate::check::summary::GateSummary;
use crate::render::json::written;
use crate::render::metric_words::title;
use scruple_core::harmless_text::plain;
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The id of the rule that all results refer to, and its description.
const RULE: (&str, &str) = ("scruple/regression", "A metric that decides became worse");

/// Writes the results as a SARIF document.
pub fn text(summary: &GateSummary) -> String {
    let results: Vec<Value> = summary.origins.iter().filter_map(|origin| result(summary, origin)).collect();
    let document = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "scruple",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [{
                    "id": RULE.0,
                    "shortDescription": {"text": RULE.1},
                    "fullDescription": {"text": "The change makes this subject cost more than its base, by more than the gate allows."},
                    "help": {"text": "scruple explain says more; scruple history accept declares the change as intended."},
                    "defaultConfiguration": {"level": "error"},
                    "properties": {"tags": ["performance"]},
                }],
            }},
            "results": results,
            "columnKind": "unicodeCodePoints",
        }],
    });
    written(&document)
}

fn result(summary: &GateSummary, origin: &RegressionOrigin) -> Option<Value> {
    let hunk = origin.hunk.as_ref()?;
    let row = summary
        .rows
        .iter()
        .find(|row| row.finding.subject == origin.subject && row.finding.metric == origin.metric)?;
    let (function, more) = origin_words(origin);
    let text = format!(
        "{} of {} went from {} to {}, {}; {function}: {more}",
        title(&origin.metric),
        origin.subject,
        row.before,
        row.after,
        row.change
    );
    // SARIF counts lines from 1; a hunk that only removes lines at the start of a file is at line 0.
    let (first, last) = (hunk.lines.0.max(1), hunk.lines.1.max(1));
    Some(json!({
        "ruleId": RULE.0,
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": plain(&text)},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": uri(&hunk.file), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": first, "endLine": last},
        }}],
        // The fingerprint does not contain the line, because each push would then create a new alert.
        "partialFingerprints": {"scruple/v1": format!("{}:{}:{}", origin.subject, origin.metric, origin.function)},
    }))
}

/// Writes a path as a relative reference of RFC 3986: everything except unreserved characters and slashes is
/// percent-encoded.
fn uri(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte))
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_path_is_a_relative_reference() {
        assert_eq!(uri("src/a b:ü.c"), "src/a%20b%3A%C3%BC.c");
    }
}
