//! Writes the gate as JUnit XML: one test for each metric that decides, and one for each limit.

use crate::check::summary::Summary;
use maud::{Markup, html};
use scruple_core::budget::Kept;
use scruple_core::gate::GateOutcome;
use scruple_core::harmless_text::plain_lines;

/// The outcome of a test.
enum TestOutcome {
    Passed,
    Failed(String),
    Unknown(String),
}

/// Writes the tests. A test without a decision is an error, because it did not pass.
pub fn text(summary: &Summary) -> String {
    let mut tests: Vec<(String, String, TestOutcome)> = Vec::new();
    for row in summary.rows.iter().filter(|row| row.finding.gates) {
        let said = format!("{} → {} {}", row.before, row.after, row.change);
        let why = row.finding.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        let ending = match row.finding.outcome {
            GateOutcome::Regression => TestOutcome::Failed(said),
            GateOutcome::CantTell => TestOutcome::Unknown(format!("can’t tell{why}: {said}")),
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
            _ => TestOutcome::Unknown(summary.headline()),
        };
        tests.push(("check".to_owned(), "gate".to_owned(), ending));
    }
    let count = |wanted: fn(&TestOutcome) -> bool| tests.iter().filter(|(.., ending)| wanted(ending)).count();
    let failures = count(|ending| matches!(ending, TestOutcome::Failed(_)));
    let errors = count(|ending| matches!(ending, TestOutcome::Unknown(_)));
    let suite = html! {
        testsuite name="scruple check" tests=(tests.len()) failures=(failures) errors=(errors) skipped="0" time="0" {
            "\n"
            @for (subject, name, ending) in &tests { "  " (test(subject, name, ending)) "\n" }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", suite.into_string())
}

fn test(subject: &str, name: &str, ending: &TestOutcome) -> Markup {
    html! {
        testcase classname=(plain_lines(subject)) name=(plain_lines(name)) time="0" {
            @match ending {
                TestOutcome::Passed => {},
                TestOutcome::Failed(why) => { failure message=(plain_lines(why)) type="regression" {} },
                TestOutcome::Unknown(why) => { error message=(plain_lines(why)) type="cant-tell" {} },
            }
        }
    }
}
