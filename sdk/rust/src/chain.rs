//! Loops in which every iteration waits for the result of the one before.
//!
//! Were iterations independent, the processor would run several at once, and how much of a short body vanishes in the
//! loop then changes with whatever else uses its ports. In a chain, every iteration costs its whole latency.

use crate::opaque::{begin_line, opaque};
use std::any::TypeId;

/// Whether a type is a number, a character or a truth value: all bytes of it mean something, and it fits a register.
#[inline(always)]
pub fn is_scalar<T: 'static>() -> bool {
    macro_rules! one_of {
        ($($type:ty)*) => { $(TypeId::of::<T>() == TypeId::of::<$type>())||* };
    }
    one_of!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 char bool)
}

/// The bytes of a scalar, which nobody knows; 0 for anything else, which is looked at.
#[inline(always)]
fn bits<T: 'static>(value: T) -> u64 {
    if !is_scalar::<T>() {
        drop(opaque(value));
        return 0;
    }
    let mut bits = 0_u64;
    // SAFETY: a scalar is at most eight bytes long and has no padding.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), (&raw mut bits).cast(), size_of::<T>())
    };
    opaque(bits)
}

/// Calls `body` that many times, at least once, always with the same argument, which is a scalar.
///
/// The argument is made of the result of the call before and a mask, which is zero, though neither compiler nor
/// processor know. The argument itself is mixed in, so that a body that ignores it takes as long as the tare.
#[inline(always)]
pub fn repeat<A: Copy + 'static, R: 'static>(iterations: u64, argument: A, mut body: impl FnMut(A) -> R) {
    debug_assert!(is_scalar::<A>());
    let zero = opaque(0_u64);
    let first = bits(argument);
    let mut now = first;
    let mut left = iterations;
    begin_line();
    loop {
        let known = opaque(now);
        let mut argument = argument;
        // SAFETY: `known` is `first`, the bytes of the argument, since the mask is zero.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const known).cast(),
                (&raw mut argument).cast::<u8>(),
                size_of::<A>(),
            )
        };
        now = first.wrapping_add((bits(body(argument)) | now) & zero);
        left -= 1;
        if left == 0 {
            break;
        }
    }
    opaque(now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_always_gets_its_argument_whatever_it_returns() {
        let mut seen = Vec::new();
        repeat(3, -7_i16, |argument| seen.push(argument));
        repeat(2, 2.5_f64, |argument| seen.push(argument as i16));
        repeat(1, 'c', |argument| argument.to_string());
        repeat(2, true, |argument| u64::MAX ^ u64::from(argument));
        assert_eq!(seen, [-7, -7, -7, 2, 2]);
        assert!(!is_scalar::<&str>() && !is_scalar::<(u8, u32)>());
    }
}
