//! The buckets in which latencies are counted: those of an HdrHistogram with three significant digits.

/// The largest latency in nanoseconds that is distinguished from larger ones: an hour.
pub(super) const LONGEST: u64 = 3_600_000_000_000;

/// The number of significant binary digits of a bucket, which give three decimal ones.
const DIGITS: u32 = 11;

/// The number of the first buckets, which hold one value each.
const SINGLE: usize = 1 << DIGITS;

/// The counts that are examined at once for a latency.
const STRIDE: usize = 64;

/// The highest value and the count of each bucket that is not empty; each count has the index of its bucket.
pub(super) fn occupied<C: Copy + Default + Into<u64> + PartialEq>(counts: &[C]) -> Vec<(u64, u64)> {
    let none = C::default();
    let mut buckets = Vec::new();
    for (stride, counts) in counts.chunks(STRIDE).enumerate() {
        if counts.iter().all(|count| *count == none) {
            continue;
        }
        let occupied = counts.iter().enumerate().filter(|(_, count)| **count != none);
        buckets.extend(occupied.map(|(at, count)| (highest(stride * STRIDE + at), (*count).into())));
    }
    buckets
}

/// The number of binary digits of a value that its bucket drops.
#[inline]
fn dropped(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).saturating_sub(DIGITS)
}

/// The lowest and the highest value of the bucket of a value.
#[inline]
pub(super) fn bucket(value: u64) -> (u64, u64) {
    let others = (1 << dropped(value)) - 1;
    (value & !others, value | others)
}

/// The place of the bucket of a value.
#[inline]
pub(super) fn place(value: u64) -> usize {
    let dropped = dropped(value);
    // Each further power of two has half as many buckets as there are single values.
    (value >> dropped) as usize + dropped as usize * (SINGLE / 2)
}

/// The highest value of the bucket at a place.
pub(super) fn highest(place: usize) -> u64 {
    let dropped = (place / (SINGLE / 2)).saturating_sub(1);
    (((place - dropped * (SINGLE / 2)) as u64 + 1) << dropped) - 1
}
