//! A hash that stays the same, so that it can be stored.

use std::hash::Hasher;

/// FNV-1a with 64 bits (Fowler, Noll, Vo). Unlike the standard library's hasher, it gives the same values in every
/// version.
pub(crate) struct Fnv(u64);

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
