//! JUnit XML: the outcomes of tests for continuous integration.

use maud::{Markup, html};
use scruple_core::harmless_text::plain_lines;

/// The outcome of a test. Those that are not passed have a message.
pub enum TestOutcome {
    /// The test passed.
    Passed,
    /// The test failed.
    Failed(String),
    /// Nothing is decided, which is an error because the test did not pass.
    Unknown(String),
    /// The test did not run.
    Skipped(String),
}

impl TestOutcome {
    /// Returns the element in the test case. `types` are the types of a failure and of an error.
    pub fn element(&self, types: Option<[&str; 2]>) -> Markup {
        let [of_failure, of_error] = types.map_or([None, None], |types| types.map(Some));
        html! {
            @match self {
                TestOutcome::Passed => {},
                TestOutcome::Failed(why) => { failure message=(plain_lines(why)) type=[of_failure] {} },
                TestOutcome::Unknown(why) => { error message=(plain_lines(why)) type=[of_error] {} },
                TestOutcome::Skipped(why) => { skipped message=(plain_lines(why)) {} },
            }
        }
    }
}

/// Returns the numbers of failed tests and of tests without a decision.
pub fn failures_and_errors<'a>(outcomes: impl Iterator<Item = &'a TestOutcome>) -> (usize, usize) {
    outcomes.fold((0, 0), |(failures, errors), outcome| match outcome {
        TestOutcome::Passed | TestOutcome::Skipped(_) => (failures, errors),
        TestOutcome::Failed(_) => (failures + 1, errors),
        TestOutcome::Unknown(_) => (failures, errors + 1),
    })
}

/// Returns the file with this suite of tests.
pub fn document(suite: Markup) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", suite.into_string())
}
