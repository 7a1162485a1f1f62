//! The machine code of functions as hashes, so that it can be compared after the program's files are gone.

use super::binary::{Binaries, LONGEST};
use super::initial_data::Data;
use super::merged_profiles::Side;
use object::{Architecture, Object};
use scruple_core::sorting::{self, SortedMap};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::Hasher;

/// The machine code of one side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineCode {
    /// The digest of each file, and whether its code could be disassembled.
    pub files: HashMap<String, (u64, bool)>,
    /// The initial data of each file.
    #[serde(default)]
    pub data: HashMap<String, Data>,
    /// For each function, the hash of the operation at each distance from the function's beginning.
    pub functions: Vec<SortedMap<u64, u32>>,
    /// For each function by index, the further hashes of operations that refer to a function with several names.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub aliases: SortedMap<usize, SortedMap<u64, Vec<u32>>>,
}

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

/// FNV-1a with 64 bits (Fowler, Noll, Vo). Unlike the standard library's hasher, it gives the same values in every
/// version.
pub(super) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Folds a hash to 32 bits.
pub(super) fn folded(value: u64) -> u32 {
    (value ^ (value >> 32)) as u32
}

/// The content of a file. Some formats of profiles have only the names of files, which would be sought in the current
/// folder.
pub(super) fn content(path: &str) -> Option<Vec<u8>> {
    std::fs::read(path).ok().filter(|_| path.starts_with('/'))
}

/// The digest of a whole file, and whether its code can be disassembled.
pub(super) fn digest(path: &str) -> Option<(u64, bool)> {
    let data = content(path)?;
    let mut hasher = Fnv::default();
    hasher.write(&data);
    let file = object::File::parse(data.as_slice()).ok()?;
    Some((hasher.finish(), decodes(&file)))
}

/// Whether the code of a file can be disassembled: only that of x86-64 can.
pub(super) fn decodes(file: &object::File) -> bool {
    file.architecture() == Architecture::X86_64
}
