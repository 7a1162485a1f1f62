//! Order statistics of the sums or differences of all pairs of numbers, by counting instead of listing them.
//!
//! Source: the idea is that of Johnson & Mizoguchi, "Selecting the Kth Element in X + Y and X₁ + X₂ + … + X_m" (1978).
//! Here the k-th value is found by bisecting the range of representable numbers, which needs at most 64 counts for any
//! sample, and returns exactly the number that sorting would.

/// A multiset of numbers that can count its elements up to a limit.
pub(crate) trait Multiset {
    /// The number of elements.
    fn total(&self) -> u64;
    /// The number of elements that are at most `limit`.
    fn at_most(&self, limit: f64) -> u64;
    /// The smallest and the largest element; called only when the multiset is not empty.
    fn ends(&self) -> (f64, f64);
}

/// The Walsh averages: the means of all pairs i ≤ j of one sample.
pub(crate) struct Walsh {
    sorted: Vec<f64>,
}

impl Walsh {
    pub(crate) fn new(sorted: Vec<f64>) -> Walsh {
        Walsh { sorted }
    }
}

impl Multiset for Walsh {
    fn total(&self) -> u64 {
        let n = self.sorted.len() as u64;
        n * (n + 1) / 2
    }

    fn at_most(&self, limit: f64) -> u64 {
        let mut partners = self.sorted.len();
        let mut count = 0;
        for (i, &value) in self.sorted.iter().enumerate() {
            // As values grow, fewer partners keep the average below the limit, so one pass serves all pairs.
            while partners > i && average(value, self.sorted[partners - 1]) > limit {
                partners -= 1;
            }
            if partners <= i {
                break;
            }
            count += (partners - i) as u64;
        }
        count
    }

    fn ends(&self) -> (f64, f64) {
        (self.sorted[0], self.sorted[self.sorted.len() - 1])
    }
}

/// The mean of two numbers, which are halved before they are added so that large readings do not overflow.
fn average(a: f64, b: f64) -> f64 {
    a / 2.0 + b / 2.0
}

/// The differences arm − reference of all pairs of two samples.
pub(crate) struct Differences {
    reference: Vec<f64>,
    arm: Vec<f64>,
}

impl Differences {
    pub(crate) fn new(reference: Vec<f64>, arm: Vec<f64>) -> Differences {
        Differences { reference, arm }
    }
}

impl Multiset for Differences {
    fn total(&self) -> u64 {
        self.reference.len() as u64 * self.arm.len() as u64
    }

    fn at_most(&self, limit: f64) -> u64 {
        let mut within = 0;
        let mut count = 0;
        for base in &self.reference {
            while within < self.arm.len() && self.arm[within] - base <= limit {
                within += 1;
            }
            count += within as u64;
        }
        count
    }

    fn ends(&self) -> (f64, f64) {
        let (last_reference, last_arm) = (self.reference.len() - 1, self.arm.len() - 1);
        (self.arm[0] - self.reference[last_reference], self.arm[last_arm] - self.reference[0])
    }
}

/// The `rank`-th smallest number, counted from 1; the largest number for ranks beyond the last.
pub(crate) fn kth(values: &impl Multiset, rank: u64) -> f64 {
    let (least, most) = values.ends();
    let (mut low, mut high) = (key(least), key(most));
    while low < high {
        // The midpoint is computed without a sum, since keys span the whole of i64 and would overflow.
        let middle = (low & high) + ((low ^ high) >> 1);
        if values.at_most(number(middle)) >= rank { high = middle } else { low = middle + 1 }
    }
    number(low) + 0.0
}

/// Maps finite numbers to integers that have the same order.
fn key(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn number(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}
