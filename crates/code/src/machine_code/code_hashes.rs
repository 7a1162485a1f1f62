//! The machine code of functions as hashes, so that it can be compared after the program's files are gone.

use super::fnv::Fnv;
use super::initial_data::Data;
use object::{Architecture, Object};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hasher;

/// The machine code of one side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineCode {
    /// The digest of each file, and whether its code could be disassembled.
    pub files: HashMap<String, (u64, bool)>,
    /// The initial data of each file.
    #[serde(default)]
    pub data: HashMap<String, Data>,
    /// The hashes of the names of all symbols of each file.
    #[serde(default)]
    pub names: HashMap<String, BTreeSet<u32>>,
    /// For each function, the hash of the operation at each distance from the function's beginning.
    pub functions: Vec<SortedMap<u64, u32>>,
    /// For each function by index, the further hashes of operations that refer to a function with several names.
    #[serde(default, skip_serializing_if = "SortedMap::is_empty")]
    pub aliases: SortedMap<usize, SortedMap<u64, Vec<u32>>>,
}

/// Folds a hash to 32 bits.
pub(crate) fn folded(value: u64) -> u32 {
    (value ^ (value >> 32)) as u32
}

/// The content of a file. Some formats of profiles have only the names of files, which would be sought in the current
/// folder.
pub(crate) fn content(path: &str) -> Option<Vec<u8>> {
    std::fs::read(path).ok().filter(|_| path.starts_with('/'))
}

/// The digest of a whole file, and whether its code can be disassembled.
pub(crate) fn digest(path: &str) -> Option<(u64, bool)> {
    let data = content(path)?;
    let mut hasher = Fnv::default();
    hasher.write(&data);
    let file = object::File::parse(data.as_slice()).ok()?;
    Some((hasher.finish(), decodes(&file)))
}

/// Whether the code of a file can be disassembled: only that of x86-64 can.
pub(crate) fn decodes(file: &object::File) -> bool {
    file.architecture() == Architecture::X86_64
}
