//! What callgrind counted, in the form of a call tree: each function directly below the program, because callgrind has no
//! calling contexts.

use super::profile::{Context, Function, Heap, Profile, RecursiveCalls};
use crate::load::cost::callgrind;
use std::path::Path;

/// The tree of a profile of callgrind, whose text tells the program's words.
pub(super) fn of(counted: &callgrind::Profile, text: &str) -> Profile {
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let words: Vec<String> = line("cmd:").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let program = words.first().cloned().unwrap_or_default();
    let own_file = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let root = Context { parent: None, function: None, calls: 1, own: 0, heap: Heap::default() };
    let mut profile = Profile {
        process: line("pid:").and_then(|pid| pid.parse().ok()).unwrap_or_default(),
        words: words.clone(),
        total: counted.total,
        contexts: vec![root],
        part: 1,
        ..Profile::default()
    };
    for (function, costs) in &counted.functions {
        let object = if function.object == own_file { program.clone() } else { function.object.clone() };
        // Callgrind shows code without a symbol by its address.
        let is_named = !function.name.starts_with("0x") && !function.name.starts_with("???");
        profile.functions.push(Function {
            name: is_named.then(|| function.name.clone()),
            object: Some(object).filter(|object| !object.is_empty() && object != "???"),
            offset: 0,
        });
        let context = profile.contexts.len();
        let calls = costs.calls.min(1);
        let function = Some(profile.functions.len() - 1);
        profile.contexts.push(Context {
            parent: Some(0),
            function,
            calls,
            own: costs.own,
            heap: Heap::default(),
        });
        if costs.calls > 1 {
            profile.recursive.push(RecursiveCalls { from: context, to: context, calls: costs.calls - 1 });
        }
    }
    profile
}
