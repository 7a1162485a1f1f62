//! Reads files of callgrind. They contain functions and the calls between them, but no calling contexts. Therefore each
//! function is directly below the program.

use super::{ImportedProfile, Kind, KnownCallers, TreeBuilder};
use scruple_core::explain::OwnCost;
use scruple_measure::callgrind;

pub(super) fn parse(text: &str) -> Result<ImportedProfile, String> {
    let profile = callgrind::parse(text)?;
    if profile.functions.is_empty() {
        return Err("it has no functions".to_owned());
    }
    let stated = stated_totals(text);
    if let Some(stated) = stated.first().filter(|_| !stated.contains(&profile.total)) {
        return Err(format!(
            "its functions have {} instructions and its line ‘summary:’ or ‘totals:’ says {stated}: it is cut off or damaged",
            profile.total
        ));
    }
    let title = text.lines().find_map(|line| line.strip_prefix("cmd:")).map(|line| line.trim().to_owned());
    let word = title.as_deref().and_then(|title| title.split_whitespace().next()).unwrap_or_default();
    let program = word.rsplit('/').next().unwrap_or_default();
    let mut builder = TreeBuilder::new();
    for (function, costs) in &profile.functions {
        let place = builder.function(&function.name, &function.object, function.object == program);
        let context = builder.below(0, place)?;
        // One call counts as coming from the program; edges give the callers. Cachegrind counts no calls.
        let first = u64::from(!profile.edges.is_empty());
        builder.calls(context, first, costs.calls.saturating_sub(first));
        let (allocations, bytes) = (costs.allocations, costs.bytes);
        let cost = OwnCost { instructions: costs.own, allocations, bytes, ..OwnCost::default() };
        builder.add(context, cost);
    }
    for ((caller, callee), calls) in &profile.edges {
        let [caller, callee] =
            [caller, callee].map(|one| builder.function(&one.name, &one.object, one.object == program));
        builder.edge(caller, callee, *calls);
    }
    let callers = if profile.edges.is_empty() { KnownCallers::Unknown } else { KnownCallers::Calls };
    let kind = Kind { callers, has_heap: profile.has_heap, ..Kind::counted("callgrind") };
    Ok(ImportedProfile { title, kind, side: builder.done(), has_checksum: false })
}

/// The instructions of all parts of the file as its own lines say, if it has such lines. With threads and a simulated
/// cache, Valgrind 3.19 wrote a few more into the first than functions and the last line have.
fn stated_totals(text: &str) -> Vec<u64> {
    let Some(events) = text.lines().find_map(|line| line.strip_prefix("events:")) else { return Vec::new() };
    let column = events.split_whitespace().position(|event| event == "Ir").unwrap_or_default();
    let sum = |key: &str| {
        let stated = text.lines().filter_map(|line| line.strip_prefix(key));
        let numbers = stated.map(|numbers| numbers.split_whitespace().nth(column)?.parse::<u64>().ok());
        numbers.reduce(|one, other| one?.checked_add(other?)).flatten()
    };
    [sum("summary:"), sum("totals:")].into_iter().flatten().collect()
}
