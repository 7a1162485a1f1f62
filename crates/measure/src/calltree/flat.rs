//! What callgrind or cachegrind counted, in the form of a call tree: each function directly below the program, because
//! they have no calling contexts. Callgrind also records the calls between functions.

use crate::callgrind;
use scruple_code::{
    Binaries, Calls, HeapCounts, InstructionRun, Profile, ProfileContext, ProfileFunction, RecursiveCalls,
};
use std::collections::HashMap;
use std::path::Path;

/// The file of functions whose file is not in the profile, as cachegrind's are.
const UNKNOWN: &str = "a file that was not recorded";

/// The tree of a profile, whose text contains the program's command line.
pub(crate) fn of(counted: &callgrind::CallgrindProfile, text: &str) -> Profile {
    let line = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let words: Vec<String> = line("cmd:").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    let program = words.first().cloned().unwrap_or_default();
    let own_file = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let root = ProfileContext { parent: None, function: None, calls: 1, own: 0, heap: HeapCounts::default() };
    let mut profile = Profile {
        process: line("pid:").and_then(|pid| pid.parse().ok()).unwrap_or_default(),
        words: words.clone(),
        total: counted.total,
        contexts: vec![root],
        part: 1,
        ..Profile::default()
    };
    let binaries = Binaries::new();
    let mut place_of = HashMap::new();
    for (function, costs) in &counted.functions {
        // Callgrind shows code without a symbol by its address.
        let is_named = !function.name.starts_with("0x") && !function.name.starts_with("???");
        let object = match counted.paths.get(&function.object) {
            Some(path) => path.clone(),
            None if function.object.is_empty() => UNKNOWN.to_owned(),
            None if function.object == own_file => program.clone(),
            None => function.object.clone(),
        };
        let place = profile.functions.len();
        place_of.insert(function, place);
        let code = counted.code.get(function);
        let is_one = |code: &&callgrind::ExecutedCode| is_named && code.sources.len() == 1;
        let begin =
            |code: &callgrind::ExecutedCode| code.begin.or_else(|| Some(*code.counts.first_key_value()?.0));
        let offset = code.filter(is_one).and_then(begin);
        profile.functions.push(ProfileFunction {
            name: is_named.then(|| function.name.clone()),
            object: Some(object.clone()),
            offset: offset.unwrap_or_default(),
        });
        for (address, count) in code.into_iter().flat_map(|code| &code.counts) {
            if let Some(length) = binaries.length(&object, *address) {
                let lengths = vec![length];
                let object = Some(object.clone());
                profile.runs.push(InstructionRun {
                    function: offset.map(|_| place),
                    object,
                    offset: *address,
                    lengths,
                    count: *count,
                });
            }
        }
        profile.contexts.push(ProfileContext {
            parent: Some(0),
            function: Some(place),
            calls: costs.calls.min(1),
            own: costs.own,
            heap: HeapCounts::default(),
        });
        if costs.calls > 1 {
            let context = profile.contexts.len() - 1;
            profile.recursive.push(RecursiveCalls { from: context, to: context, calls: costs.calls - 1 });
        }
    }
    let edge =
        |((caller, callee), calls): (&(callgrind::ObjectFunction, callgrind::ObjectFunction), &u64)| {
            Some(Calls { caller: *place_of.get(caller)?, callee: *place_of.get(callee)?, calls: *calls })
        };
    profile.calls = counted.edges.iter().filter_map(edge).collect();
    profile
}
