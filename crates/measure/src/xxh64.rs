//! The hash XXH64 of Yann Collet (specification: `xxhash_spec.md` of the xxHash project, section XXH64), with seed 0.

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

/// The number of bytes that are hashed at a time, by four sums that do not wait for each other.
const STRIPE: usize = 32;

/// A hash of the stripes so far.
pub(crate) struct Xxh64 {
    sums: [u64; 4],
    length: u64,
}

impl Xxh64 {
    pub(crate) fn new() -> Xxh64 {
        let [first, second, ..] = PRIMES;
        let sums = [first.wrapping_add(second), second, 0, 0_u64.wrapping_sub(first)];
        Xxh64 { sums, length: 0 }
    }

    /// Adds whole stripes; bytes after the last whole one are ignored.
    pub(crate) fn stripes(&mut self, bytes: &[u8]) {
        let mut sums = self.sums;
        for stripe in bytes.chunks_exact(STRIPE) {
            for (sum, lane) in sums.iter_mut().zip(stripe.chunks_exact(8)) {
                *sum = round(*sum, word(lane));
            }
        }
        self.sums = sums;
        self.length += (bytes.len() - bytes.len() % STRIPE) as u64;
    }

    /// Adds the rest of the bytes and returns the hash.
    pub(crate) fn finish(mut self, rest: &[u8]) -> u64 {
        let [first, second, third, fourth, fifth] = PRIMES;
        self.stripes(rest);
        let rest = rest.chunks_exact(STRIPE).remainder();
        let mut hash = match self.length {
            0 => fifth,
            _ => {
                let turns = [1, 7, 12, 18];
                let turned = self.sums.iter().zip(turns).map(|(sum, turn)| sum.rotate_left(turn));
                let whole = turned.fold(0_u64, u64::wrapping_add);
                let merged =
                    |hash: u64, sum: &u64| (hash ^ round(0, *sum)).wrapping_mul(first).wrapping_add(fourth);
                self.sums.iter().fold(whole, merged)
            }
        };
        hash = hash.wrapping_add(self.length + rest.len() as u64);
        let words = rest.chunks_exact(8);
        let rest = words.remainder();
        for lane in words {
            hash = (hash ^ round(0, word(lane))).rotate_left(27).wrapping_mul(first).wrapping_add(fourth);
        }
        let halves = rest.chunks_exact(4);
        let rest = halves.remainder();
        for half in halves {
            hash = (hash ^ word(half).wrapping_mul(first))
                .rotate_left(23)
                .wrapping_mul(second)
                .wrapping_add(third);
        }
        for byte in rest {
            hash = (hash ^ u64::from(*byte).wrapping_mul(fifth)).rotate_left(11).wrapping_mul(first);
        }
        hash = (hash ^ hash >> 33).wrapping_mul(second);
        hash = (hash ^ hash >> 29).wrapping_mul(third);
        hash ^ hash >> 32
    }
}

fn round(sum: u64, word: u64) -> u64 {
    sum.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

/// Up to eight bytes as a number, the lowest first.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(bytes: &[u8]) -> u64 {
        Xxh64::new().finish(bytes)
    }

    #[test]
    fn the_hashes_of_the_reference_implementation_come_out() {
        // By the Python package xxhash, of the bytes 0 to 255 over and over.
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let known = [
            (0, 0xef46_db37_51d8_e999),
            (1, 0xe934_a84a_db05_2768),
            (3, 0xe5c7_bb45_33bc_65dd),
            (4, 0xffce_d860_4453_cc1e),
            (15, 0xa948_f5f0_f6ab_ac2d),
            (31, 0xc346_d2b5_9b4d_8ee1),
            (32, 0xcbf5_9c51_16ff_32b4),
            (63, 0xe26a_a9e2_a95f_8e4f),
            (1000, 0x6ef4_36b0_0eba_4078),
        ];
        for (length, expected) in known {
            assert_eq!(hash(&bytes[..length]), expected, "{length} bytes");
        }
    }

    #[test]
    fn stripes_may_come_in_pieces() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let mut pieces = Xxh64::new();
        pieces.stripes(&bytes[..320]);
        pieces.stripes(&bytes[320..640]);
        assert_eq!(pieces.finish(&bytes[640..]), hash(&bytes));
    }
}
