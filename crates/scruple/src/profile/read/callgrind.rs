//! Reads files of callgrind. They contain functions and the calls between them, but no calling contexts. Therefore each
//! function is directly below the program.

use super::{Builder, Imported, Kind};
use scruple_core::explain::Cost;
use scruple_measure::load::cost::callgrind;

pub(super) fn parse(text: &str) -> Result<Imported, String> {
    let profile = callgrind::parse(text)?;
    if profile.functions.is_empty() {
        return Err("it has no functions".to_owned());
    }
    let title = text.lines().find_map(|line| line.strip_prefix("cmd:")).map(|line| line.trim().to_owned());
    let word = title.as_deref().and_then(|title| title.split_whitespace().next()).unwrap_or_default();
    let program = word.rsplit('/').next().unwrap_or_default();
    let mut builder = Builder::new();
    for (function, costs) in &profile.functions {
        let place = builder.function(&function.name, &function.object, function.object == program);
        let context = builder.below(0, place)?;
        // One call counts as coming from the program. The callers of the others are ignored.
        builder.calls(context, 1, costs.calls.saturating_sub(1));
        builder.add(context, Cost { instructions: costs.own, ..Cost::default() });
    }
    let kind = Kind { has_contexts: false, has_heap: false, ..Kind::counted("callgrind") };
    Ok(Imported { title, kind, side: builder.done() })
}
