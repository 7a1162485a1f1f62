//! Writes the sentences: what differs, where the difference originates, and how certain that is.

use super::clauses::{
    about_code, collected, frees_less, other_possible_causes, shows_elsewhere, spread_over,
};
use super::row_words::{CAUSE, FAR_MORE, PART, count, first, function, signed};
use crate::explain::findings::Findings;
use scruple_core::explain::{Count, Explanation};
use scruple_core::unit::{change, share, times};

/// The ratio of the sum of all absolute differences to the difference from which they are said to cancel out.
const CANCELS: f64 = 2.0;

/// Introduces the table of an interpreter's functions if the script's functions come first.
pub const OF_THE_INTERPRETER: &str = "Functions of the interpreter that executed these instructions:";

/// Writes the first sentences: whether anything differs, by how much, and where the difference originates.
pub fn answer(found: &Findings) -> Vec<String> {
    let origin = found.origin();
    let mut lines = vec![total_difference(found, found.main())];
    lines.extend(found.originates_in_script().then(|| total_difference(origin, origin.main())));
    lines.extend(cause(origin, origin.main()));
    lines
}

/// Writes how much the two sides differ in a count.
pub fn total_difference(found: &Findings, explanation: &Explanation) -> String {
    let (first, second) = explanation.totals;
    let what = found.word(explanation.count);
    let total = match explanation.count {
        Count::Instructions => "the total",
        _ => "the total of instructions",
    };
    let repeats = match () {
        () if found.kind.sampled.is_some() => "sampled, not counted".to_owned(),
        () if found.runs < 2 => match found.variation_of_totals.filter(|most| *most > 0) {
            Some(most) => {
                format!("one launch of each; {total} of another one differs by {}", count(most as f64))
            }
            None => "one launch of each".to_owned(),
        },
        () if found.variation_of_totals == Some(0) && explanation.count == Count::Instructions => {
            "the total is the same in 2 launches of each".to_owned()
        }
        () if found.variation_of_totals == Some(0) => {
            "counted in one launch of each, whose instructions repeated in another".to_owned()
        }
        () if found.repeats => format!("every count repeated in {} launches of each", found.runs),
        () => match found.variation_of_totals.filter(|most| *most > 0) {
            Some(most) => {
                format!(
                    "means of {} launches of each; {total} of one more differs by {}",
                    found.runs,
                    count(most as f64)
                )
            }
            None => format!("means of {} launches of each, which vary", found.runs),
        },
    };
    if first.round() == second.round() {
        let verb = if executes(found, explanation) { "execute" } else { "have" };
        return format!("A and B {verb} the same {} {what} ({repeats}).", count(first));
    }
    if explanation.is_within_spread() {
        let verb = if executes(found, explanation) { "executes" } else { "has" };
        return format!(
            "Can’t tell whether B {verb} more or fewer {what} than A: {} → {} ({}, which varies by up to {}; {repeats}).",
            count(first),
            count(second),
            signed(second - first),
            count(explanation.spread)
        );
    }
    let more = if second > first { "more" } else { "fewer" };
    let many =
        |ratio: f64| format!("{} times as many {what} as A", times(ratio).trim_end_matches([' ', '×']));
    let by = match second / first {
        ratio if first > 0.0 && !(0.5..2.0).contains(&ratio) => many(ratio),
        ratio if first > 0.0 && (ratio - 1.0).abs() >= 1e-4 => {
            format!("{} {more} {what} than A", change(ratio).trim_start_matches(['+', '-', '−']))
        }
        _ => format!("{more} {what} than A"),
    };
    let verb = if executes(found, explanation) { "executes" } else { "has" };
    format!("B {verb} {by}: {} → {} ({}; {repeats}).", count(first), count(second), signed(second - first))
}

fn executes(found: &Findings, explanation: &Explanation) -> bool {
    explanation.count == Count::Instructions && found.word(Count::Instructions) == Count::Instructions.word()
}

/// Writes the origin of a difference in one sentence. Returns `None` if there is nothing to explain.
pub fn cause(found: &Findings, explanation: &Explanation) -> Option<String> {
    let Some(row) = found.shown_rows(explanation).next() else {
        let differs = explanation.rows.iter().any(|row| row.delta.abs() >= 0.5);
        return differs.then(|| nothing(found, explanation));
    };
    if explanation.is_within_spread() && row.same_code != Some(false) {
        return None;
    }
    let collected = collected(found, explanation, row);
    let rest = match collected {
        Some(_) => &explanation.without_consequences(),
        None => explanation,
    };
    let delta = rest.delta();
    let part = row.delta / delta;
    let is_part = delta.round() != 0.0 && (0.0..=FAR_MORE).contains(&part);
    let cancels = !is_part && rest.gross() > CANCELS * delta.abs();
    let without = if collected.is_some() { " without garbage collection" } else { "" };
    let how_much = match is_part && !explanation.is_within_spread() {
        true => format!("{} of the difference{without}", share(part)),
        false => signed(row.delta),
    };
    let elsewhere = shows_elsewhere(found, rest, row);
    let surely = match elsewhere.as_deref() {
        None if row.same_code == Some(true)
            && found.other_causes.none()
            && found.may_originate_in_script() =>
        {
            "The interpreter’s code is the same, so the script or its input must differ; it shows first in"
        }
        None if row.same_code == Some(true) && found.other_causes.none() => {
            "No function’s code explains it, so the input or the state must differ; it shows first in"
        }
        None if row.same_code == Some(true) || (row.name.is_empty() && row.same_code.is_none()) => {
            "Can’t tell where it comes from; it shows first in"
        }
        Some(elsewhere) => elsewhere,
        None if row.same_code.is_none() => "It shows first in",
        None if explanation.is_within_spread() => {
            "One function differs by more than it varies from launch to launch:"
        }
        None if delta.round() == 0.0 => "Increases and decreases of functions cancel out; first is",
        None if cancels => "Increases and decreases of functions cancel out for the most part; first is",
        None if part >= CAUSE => "It comes from",
        None if part >= PART => "A part of it comes from",
        None if part < 0.0 => "No single function explains it; first is",
        None => &spread_over(found, rest),
    };
    let clause = first(row).map_or(String::new(), |clause| format!(": {clause}"));
    let code = match found.same_source(explanation) {
        Some(files) => &format!("its code changed, but not {files}"),
        None => about_code(row),
    };
    let hunk = match (found.hunk_of(explanation, row), found.first_touched(explanation)) {
        (Some(hunk), _) => format!("; the change at {} touches it", hunk.places()),
        (None, Some((other, hunk))) if row.same_code == Some(false) => format!(
            "; the diff does not change its lines, but those of {} at {}",
            function(other),
            hunk.places()
        ),
        _ => String::new(),
    };
    let besides = match row.same_code == Some(true) {
        true => other_possible_causes(found, explanation),
        false => String::new(),
    };
    if let Some(less) = frees_less(found, explanation) {
        return Some(format!(
            "{less}; what is not freed shows first in {}{clause} ({how_much}); {code}{hunk}.",
            function(row)
        ));
    }
    let collected = collected.unwrap_or_default();
    Some(format!("{surely} {}{clause} ({how_much}); {code}{besides}{hunk}.{collected}", function(row)))
}

/// Says that no function differs certainly.
const NOTHING_BUT_VARIATION: &str = "No function differs by more than it varies from launch to launch.";

/// Writes why a difference is not attributed to any function.
fn nothing(found: &Findings, explanation: &Explanation) -> String {
    let nameless = found.nameless.iter().copied().fold(0.0, f64::max);
    let varies = !found.repeats && (explanation.is_within_spread() || explanation.delta().round() == 0.0);
    match () {
        () if varies => NOTHING_BUT_VARIATION.to_owned(),
        () if found.is_nameless() && found.is_generated => format!(
            "Can’t tell where it comes from: {} of the instructions are of code without a name, most of it generated while \
             the program ran.",
            share(nameless)
        ),
        () if found.is_nameless() => format!(
            "Can’t tell where it comes from: {} of the instructions are of code without a name. Programs that are not \
             stripped have names.",
            share(nameless)
        ),
        () if !found.repeats => NOTHING_BUT_VARIATION.to_owned(),
        () if found.kind.sampled.is_some() => {
            "No function differs by more than samples do by chance.".to_owned()
        }
        () if found.other_causes.none() => {
            "All of its code is the same: paths or environments of different lengths cause so small a difference."
                .to_owned()
        }
        () => format!(
            "Can’t tell where it comes from: no function differs by more than paths or environments of different lengths \
             cause{}.",
            other_possible_causes(found, explanation)
        ),
    }
}
