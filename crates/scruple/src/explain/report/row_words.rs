//! Writes the rows of an explanation: a function, its code, its difference, and the parts of that.

use super::short_names::short;
use crate::explain::closures::ClosureDifference;
use scruple_core::explain::{
    ComparedProgram, DifferencePart, FunctionDifference, PartKind, is_entry_of_allocator, nameless,
};
use scruple_core::unit::{Unit, exact, quantity};

/// The shares of the difference from which a function is called the cause, or a part of the cause.
pub(super) const CAUSE: f64 = 0.5;
pub(super) const PART: f64 = 0.2;

/// The ratio of a row to the whole, or of a part of a row to the row, from which others must make up for it.
pub(super) const FAR_MORE: f64 = 1.5;

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
