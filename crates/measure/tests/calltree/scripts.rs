//! Recursive programs in languages whose interpreters count: the difference of two is attributed to the function in
//! which it originates.

use crate::harness::skip;
use scruple_core::explain::{CodeComparison, Count, Explanation, Matched, explain};
use scruple_measure::calltree::{Binaries, Language, ScriptSession, Side};
use std::path::Path;
use std::process::Command;

/// What is replaced in the programs, by which numbers in the first and the second one, and the function that must be
/// named.
const PLANTED: [(&str, [u32; 2], &str); 5] = [
    ("AGAIN", [0, 1], "binary"),
    ("LEAF", [3, 9], "leaf"),
    ("DIRECT", [0, 1], "compare"),
    ("PIVOT", [2, 4], "sort"),
    ("DEPTH", [60, 90], "ask"),
];

/// Runs a program that counts itself.
fn counted(folder: &Path, language: Language, words: [&str; 2], planted: (&str, u32)) -> Option<Side> {
    let [interpreter, program] = words;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calltree/programs").join(program);
    let mut text = std::fs::read_to_string(source).unwrap();
    for (key, [old, _], _) in PLANTED {
        let number = if key == planted.0 { planted.1 } else { old };
        text = text.replace(&format!("@{key}@"), &number.to_string());
    }
    std::fs::write(folder.join(program), text).unwrap();
    let session = ScriptSession::start(language, folder).unwrap();
    let mut command = Command::new(interpreter);
    let done = command.arg(folder.join(program)).envs(session.env(|_| None)).output().ok()?;
    assert!(done.status.success(), "{command:?}: {done:?}");
    Some(session.read().unwrap_or_else(|why| panic!("{why}")).side)
}

fn explained(first: &Side, second: &Side) -> Explanation {
    let binaries = Binaries::default();
    let same = |a: &[usize], b: &[usize]| binaries.same((first, a), (second, b));
    let likeness = |a: usize, b: usize| binaries.likeness((first, a), (second, b));
    let code = CodeComparison { same: &same, likeness: &likeness };
    let matched = Matched::of(&first.tree, &second.tree, &code);
    explain(&first.tree, &second.tree, &matched, &code, Count::Instructions)
}

/// Checks which function the difference of each planted pair is attributed to, in both directions, and which part of
/// it.
fn check(language: Language, interpreter: &str, program: &str, part: std::ops::RangeInclusive<f64>) {
    let folder = tempfile::tempdir().unwrap();
    for (key, [old, new], function) in PLANTED {
        let side = |number| counted(folder.path(), language, [interpreter, program], (key, number));
        let (Some(old), Some(new)) = (side(old), side(new)) else {
            return skip(&format!("{interpreter} is not installed"));
        };
        for (first, second) in [(&old, &new), (&new, &old)] {
            let found = explained(first, second);
            let whole = found.totals.1 - found.totals.0;
            let parts: f64 = found.rows.iter().map(|row| row.delta).sum();
            assert!((parts - whole).abs() < 1.0, "{key}: the parts add up to {parts} of {whole}");
            let rows: Vec<(&str, f64)> =
                found.rows.iter().take(4).map(|row| (row.name.as_str(), row.delta / whole)).collect();
            let is_right = rows.first().is_some_and(|(name, share)| {
                name.rsplit(['#', '.']).next() == Some(function) && part.contains(share)
            });
            assert!(is_right, "{program}, {key}: {rows:?} of {whole}");
        }
    }
}

#[test]
fn recursive_functions_of_python_are_explained() {
    check(Language::Python, "python3", "recursion.py", 0.98..=1.02);
}

#[test]
fn recursive_methods_of_ruby_are_explained() {
    check(Language::Ruby, "ruby", "recursion.rb", 0.98..=1.02);
}

#[test]
fn recursive_procedures_of_guile_are_explained() {
    check(Language::Guile, "guile", "recursion.scm", 0.98..=1.02);
}

#[test]
fn recursive_functions_of_javascript_are_explained() {
    // Each call of a function counts with the mean cost, whichever function makes it, so that parts are too large.
    check(Language::JavaScript, "node", "recursion.js", 0.5..=f64::INFINITY);
}
