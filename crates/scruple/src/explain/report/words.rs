//! Writes the sentences: what differs, where the difference originates, and how certain that is.

use super::clauses::{
    about_code, collected, frees_less, other_possible_causes, shows_elsewhere, spread_over,
};
use super::short_names::short;
use crate::explain::closures::ClosureDifference;
use crate::explain::findings::Findings;
use scruple_core::explain::{
    ComparedProgram, Count, DifferencePart, Explanation, FunctionDifference, PartKind, is_entry_of_allocator,
    nameless,
};
use scruple_core::unit::{Unit, change, exact, quantity, share, times};

/// The shares of the difference from which a function is called the cause, or a part of the cause.
pub(super) const CAUSE: f64 = 0.5;
pub(super) const PART: f64 = 0.2;

/// The ratio of a row to the whole, or of a part of a row to the row, from which others must make up for it.
const FAR_MORE: f64 = 1.5;

/// The ratio of the sum of all absolute differences to the difference from which they are said to cancel out.
const CANCELS: f64 = 2.0;

/// Writes a count with all its digits.
pub fn count(value: f64) -> String {
    exact(value.round(), &Unit::Count)
}

/// Writes a difference with all its digits and its sign.
pub fn signed(value: f64) -> String {
    let value = value.round();
    if value > 0.0 { format!("+{}", count(value)) } else { count(value) }
}

/// Writes the differences of a type of closures, in bytes and in number.
pub fn closures(one: &ClosureDifference) -> [String; 2] {
    [one.bytes, one.closures].map(|(first, second)| signed(second - first))
}

/// What contains all contexts.
pub const ALL_PROCESSES: &str = "the processes";

/// Writes the name of a function, with its file if that is not the program itself.
pub fn function(row: &FunctionDifference) -> String {
    let name = match (row.name.as_str(), row.module.as_str()) {
        ("", "") => ALL_PROCESSES.to_owned(),
        ("", module) => return nameless(module),
        (name, _) => short(name),
    };
    let renamed = row.renamed.as_ref().map_or(String::new(), |new| format!(" (now {})", short(new)));
    match row.module.as_str() {
        "" | "program" => name + &renamed,
        module => format!("{name}{renamed} [{module}]"),
    }
}

/// Writes the state of a function's code, as one word.
pub fn code(row: &FunctionDifference) -> &'static str {
    match (row.only_in, row.same_code) {
        (Some(ComparedProgram::First), _) => "gone",
        (Some(ComparedProgram::Second), _) => "new",
        (None, Some(true)) => "same",
        (None, Some(false)) => "changed",
        (None, None) => "?",
    }
}

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

/// The loader's function that the first call of each library function reaches, unless all are bound at the start.
const BINDS: &str = "_dl_runtime_resolve";

/// Whether a part is what the loader does to bind library functions at their first call.
fn is_of_binding(part: &DifferencePart) -> bool {
    part.callee.as_ref().is_some_and(|callee| callee.starts_with(BINDS)) && part.kind != PartKind::Replaced
}

/// Writes the largest part of a row as a clause. If that is far more than the row, the largest part that makes up for
/// it follows. The work of the loader comes after the code that causes it.
pub fn first(row: &FunctionDifference) -> Option<String> {
    let parts = row.reported();
    let most = parts.first()?;
    let is_reason = |part: &&DifferencePart| !is_of_binding(part) && part.delta * most.delta > 0.0;
    if let Some(reason) = parts.iter().find(is_reason).filter(|_| is_of_binding(most)) {
        return Some(format!("{}, and {}", clause(row, reason), clause(row, most)));
    }
    let is_opposite = |other: &&DifferencePart| other.delta * most.delta < 0.0;
    let opposite = parts.iter().find(is_opposite).filter(|_| most.delta.abs() > FAR_MORE * row.delta.abs());
    Some(match opposite {
        None => clause(row, most),
        Some(other) => {
            let [most, other] =
                [most, other].map(|part| format!("{} ({})", clause(row, part), signed(part.delta)));
            format!("{most}, but {other}")
        }
    })
}

/// How often each call of a function calls another, in A and in B. It is shown if the numbers of all calls do not
/// differ in the direction of the part, because the function itself is not called as often in both. Less than a
/// hundredth explains nothing.
fn for_each_call(part: &DifferencePart) -> Option<(String, String)> {
    let [all, of_site] = [part.calls, part.calls_of_site].map(|(a, b)| [a as f64, b as f64]);
    let each = [all[0] / of_site[0], all[1] / of_site[1]];
    let is_towards = |[a, b]: [f64; 2]| (b - a) * part.delta > 0.0;
    let [before, after] = each.map(|each| quantity(each, &Unit::Count));
    let is_clear = (each[1] - each[0]).abs() >= 0.01 * each[0] && each.iter().all(|each| each.is_finite());
    (!is_towards(all) && is_towards(each) && is_clear).then_some((before, after))
}

/// Writes a part of a row as a clause.
pub fn clause(row: &FunctionDifference, part: &DifferencePart) -> String {
    let is_itself = part.callee.as_deref() == Some(row.name.as_str());
    let callee = part.callee.as_deref().map(short).unwrap_or_default();
    let site = part.site.as_ref().map_or(String::new(), |site| format!("in {}, ", short(site)));
    let calls = |(a, b): (u64, u64)| match a == b {
        true if a == 1 => "1 call in both".to_owned(),
        true => format!("{} calls in both", count(a as f64)),
        false => format!("{} → {} calls", count(a as f64), count(b as f64)),
    };
    if is_of_binding(part) && !is_itself {
        let [before, after] = [part.calls.0, part.calls.1].map(|calls| count(calls as f64));
        return format!(
            "{site}the loader binds library functions at their first call, {before} → {after} times"
        );
    }
    match part.kind {
        // Its code is the same: other sizes are requested, or in another order.
        PartKind::Own if part.site.as_deref().is_some_and(is_entry_of_allocator) => {
            let takes = if part.delta > 0.0 { "more" } else { "less" };
            format!("each call of {} takes {takes}", part.site.as_deref().unwrap_or_default())
        }
        PartKind::Own if part.site.is_some() => format!("{site}own code"),
        PartKind::Own => {
            let each = |own: u64, calls: u64| quantity(own as f64 / calls.max(1) as f64, &Unit::Count);
            let (a, b) = (each(row.own.0, row.calls.0), each(row.own.1, row.calls.1));
            match row.calls {
                // The profile contains no numbers of calls.
                (0, 0) => format!("own code, {} → {}", count(row.own.0 as f64), count(row.own.1 as f64)),
                both => format!("own code, {a} → {b} for each call, {}", calls(both)),
            }
        }
        PartKind::New if is_itself && part.calls.0 == 0 => "only B calls it".to_owned(),
        PartKind::Gone if is_itself && part.calls.1 == 0 => "only A calls it".to_owned(),
        PartKind::New if !is_itself => format!("{site}calls {callee}, which it did not before"),
        PartKind::Gone if !is_itself => format!("{site}no longer calls {callee}"),
        PartKind::Calls | PartKind::New | PartKind::Gone => {
            let times = part.calls.1 as f64 / part.calls.0.max(1) as f64;
            let [before, after] = [part.calls.0, part.calls.1].map(|calls| count(calls as f64));
            let numbers = if part.calls == (0, 0) {
                "an unknown number of times".to_owned()
            } else if let Some((a, b)) = for_each_call(part).filter(|_| !is_itself) {
                format!("{a} → {b} times for each call, {}", calls(part.calls_of_site))
            } else if part.calls == (1, 1) {
                "once in both, at another place of the call tree".to_owned()
            } else if before == after {
                // Each place of the call tree has its own cost of a call.
                format!("{before} times in both, at other places of the call tree")
            } else if part.calls.0 <= 1 || times < 0.01 || (times - 1.0).abs() < 0.005 {
                format!("{before} → {after} times")
            } else {
                let digits = if times < 100.0 { 2 } else { 0 };
                format!("{before} → {after} times, × {times:.digits$}")
            };
            // No caller of the function is known, in one program or in both.
            if is_itself { format!("is called {numbers}") } else { format!("{site}calls {callee} {numbers}") }
        }
        PartKind::Replaced => match (&part.callee, part.instead_of.as_deref().map(short)) {
            (Some(_), Some(old)) => format!("{site}calls {callee} instead of {old}"),
            (None, Some(old)) => format!("{site}own code instead of calls of {old}"),
            (Some(_), None) => format!("{site}calls {callee} instead of own code"),
            (None, None) => format!("{site}own code"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_far_more_than_its_row_is_named_with_one_that_makes_up_for_it() {
        let part = |kind, callee: &str, calls, delta| DifferencePart {
            kind,
            site: None,
            callee: Some(callee.to_owned()),
            instead_of: None,
            calls,
            calls_of_site: (1, 1),
            delta,
        };
        let more = part(PartKind::Calls, "calloc", (50, 100), 211_150.0);
        let gone = part(PartKind::Gone, "memset", (50, 0), -150_750.0);
        let row = FunctionDifference {
            module: "program".to_owned(),
            name: "main".to_owned(),
            renamed: None,
            delta: 60_400.0,
            same_code: Some(false),
            only_in: None,
            is_collector: false,
            calls: (1, 1),
            own: (10, 10),
            parts: vec![more.clone(), gone],
            spread: 0.0,
            functions: (Vec::new(), Vec::new()),
        };
        assert_eq!(
            first(&row).as_deref(),
            Some("calls calloc 50 → 100 times, × 2.00 (+211,150), but no longer calls memset (-150,750)")
        );
        let alone = FunctionDifference { delta: 211_150.0, parts: vec![more], ..row };
        assert_eq!(first(&alone).as_deref(), Some("calls calloc 50 → 100 times, × 2.00"));
        let binds = part(PartKind::New, "_dl_runtime_resolve_xsave", (0, 3), 1_885.0);
        let forks = part(PartKind::New, "fork", (0, 1), 204.0);
        let bound = FunctionDifference { delta: 2_089.0, parts: vec![binds.clone(), forks], ..alone.clone() };
        let loader = "the loader binds library functions at their first call, 0 → 3 times";
        let both = format!("calls fork, which it did not before, and {loader}");
        assert_eq!(first(&bound), Some(both));
        let bound = FunctionDifference { parts: vec![binds], ..bound };
        assert_eq!(first(&bound).as_deref(), Some(loader));
        let in_malloc = |delta| DifferencePart {
            site: Some("malloc".to_owned()),
            callee: None,
            ..part(PartKind::Own, "", (9, 9), delta)
        };
        for (delta, said) in
            [(8.0, "each call of malloc takes more"), (-8.0, "each call of malloc takes less")]
        {
            let bound = FunctionDifference { delta, parts: vec![in_malloc(delta)], ..bound.clone() };
            assert_eq!(first(&bound).as_deref(), Some(said));
        }
        let moved = "is called 50 times in both, at other places of the call tree";
        for (kind, calls, said) in [
            (PartKind::Calls, (50, 50), moved),
            (PartKind::Calls, (1, 1), "is called once in both, at another place of the call tree"),
            (PartKind::Calls, (0, 0), "is called an unknown number of times"),
            (PartKind::Gone, (50, 0), "only A calls it"),
            (PartKind::Gone, (50, 25), "is called 50 → 25 times, × 0.50"),
            (PartKind::New, (0, 50), "only B calls it"),
        ] {
            let parts = vec![part(kind, "main", calls, 211_150.0)];
            assert_eq!(first(&FunctionDifference { parts, ..alone.clone() }).as_deref(), Some(said));
        }
        for (calls, of_site, delta, said) in [
            ((30, 40), (10, 20), -500.0, "calls hash 3 → 2 times for each call, 10 → 20 calls"),
            ((30, 30), (10, 20), -500.0, "calls hash 3 → 1.50 times for each call, 10 → 20 calls"),
            ((30, 80), (10, 20), 500.0, "calls hash 30 → 80 times, × 2.67"),
            ((2, 2), (2044, 2043), 500.0, "calls hash 2 times in both, at other places of the call tree"),
        ] {
            let parts = vec![DifferencePart {
                calls_of_site: of_site,
                ..part(PartKind::Calls, "hash", calls, delta)
            }];
            assert_eq!(first(&FunctionDifference { parts, ..alone.clone() }).as_deref(), Some(said));
        }
    }
}
