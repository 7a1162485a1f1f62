//! Machine code of functions as numbers, so that it can be compared when the program is there no more.

use super::data::Data;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;

/// The code of one side of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineCode {
    /// Of each file, its digest and whether its code could be taken apart.
    pub files: HashMap<String, (u64, bool)>,
    /// Of each file, the data that it starts with.
    #[serde(default)]
    pub data: HashMap<String, Data>,
    /// Of each function, what the instruction at each distance from its beginning does.
    pub functions: Vec<BTreeMap<u64, u32>>,
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo): unlike the standard library's, it is the same in every version.
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
