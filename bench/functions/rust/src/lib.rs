//! The functions that every harness times. They can be inlined, as in a user's own program.

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

/// Many steps, each of which waits for the previous one.
#[inline(always)]
pub fn steps(h: u32, n: u32) -> u32 {
    (0..n).fold(h, |h, i| step(h, i & 255))
}

/// The argument of the functions.
pub const BASIS: u32 = 2166136261;
