//! JUnit XML: cases and limits as tests for continuous integration.

use super::Report;
use maud::{Markup, html};
use scruple_core::budget::{Checked, Kept};
use scruple_core::harmless_text::plain_lines;
use scruple_core::subject::{Arm, Role};

/// The outcome of a test.
enum Ending {
    Passed,
    Failed(String),
    Unknown(String),
}

/// Writes one test for each limit of an arm, and one for each arm without limits. An undecided limit is an error.
pub fn text(report: &Report<'_>) -> String {
    let tests: Vec<(Markup, Ending)> =
        report.run.arms_of(Role::Subject).flat_map(|arm| tests(report, arm)).collect();
    let failures = tests.iter().filter(|(_, ending)| matches!(ending, Ending::Failed(_))).count();
    let errors = tests.iter().filter(|(_, ending)| matches!(ending, Ending::Unknown(_))).count();
    let suite = html! {
        testsuite name="scruple" tests=(tests.len()) failures=(failures) errors=(errors) {
            "\n"
            @for (test, _) in &tests { "  " (test) "\n" }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", suite.into_string())
}

/// Returns the tests of one arm.
fn tests(report: &Report<'_>, arm: &Arm) -> Vec<(Markup, Ending)> {
    if let Some(why) = arm.absent("time.wall") {
        return vec![test(&arm.name, None, Ending::Unknown(why.to_owned()))];
    }
    let seconds = arm.sample("time.wall").map_or(0.0, |sample| sample.readings.iter().sum::<f64>() / 1e9);
    let mine: Vec<_> = report.checked.iter().filter(|checked| checked.arm == arm.name).collect();
    if mine.is_empty() {
        return vec![test(&arm.name, Some(seconds), Ending::Passed)];
    }
    let named = |checked: &Checked| format!("{}: {}", arm.name, checked.budget);
    mine.into_iter().map(|checked| test(&named(checked), Some(seconds), ending(checked))).collect()
}

fn ending(checked: &Checked) -> Ending {
    match checked.kept {
        Kept::Yes => Ending::Passed,
        Kept::No => Ending::Failed(format!("exceeded: {}", checked.found)),
        Kept::CantTell => Ending::Unknown(format!("the readings do not tell: {}", checked.found)),
    }
}

fn test(name: &str, seconds: Option<f64>, ending: Ending) -> (Markup, Ending) {
    let seconds = seconds.map(|seconds| format!("{seconds:.6}"));
    let markup = html! {
        testcase classname="scruple" name=(plain_lines(name)) time=[seconds] {
            @match &ending {
                Ending::Passed => {},
                Ending::Failed(why) => { failure message=(plain_lines(why)) {} },
                Ending::Unknown(why) => { error message=(plain_lines(why)) {} },
            }
        }
    };
    (markup, ending)
}
