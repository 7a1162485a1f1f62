//! The matrix of cases by programs. Each cell is a multiple of the reference program's cost.

use crate::render::align::{fit, right};
use crate::render::colours::{DIM, OPEN};
use crate::run_report::Report;
use scruple_core::judge::{Judged, headline};
use scruple_core::subject::{Arm, Role, tells_skip};
use scruple_core::unit::times;
use scruple_core::verdict::Verdict;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Writes the matrix for three or more programs. The table of cases compares two programs.
pub(crate) fn text(report: &Report<'_>, width: usize) -> String {
    let subjects: Vec<&Arm> = report.run.arms_of(Role::Subject).collect();
    let mut programs: Vec<&str> = Vec::new();
    let mut cases: Vec<String> = Vec::new();
    for arm in &subjects {
        let Some(version) = arm.version.as_deref() else { return String::new() };
        if !programs.contains(&version) {
            programs.push(version);
        }
        let case = plain(arm);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    if programs.len() < 3 {
        return String::new();
    }
    let cells: Vec<Vec<(String, bool)>> = cases
        .iter()
        .map(|case| programs.iter().map(|program| cell(report, &subjects, case, program)).collect())
        .collect();
    let column = |index: usize| {
        let widest = cells.iter().map(|row| row[index].0.width()).max().unwrap_or(0);
        widest.max(programs[index].width())
    };
    let columns: Vec<usize> = (0..programs.len()).map(column).collect();
    let used: usize = columns.iter().map(|column| column + 2).sum();
    let name =
        cases.iter().map(|case| case.width()).max().unwrap_or(0).min(width.saturating_sub(used + 2).max(12));
    let mut out = format!(
        "Time relative to ‘{}’; values that cannot be distinguished from 1 are marked ?\n",
        programs[0]
    );
    let _ = write!(out, "{DIM}  {}", " ".repeat(name));
    for (program, width) in programs.iter().zip(&columns) {
        let _ = write!(out, "  {}", right(program, *width));
    }
    let _ = writeln!(out, "{DIM:#}");
    for (case, row) in cases.iter().zip(&cells) {
        let _ = write!(out, "  {}", fit(case, name));
        for ((text, open), width) in row.iter().zip(&columns) {
            let style = if *open { OPEN } else { anstyle::Style::new() };
            let _ = write!(out, "  {style}{}{style:#}", right(text, *width));
        }
        out.push('\n');
    }
    out
}

/// Writes the ratio of a comparison, or a dash if there is none.
fn ratio(judged: &Judged) -> String {
    judged.comparison.evidence.effect().map_or_else(|| "–".to_owned(), times)
}

/// Returns the name of a case without its program.
fn plain(arm: &Arm) -> String {
    arm.name.rsplit_once(" @").map_or(arm.name.clone(), |(name, _)| name.to_owned())
}

/// Returns the multiple for one case in one program, and whether it cannot be distinguished from 1.
fn cell(report: &Report<'_>, subjects: &[&Arm], case: &str, program: &str) -> (String, bool) {
    let is_it = |arm: &&&Arm| arm.version.as_deref() == Some(program) && plain(arm) == case;
    let Some(arm) = subjects.iter().find(is_it) else { return ("–".to_owned(), false) };
    if let Some(why) = arm.absent("time.wall") {
        return (if tells_skip(why) { "skipped" } else { "failed" }.to_owned(), false);
    }
    match headline(&report.judged, &report.shown, &arm.name) {
        Some(judged) if judged.comparison.verdict == Verdict::CantTell => {
            (format!("{} ?", ratio(judged)), true)
        }
        Some(judged) => (ratio(judged), false),
        None => ("1 ×".to_owned(), false),
    }
}
