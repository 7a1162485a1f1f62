//! Writes the gate as JUnit XML: one test for each metric that decides, and one for each limit.

use crate::check::sentence;
use crate::check::summary::GateSummary;
use crate::render::junit::{TestOutcome, document, failures_and_errors};
use maud::{Markup, html};
use scruple_core::gate::GateOutcome;
use scruple_core::harmless_text::plain_lines;
use scruple_core::judge::limits::Kept;

/// Writes the tests. A test without a decision is an error, because it did not pass.
pub fn text(summary: &GateSummary) -> String {
    let mut tests: Vec<(String, String, TestOutcome)> = Vec::new();
    for row in summary.rows.iter().filter(|row| row.finding.gates) {
        let text = format!("{} → {} {}", row.before, row.after, row.change);
        let why = row.finding.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        let ending = match row.finding.outcome {
            GateOutcome::Regression => TestOutcome::Failed(text),
            GateOutcome::CantTell => TestOutcome::Unknown(format!("can’t tell{why}: {text}")),
            GateOutcome::Accepted | GateOutcome::Improvement | GateOutcome::Same => TestOutcome::Passed,
        };
        tests.push((row.finding.subject.clone(), row.finding.metric.clone(), ending));
    }
    for limit in &summary.limits {
        let ending = match limit.kept {
            Kept::Yes => TestOutcome::Passed,
            Kept::No => TestOutcome::Failed(format!("exceeded: {}", limit.found)),
            Kept::CantTell => TestOutcome::Unknown(format!("can’t tell: {}", limit.found)),
        };
        tests.push((limit.arm.clone(), limit.text.clone(), ending));
    }
    if tests.is_empty() {
        let ending = match summary.kept {
            Kept::Yes => TestOutcome::Passed,
            _ => TestOutcome::Unknown(sentence::outcome(summary)),
        };
        tests.push(("check".to_owned(), "gate".to_owned(), ending));
    }
    let (failures, errors) = failures_and_errors(tests.iter().map(|(.., ending)| ending));
    document(html! {
        testsuite name="scruple check" tests=(tests.len()) failures=(failures) errors=(errors) skipped="0" time="0" {
            "\n"
            @for (subject, name, ending) in &tests { "  " (test(subject, name, ending)) "\n" }
        }
    })
}

fn test(subject: &str, name: &str, ending: &TestOutcome) -> Markup {
    html! {
        testcase classname=(plain_lines(subject)) name=(plain_lines(name)) time="0" {
            (ending.element(Some(["regression", "cant-tell"])))
        }
    }
}
