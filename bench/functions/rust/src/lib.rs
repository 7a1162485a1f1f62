//! The functions that every harness is given; inlined there, as they would be in a program of one's own.

/// One step of FNV-1a.
#[inline(always)]
pub fn step(h: u32, byte: u32) -> u32 {
    (h ^ byte).wrapping_mul(16777619)
}

/// Four steps.
#[inline(always)]
pub fn four(h: u32) -> u32 {
    step(step(step(step(h, 1), 2), 3), 4)
}

/// Eight steps.
#[inline(always)]
pub fn eight(h: u32) -> u32 {
    four(four(h))
}

/// Many steps, each of which waits for the one before.
#[inline(always)]
pub fn steps(h: u32, n: u32) -> u32 {
    (0..n).fold(h, |h, i| step(h, i & 255))
}

/// What the functions are called with.
pub const BASIS: u32 = 2166136261;
