//! Writes the clauses of the sentence about the origin of a difference.

use super::row_words::{CAUSE, PART, count, first, function, signed};
use crate::explain::causes::with_file;
use crate::explain::findings::Findings;
use scruple_core::explain::{ComparedProgram, Count, Explanation, FunctionDifference};
use scruple_core::unit::share;
use scruple_stats::sorting;

/// The largest number of functions or variables that are named as possible causes.
const NAMED: usize = 3;

/// Writes whether the code of a row changed.
pub(super) fn about_code(row: &FunctionDifference) -> &'static str {
    match (row.only_in, row.same_code) {
        (Some(ComparedProgram::First), _) => "B no longer calls it",
        (Some(ComparedProgram::Second), _) => "A does not call it",
        (None, Some(false)) => "its code changed",
        (None, Some(true)) => "its code is the same",
        (None, None) => "can’t tell whether its code changed",
    }
}

/// Writes which code frees fewer blocks, if the difference of a live amount is not explained by what was requested:
/// then the code that allocates need not be the cause.
pub(super) fn frees_less(found: &Findings, explanation: &Explanation) -> Option<String> {
    let delta = explanation.delta();
    let of = |count: Count| found.explanations.iter().find(|one| one.count == count);
    if !explanation.count.is_live() || delta <= 0.0 {
        return None;
    }
    let requested = of(Count::Bytes).map_or(0.0, Explanation::delta);
    let frees = of(Count::Frees).filter(|frees| frees.delta() < 0.0 && requested < CAUSE * delta)?;
    let place = found.shown_rows(frees).find(|row| row.delta < 0.0);
    let place = place.map_or(String::new(), |row| {
        let (less, name) = (signed(row.delta), function(row));
        format!(" ({less} in {name}; {})", about_code(row))
    });
    Some(format!("B requests about as much, and frees {} fewer blocks{place}", count(-frees.delta())))
}

/// Writes the sentence about the work of a collector, if it is a considerable part of the difference and `row`, which
/// stands first, is not of a collector: what it follows from, and which function allocates.
pub(super) fn collected(
    found: &Findings,
    explanation: &Explanation,
    row: &FunctionDifference,
) -> Option<String> {
    let (delta, gross) = (explanation.delta(), explanation.gross());
    let most = found.shown_rows(explanation).find(|row| row.is_consequence())?;
    let sum = explanation.consequences();
    if row.is_consequence() || sum.abs() < PART * gross {
        return None;
    }
    let part = sum / delta;
    let how_much = match (0.0..=1.0).contains(&part) {
        true => format!("{} of the difference", share(part)),
        false => signed(sum),
    };
    let runs = first(most).map_or(String::new(), |clause| format!(": {clause}"));
    // Only of Haskell's heap are the bytes counted that make it collect.
    let bytes = found.explanations.iter().find(|one| one.count == Count::Bytes && !found.closures.is_empty());
    let allocates = bytes.and_then(|bytes| {
        let row = found.shown_rows(bytes).next()?;
        let part =
            bytes.share_of(row).filter(|part| (CAUSE..=1.0).contains(part) && row.delta * sum > 0.0)?;
        Some(format!("; {} of the difference in bytes allocated is of {}", share(part), function(row)))
    });
    Some(format!(
        " Garbage collection ({how_much}; {}{runs}) follows from what the program allocates and keeps in use, and from \
         the collector’s settings{}.",
        function(most),
        allocates.unwrap_or_default()
    ))
}

/// Begins the sentence about a difference that no single function explains: over how many functions it is spread.
pub(super) fn spread_over(found: &Findings, explanation: &Explanation) -> String {
    let delta = explanation.delta();
    let mut parts: Vec<f64> = found.shown_rows(explanation).map(|row| row.delta / delta).collect();
    parts.retain(|part| *part > 0.0);
    sorting::by(&mut parts, |a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let half = parts.iter().position(|part| {
        sum += part;
        sum >= CAUSE
    });
    let together = match half {
        None => String::new(),
        Some(0) => " and the largest accounts for half of it".to_owned(),
        Some(half) => format!(" and the largest {} account for half of it", half + 1),
    };
    match parts.len() {
        // Functions with the same code may each differ by little, and by more together.
        0 | 1 => "No single function explains it; first is".to_owned(),
        many => format!("It is spread over {many} functions{together}; first among them is"),
    }
}

/// Writes which causes other than the input are possible if the code is the same. Functions that have a row come first.
pub(super) fn other_possible_causes(found: &Findings, explanation: &Explanation) -> String {
    let causes = &found.other_causes;
    let some = |names: &[String]| {
        let first = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        match names.len() {
            0..=NAMED => first,
            many => format!("{first} and {} more", many - NAMED),
        }
    };
    let data = match causes.same_data {
        Some(true) => None,
        Some(false) if causes.variables.is_empty() => {
            Some("the data that the program starts with differ".to_owned())
        }
        Some(false) => {
            Some(format!("data that the program starts with differ ({})", some(&causes.variables)))
        }
        None => Some("the data that the program starts with are not known".to_owned()),
    };
    let mut functions = causes.functions.clone();
    let place = |name: &String| {
        found.shown_rows(explanation).position(|row| with_file(&row.module, &row.name) == *name)
    };
    sorting::by(&mut functions, |a, b| place(a).unwrap_or(usize::MAX).cmp(&place(b).unwrap_or(usize::MAX)));
    let changed =
        (!functions.is_empty()).then(|| format!("the code of others is not the same ({})", some(&functions)));
    let files = &causes.incomparable;
    let unknown = (!files.is_empty()).then(|| format!("other code cannot be compared (of {})", some(files)));
    let callers = causes.unknown_callers.then(|| "not all callers are known".to_owned());
    let all: Vec<String> = [data, changed, unknown, callers].into_iter().flatten().collect();
    if all.is_empty() { String::new() } else { format!(", but {}", all.join("; ")) }
}

/// Begins the sentence about a first row whose code changed, if most of the difference shows in a function with the
/// same code: that function does other work, because its input differs.
pub(super) fn shows_elsewhere(
    found: &Findings,
    explanation: &Explanation,
    row: &FunctionDifference,
) -> Option<String> {
    let part = |row: &FunctionDifference| explanation.share_of(row).unwrap_or_default();
    let is_nameless = row.name.is_empty() && row.same_code.is_none();
    if row.same_code == Some(true) || is_nameless || part(row) >= CAUSE {
        return None;
    }
    let most = found
        .shown_rows(explanation)
        .find(|other| other.same_code == Some(true) && (CAUSE..=1.0).contains(&part(other)))?;
    let may = if row.same_code.is_none() { "may have changed" } else { "changed" };
    let why = match most.only_in {
        None => "whose code is the same, so its input or the state must differ",
        Some(ComparedProgram::First) => "which only A calls",
        Some(ComparedProgram::Second) => "which only B calls",
    };
    Some(format!(
        "Most of it shows in {} ({} of the difference), {why}; the first function whose code {may} is",
        function(most),
        share(part(most))
    ))
}
