//! A seeded generator whose stream never changes, so that a printed seed reproduces a plan or a bootstrap.
//!
//! Source: O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number
//! Generation" (2014), generator PCG-XSH-RR 64/32, checked against the published output of its demonstration.

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// The default stream: that of the reference implementation.
const STREAM: u64 = 0xda3e_39cb_94b9_5bdb;

/// A PCG-XSH-RR 64/32 generator: 64 bits of state, 32 bits of output per step, 2⁶³ streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pcg {
    state: u64,
    increment: u64,
}

impl Pcg {
    /// A generator with the seed `seed` on the default stream.
    ///
    /// ```
    /// use scruple_stats::rng::Pcg;
    ///
    /// let (mut one, mut other) = (Pcg::new(7), Pcg::new(7));
    /// assert_eq!(one.next_u64(), other.next_u64());
    /// ```
    pub fn new(seed: u64) -> Pcg {
        Pcg::with_stream(seed, STREAM)
    }

    /// A generator with the seed `seed` on the stream `stream`, whose topmost bit is not used. Streams of one seed do
    /// not overlap in practice.
    pub fn with_stream(seed: u64, stream: u64) -> Pcg {
        let mut pcg = Pcg { state: 0, increment: (stream << 1) | 1 };
        pcg.next_u32();
        pcg.state = pcg.state.wrapping_add(seed);
        pcg.next_u32();
        pcg
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
        let shifted = (((old >> 18) ^ old) >> 27) as u32;
        shifted.rotate_right((old >> 59) as u32)
    }

    /// The next 64 random bits, from two steps; the first step gives the high half.
    pub fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        (high << 32) | u64::from(self.next_u32())
    }

    /// A uniform random number from 0 to `n - 1`; 0 when `n` is 0.
    ///
    /// Draws that would favour small numbers are rejected, as in the reference implementation.
    pub fn below(&mut self, n: u32) -> u32 {
        if n == 0 {
            return 0;
        }
        let threshold = n.wrapping_neg() % n;
        loop {
            let drawn = self.next_u32();
            if drawn >= threshold {
                return drawn % n;
            }
        }
    }

    /// A uniform random number from [0, 1), in steps of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Shuffles `items` uniformly, by the algorithm of Fisher and Yates from the last place down.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            let bound = u32::try_from(place + 1).unwrap_or(u32::MAX);
            items.swap(self.below(bound) as usize, place);
        }
    }
}
