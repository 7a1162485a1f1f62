//! A run as JUnit XML: its arms and their limits are tests.

use super::Report;
use crate::render::junit::{TestOutcome, document, failures_and_errors};
use maud::{Markup, html};
use scruple_core::harmless_text::plain_lines;
use scruple_core::judge::limits::{Checked, Kept};
use scruple_core::subject::{Arm, Role, tells_skip};

/// Writes one test for each limit of an arm, and one for each arm without limits. An undecided limit is an error.
pub fn text(report: &Report<'_>) -> String {
    let tests: Vec<(Markup, TestOutcome)> =
        report.run.arms_of(Role::Subject).flat_map(|arm| tests(report, arm)).collect();
    let (failures, errors) = failures_and_errors(tests.iter().map(|(_, outcome)| outcome));
    let skipped = tests.iter().filter(|(_, outcome)| matches!(outcome, TestOutcome::Skipped(_))).count();
    document(html! {
        testsuite name="scruple" tests=(tests.len()) failures=(failures) errors=(errors) skipped=(skipped) {
            "\n"
            @for (test, _) in &tests { "  " (test) "\n" }
        }
    })
}

/// Returns the tests of one arm.
fn tests(report: &Report<'_>, arm: &Arm) -> Vec<(Markup, TestOutcome)> {
    if let Some(why) = arm.absent("time.wall") {
        let outcome = if tells_skip(why) { TestOutcome::Skipped } else { TestOutcome::Unknown };
        return vec![test(&arm.name, None, outcome(why.to_owned()))];
    }
    let seconds = arm.sample("time.wall").map_or(0.0, |sample| sample.readings.iter().sum::<f64>() / 1e9);
    let mine: Vec<_> = report.checked.iter().filter(|checked| checked.arm == arm.name).collect();
    if mine.is_empty() {
        return vec![test(&arm.name, Some(seconds), TestOutcome::Passed)];
    }
    let named = |checked: &Checked| format!("{}: {}", arm.name, checked.limit);
    mine.into_iter().map(|checked| test(&named(checked), Some(seconds), ending(checked))).collect()
}

fn ending(checked: &Checked) -> TestOutcome {
    match checked.kept {
        Kept::Yes => TestOutcome::Passed,
        Kept::No => TestOutcome::Failed(format!("exceeded: {}", checked.found)),
        Kept::CantTell => TestOutcome::Unknown(format!("the readings cannot decide: {}", checked.found)),
    }
}

fn test(name: &str, seconds: Option<f64>, ending: TestOutcome) -> (Markup, TestOutcome) {
    let seconds = seconds.map(|seconds| format!("{seconds:.6}"));
    let markup = html! {
        testcase classname="scruple" name=(plain_lines(name)) time=[seconds] {
            (ending.element(None))
        }
    };
    (markup, ending)
}
