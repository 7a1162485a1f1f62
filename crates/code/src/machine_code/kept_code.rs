//! Collects the machine code of a program's executed functions, to be stored with a profile.

use super::binary::{Binaries, LONGEST};
use super::code_hashes::MachineCode;
use crate::merged_profiles::Side;
use scruple_stats::sorting::{self, SortedMap};

impl Binaries {
    /// The machine code of all executed functions, in a form that is stored with a profile.
    pub fn machine_code(&self, side: &Side) -> MachineCode {
        if let Some(code) = &side.code {
            return code.clone();
        }
        let mut kept = MachineCode::default();
        let begins: Vec<(Option<&str>, u64)> = sorting::distinct(
            side.functions.iter().map(|function| (function.object.as_deref(), function.offset)),
        );
        for (index, function) in side.functions.iter().enumerate() {
            let mut code = SortedMap::new();
            if let Some(file) = function.object.as_deref().and_then(|path| self.file(path, side)) {
                let path = function.object.clone().unwrap_or_default();
                kept.files.extend(self.digest(&path).map(|digest| (path.clone(), digest)));
                kept.names.entry(path.clone()).or_insert_with(|| file.names().keys().copied().collect());
                kept.data.entry(path).or_insert_with(|| file.data.without_variables());
                let executed = &side.executed[index];
                if file.decodes && !executed.is_empty() {
                    // Another version may execute other parts of the function, so the code of the whole function is
                    // kept.
                    let begin = function.offset;
                    let symbol = file.symbols.range(begin + 1..).next().map_or(begin, |(at, _)| *at);
                    // Stripped files have few symbols, so the starts of other functions also limit the function.
                    let path = function.object.as_deref();
                    let behind = begins.partition_point(|other| *other <= (path, begin));
                    let other = begins.get(behind).filter(|other| other.0 == path);
                    let next = other.map_or(symbol, |(_, at)| symbol.min(*at));
                    let next = file.ends.get(&begin).copied().unwrap_or(next);
                    let mut at = begin;
                    while at < next.min(begin + LONGEST) {
                        let Some((decoded, _, _)) = file.decoded(at) else { break };
                        code.extend(file.instruction(begin, at, false).map(|value| (at - begin, value)));
                        at = decoded.next_ip();
                    }
                    for place in executed.keys() {
                        code.extend(
                            file.instruction(begin, begin + place, false).map(|value| (*place, value)),
                        );
                    }
                    let by_aliases =
                        code.keys().map(|place: &u64| (*place, file.by_aliases(begin, begin + place)));
                    let several = by_aliases.filter(|(_, hashes)| !hashes.is_empty());
                    let several: SortedMap<u64, Vec<u32>> = several.collect();
                    kept.aliases.extend((!several.is_empty()).then_some((index, several)));
                }
            }
            kept.functions.push(code);
        }
        kept
    }
}
