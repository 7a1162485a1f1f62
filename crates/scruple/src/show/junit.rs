//! JUnit XML: cases and limits as tests, for continuous integration.

use super::Report;
use scruple_core::budget::Kept;
use scruple_core::plain::steers;
use scruple_core::subject::Role;
use std::fmt::Write as _;

/// Writes one test for each limit of an arm, and one for each arm without limits; what was not weighed is an error.
pub fn text(report: &Report<'_>) -> String {
    let mut tests = String::new();
    let (mut failures, mut errors, mut count) = (0, 0, 0);
    for arm in report.run.arms_of(Role::Subject) {
        let name = escaped(&arm.name);
        if let Some(why) = arm.absent("time.wall") {
            (errors, count) = (errors + 1, count + 1);
            let _ = writeln!(
                tests,
                "  <testcase classname=\"scruple\" name=\"{name}\"><error message=\"{}\"/></testcase>",
                escaped(why)
            );
            continue;
        }
        let seconds = arm.sample("time.wall").map_or(0.0, |sample| sample.readings.iter().sum::<f64>() / 1e9);
        let mine: Vec<_> = report.checked.iter().filter(|checked| checked.arm == arm.name).collect();
        if mine.is_empty() {
            count += 1;
            let _ =
                writeln!(tests, "  <testcase classname=\"scruple\" name=\"{name}\" time=\"{seconds:.6}\"/>");
        }
        for checked in mine {
            count += 1;
            let head = format!(
                "  <testcase classname=\"scruple\" name=\"{name}: {}\" time=\"{seconds:.6}\"",
                escaped(&checked.budget)
            );
            let found = escaped(&checked.found);
            match checked.kept {
                Kept::Yes => {
                    let _ = writeln!(tests, "{head}/>");
                }
                Kept::No => {
                    failures += 1;
                    let _ = writeln!(tests, "{head}><failure message=\"exceeded: {found}\"/></testcase>");
                }
                Kept::CantTell => {
                    errors += 1;
                    let _ = writeln!(
                        tests,
                        "{head}><error message=\"the readings do not tell: {found}\"/></testcase>"
                    );
                }
            }
        }
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"scruple\" tests=\"{count}\" failures=\"{failures}\" errors=\"{errors}\">\n{tests}</testsuite>\n"
    )
}

/// Text as it may stand in an attribute; characters that XML 1.0 forbids become question marks.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if steers(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
