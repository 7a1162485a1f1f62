//! Maps whose keys are numbers that no user chooses: indices, which are given out in order, and measured values.
//!
//! The standard library's hash function resists keys that someone chose so that they collide, which costs most of the
//! time where millions of numbers are looked up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers, or by pairs of them.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers over a table (multiplicative hashing: Knuth, The Art of Computer Programming, volume 3, section
/// 6.4), with the high bits folded into the low ones, which select the place in a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
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
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
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
        let build = BuildHasherDefault::<NumberHasher>::default();
        let pairs = (0..300_u32).flat_map(|one| (0..300_u32).map(move |other| (one, other)));
        let hashes: HashSet<u64> = pairs.map(|pair| build.hash_one(pair)).collect();
        assert_eq!(hashes.len(), 300 * 300);
        // A table of few places uses the low bits.
        let low: HashSet<u64> = hashes.iter().map(|hash| hash % 1024).collect();
        assert_eq!(low.len(), 1024);
    }
}
