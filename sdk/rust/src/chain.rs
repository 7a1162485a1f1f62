//! The loops around bodies of scalars: numbers, characters and booleans that fit a register.
//!
//! [`ChainState`] writes out the harness's part of an iteration, in instructions that the compiler cannot merge with the
//! body's. The tare runs the same instructions without the body, so that case and tare differ only by the body.
//! `tests/disassembly.rs` compares the two for every pair of scalar types.
//!
//! For latency, every iteration waits for the result of the previous one. For throughput, iterations are independent
//! and overlap in the processor.

use crate::opaque::{begin_line, opaque};
use std::any::TypeId;
use std::mem::{ManuallyDrop, MaybeUninit, transmute_copy};

macro_rules! one_of {
    ($t:ty: $($type:ty)*) => { $(TypeId::of::<$t>() == TypeId::of::<$type>())||* };
}

/// Whether a type is a number, a character or a boolean: it has no padding, and fits a register.
#[inline(always)]
pub fn is_scalar<T: 'static>() -> bool {
    one_of!(T: u8 u16 u32 u64 usize i8 i16 i32 i64 isize char bool) || is_float::<T>()
}

#[inline(always)]
fn is_float<T: 'static>() -> bool {
    one_of!(T: f32 f64)
}

/// Returns the bytes of a scalar as another scalar type, or its first bytes if that type is shorter.
#[inline(always)]
fn recast<T, U>(value: T) -> U {
    assert!(size_of::<U>() <= size_of::<T>());
    let value = ManuallyDrop::new(value);
    // SAFETY: the target is no longer than the source. The callers make values of one type from bytes of that type.
    unsafe { transmute_copy(&*value) }
}

/// Returns the bytes of a scalar in an integer of eight bytes.
#[inline(always)]
fn bits<T>(value: T) -> u64 {
    match size_of::<T>() {
        1 => u64::from(recast::<T, u8>(value)),
        2 => u64::from(recast::<T, u16>(value)),
        4 => u64::from(recast::<T, u32>(value)),
        _ => recast(value),
    }
}

/// The state that one iteration passes to the next.
#[derive(Clone, Copy)]
struct ChainState {
    /// The argument's bytes, unknown to the compiler.
    now: u64,
    /// The argument's bytes.
    first: u64,
    /// Zero, unknown to the compiler.
    mask: u64,
}

impl ChainState {
    fn new<A: Copy>(argument: A) -> ChainState {
        let first = opaque(bits(argument));
        ChainState { now: first, first, mask: opaque(0) }
    }

    /// Returns the argument of an iteration in a register of its own.
    #[inline(always)]
    fn argument<A: 'static>(self) -> A {
        instructions::argument(self.now)
    }

    /// Takes a scalar result. With `CHAINED`, the next argument depends on it and on the argument of this iteration, so
    /// that a body that ignores its argument takes as long as the tare.
    #[inline(always)]
    fn take<R: 'static, const CHAINED: bool>(&mut self, result: R) {
        if CHAINED {
            self.now = instructions::next(self.now, self.first, self.mask, result);
        } else {
            self.now = instructions::keep(self.now, result);
        }
    }

    /// Takes a result of any other type: the compiler must assume that it is read; then it is dropped.
    #[inline(always)]
    fn look<R, const CHAINED: bool>(&mut self, result: R) {
        drop(opaque(result));
        self.take::<u64, CHAINED>(self.now);
    }
}

/// Calls `body` for each of the iterations, at least once, with the same scalar argument.
#[inline(always)]
pub fn repeat<A, R, const CHAINED: bool>(iterations: u64, argument: A, mut body: impl FnMut(A) -> R)
where
    A: Copy + 'static,
    R: 'static,
{
    looped(iterations, argument, |link| {
        let result = body(link.argument::<A>());
        match is_scalar::<R>() {
            true => link.take::<R, CHAINED>(result),
            false => link.look::<R, CHAINED>(result),
        }
    });
}

/// The tare of [`repeat`]: uses the register of the argument as the result. It takes an instruction, a move of the
/// bits, only between an integer and a floating-point number.
#[inline(always)]
pub fn tare<A: Copy + 'static, R: 'static, const CHAINED: bool>(iterations: u64, argument: A) {
    looped(iterations, argument, |link| match (is_scalar::<R>(), is_float::<A>() == is_float::<R>()) {
        (true, true) => link.take::<R, CHAINED>(link.argument::<R>()),
        (true, false) if is_float::<A>() => {
            link.take::<R, CHAINED>(instructions::from_float(link.argument::<A>()))
        }
        (true, false) => link.take::<R, CHAINED>(instructions::to_float(link.argument())),
        (false, _) => {
            opaque(link.argument::<A>());
            link.look::<MaybeUninit<R>, CHAINED>(MaybeUninit::zeroed());
        }
    });
}

#[inline(always)]
fn looped<A: Copy>(iterations: u64, argument: A, mut iteration: impl FnMut(&mut ChainState)) {
    let mut link = ChainState::new(argument);
    let mut left = iterations;
    begin_line();
    loop {
        iteration(&mut link);
        left -= 1;
        if left == 0 {
            break;
        }
    }
    opaque(link.now);
}

/// The instructions around a body. They name no memory, but the compiler must assume that they read all of it.
#[cfg(all(not(miri), target_arch = "x86_64"))]
mod instructions {
    use super::{is_float, recast};
    use std::arch::asm;

    #[inline(always)]
    pub fn argument<A: 'static>(now: u64) -> A {
        if is_float::<A>() {
            let argument: f64;
            // SAFETY: it moves one register into another.
            unsafe {
                asm!("movq {}, {}", out(xmm_reg) argument, in(reg) now, options(nostack, preserves_flags))
            };
            return recast(argument);
        }
        let argument: u64;
        // SAFETY: it moves one register into another.
        unsafe { asm!("mov {}, {}", out(reg) argument, in(reg) now, options(nostack, preserves_flags)) };
        recast(argument)
    }

    macro_rules! taken {
        ($class:ident, $value:expr, $move:literal, $or:literal, $now:expr, $first:expr, $mask:expr) => {{
            let (value, mut next) = ($value, $now);
            // SAFETY: no memory is accessed, and all written registers are named. The upper bits of a short result are
            // not defined: the mask clears them.
            unsafe {
                asm!($move, $or, "and {next}, {mask}", "add {next}, {first}", scratch = out(reg) _,
                    value = in($class) value, next = inout(reg) next, mask = in(reg) $mask, first = in(reg) $first,
                    options(nostack))
            };
            next
        }};
    }

    #[inline(always)]
    pub fn next<R: 'static>(now: u64, first: u64, mask: u64, result: R) -> u64 {
        match (is_float::<R>(), size_of::<R>()) {
            (true, 4) => taken!(
                xmm_reg,
                recast::<R, f32>(result),
                "movq {scratch}, {value}",
                "or {next}, {scratch}",
                now,
                first,
                mask
            ),
            (true, _) => taken!(
                xmm_reg,
                recast::<R, f64>(result),
                "movq {scratch}, {value}",
                "or {next}, {scratch}",
                now,
                first,
                mask
            ),
            (_, 1) => taken!(
                reg_byte,
                recast::<R, u8>(result),
                "/* {scratch} */",
                "or {next:l}, {value}",
                now,
                first,
                mask
            ),
            (_, 2) => taken!(
                reg,
                recast::<R, u16>(result),
                "/* {scratch} */",
                "or {next}, {value:r}",
                now,
                first,
                mask
            ),
            (_, 4) => taken!(
                reg,
                recast::<R, u32>(result),
                "/* {scratch} */",
                "or {next}, {value:r}",
                now,
                first,
                mask
            ),
            _ => taken!(
                reg,
                recast::<R, u64>(result),
                "/* {scratch} */",
                "or {next}, {value}",
                now,
                first,
                mask
            ),
        }
    }

    #[inline(always)]
    pub fn keep<R: 'static>(now: u64, result: R) -> u64 {
        let mut next = now;
        macro_rules! kept {
            ($class:ident, $type:ty) => {{
                let value: $type = recast(result);
                // The assembly is only a comment, so that it may name the register by its full width.
                #[allow(asm_sub_register)]
                // SAFETY: the assembly contains no instruction.
                unsafe { asm!("/* {} {} */", in($class) value, inout(reg) next, options(nostack, preserves_flags)) }
            }};
        }
        match (is_float::<R>(), size_of::<R>()) {
            (true, 4) => kept!(xmm_reg, f32),
            (true, _) => kept!(xmm_reg, f64),
            (_, 1) => kept!(reg_byte, u8),
            (_, 2) => kept!(reg, u16),
            (_, 4) => kept!(reg, u32),
            _ => kept!(reg, u64),
        }
        next
    }

    /// Returns the floating-point number with these bits.
    #[inline(always)]
    pub fn to_float<R: 'static>(bits: u64) -> R {
        argument(bits)
    }

    /// Returns the bits of a floating-point number.
    #[inline(always)]
    pub fn from_float<A, R>(argument: A) -> R {
        let result: u64;
        macro_rules! moved {
            ($type:ty) => {{
                let argument: $type = recast(argument);
                // SAFETY: it moves one register into another.
                unsafe { asm!("movq {}, {}", out(reg) result, in(xmm_reg) argument, options(nostack, preserves_flags)) }
            }};
        }
        match size_of::<A>() {
            4 => moved!(f32),
            _ => moved!(f64),
        }
        recast(result)
    }
}

/// The instructions around a body on all other architectures. The compiler chooses them, and may merge some with the
/// body's.
#[cfg(not(all(not(miri), target_arch = "x86_64")))]
mod instructions {
    use super::{bits, opaque, recast};

    #[inline(always)]
    pub fn argument<A: 'static>(now: u64) -> A {
        recast(opaque(now))
    }

    #[inline(always)]
    pub fn next<R: 'static>(now: u64, first: u64, mask: u64, result: R) -> u64 {
        first.wrapping_add((opaque(bits(opaque(result))) | now) & mask)
    }

    #[inline(always)]
    pub fn keep<R: 'static>(now: u64, result: R) -> u64 {
        opaque(result);
        opaque(now)
    }

    #[inline(always)]
    pub fn to_float<R>(bits: u64) -> R {
        recast(bits)
    }

    #[inline(always)]
    pub fn from_float<A, R>(argument: A) -> R {
        recast(bits(argument))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_always_gets_its_argument_whatever_it_returns() {
        let mut seen = Vec::new();
        repeat::<_, _, true>(3, -7_i16, |argument| seen.push(argument));
        repeat::<_, _, false>(2, -7_i16, |argument| seen.push(argument));
        repeat::<_, _, true>(2, 2.5_f64, |argument| {
            seen.push(argument as i16);
            argument as f32
        });
        repeat::<_, _, true>(1, 'c', |argument| argument.to_string());
        repeat::<_, _, true>(2, true, |argument| u64::MAX ^ u64::from(argument));
        repeat::<_, _, true>(3, 1.5_f32, |argument| {
            seen.push((argument * 2.0) as i16);
            argument < 2.0
        });
        assert_eq!(seen, [-7, -7, -7, -7, -7, 2, 2, 3, 3, 3]);
        assert!(!is_scalar::<&str>() && !is_scalar::<(u8, u32)>());
    }

    #[test]
    fn a_tare_runs_for_every_pair_of_kinds() {
        tare::<u8, f64, true>(2, 7);
        tare::<f32, f64, true>(2, 7.0);
        tare::<f64, u8, false>(2, 7.0);
        tare::<char, String, true>(2, 'c');
    }
}
