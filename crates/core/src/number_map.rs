//! Maps whose keys are small numbers that the program itself gave out, such as indices.
//!
//! The standard library's hash function resists keys that someone chose so that they collide, which costs most of the
//! time where millions of indices are looked up. Indices are given out in order, so that nobody chooses them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by indices, or by pairs of them.
pub type IndexMap<K, V> = HashMap<K, V, BuildHasherDefault<IndexHasher>>;

/// Mixes the bits of numbers (the finaliser of SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexHasher(u64);

impl Hasher for IndexHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let mut mixed = (self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ (mixed >> 31);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    #[test]
    fn pairs_of_indices_do_not_collide() {
        let build = BuildHasherDefault::<IndexHasher>::default();
        let pairs = (0..300_u32).flat_map(|one| (0..300_u32).map(move |other| (one, other)));
        let hashes: HashSet<u64> = pairs.map(|pair| build.hash_one(pair)).collect();
        assert_eq!(hashes.len(), 300 * 300);
        // A table of few places uses the low bits.
        let low: HashSet<u64> = hashes.iter().map(|hash| hash % 1024).collect();
        assert_eq!(low.len(), 1024);
    }
}
