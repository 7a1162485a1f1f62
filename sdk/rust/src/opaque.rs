//! Hiding values from the compiler.

use std::hint::black_box;

/// Returns the same value, unknown to the compiler.
///
/// The standard library's [`black_box`] stores a value in memory and loads it again. A loop then waits two cycles or
/// more for its own store, and the time of a body of a few instructions disappears in that wait. Here, values that fit
/// a register stay in one.
#[inline(always)]
pub fn opaque<T>(value: T) -> T {
    match size_of::<T>() {
        #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
        4 => register::pass::<T, u32>(value),
        #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
        8 => register::pass::<T, *mut ()>(value),
        _ => black_box(value),
    }
}

/// Aligns the next loop to a cache line: a loop across two lines sometimes takes half as long again.
#[inline(always)]
pub fn begin_line() {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    register::begin_line();
}

#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod register {
    use std::arch::asm;
    use std::mem::{ManuallyDrop, MaybeUninit, transmute_copy};

    /// A type that can be passed through a register unchanged, even if some of its bytes are padding.
    pub trait Bits: Sized {
        fn pass(bits: &mut MaybeUninit<Self>);
    }

    macro_rules! bits {
        ($type:ty) => {
            impl Bits for $type {
                // The assembly is only a comment, so that it may name the register by its full width.
                #[allow(asm_sub_register)]
                #[inline(always)]
                fn pass(bits: &mut MaybeUninit<Self>) {
                    // SAFETY: the assembly contains no instruction. The compiler cannot know that, and must assume that
                    // the value was changed and that all memory was read.
                    unsafe { asm!("/* {} */", inlateout(reg) * bits, options(nostack, preserves_flags)) };
                }
            }
        };
    }
    bits!(u32);
    bits!(*mut ());

    #[inline(always)]
    pub fn begin_line() {
        // SAFETY: it only pads the code with instructions that do nothing.
        unsafe { asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
    }

    #[inline(always)]
    pub fn pass<T, B: Bits>(value: T) -> T {
        assert!(size_of::<T>() == size_of::<B>());
        let value = ManuallyDrop::new(value);
        // SAFETY: both have the same size, and `MaybeUninit` may hold any bytes. The original is not dropped, and the
        // returned value has the same bytes.
        unsafe {
            let mut bits: MaybeUninit<B> = transmute_copy(&*value);
            B::pass(&mut bits);
            transmute_copy(&bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::opaque;

    #[test]
    fn values_of_every_size_come_back_as_they_were() {
        assert_eq!(opaque(7_u8), 7);
        assert_eq!(opaque(-7_i32), -7);
        assert_eq!(opaque(0.1_f64), 0.1);
        assert_eq!(opaque((1_u8, 2_u16)), (1, 2));
        assert_eq!(opaque(Some(3_u32)), Some(3));
        assert_eq!(*opaque(Box::new(4)), 4);
        assert_eq!(opaque("five"), "five");
        assert_eq!(opaque(vec![6]), [6]);
        opaque(());
    }
}
