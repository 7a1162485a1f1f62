//! Hiding values from the compiler.

use std::hint::black_box;

/// The same value, of which the compiler must not assume anything.
///
/// The standard library's [`black_box`] puts a value into memory and takes it back. A loop then waits two cycles or more
/// for its own store, and a body of a few instructions hides in that time: it would weigh nothing. Values that fit a
/// register stay in one here.
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

/// Begins a line of the processor's cache, for the loop that follows: one that straddles two takes half as long again
/// now and then.
#[inline(always)]
pub fn begin_line() {
    #[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    register::begin_line();
}

#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod register {
    use std::arch::asm;
    use std::mem::{ManuallyDrop, MaybeUninit, transmute_copy};

    /// What can be passed through a register as it is, even where some of its bytes are padding.
    pub trait Bits: Sized {
        fn pass(bits: &mut MaybeUninit<Self>);
    }

    macro_rules! bits {
        ($type:ty) => {
            impl Bits for $type {
                // The comment names the register by its full width, which is as good as any.
                #[allow(asm_sub_register)]
                #[inline(always)]
                fn pass(bits: &mut MaybeUninit<Self>) {
                    // SAFETY: there is no instruction in it. The compiler, which cannot know that, must assume that the
                    // value was changed and that all memory was looked at.
                    unsafe { asm!("/* {} */", inlateout(reg) * bits, options(nostack, preserves_flags)) };
                }
            }
        };
    }
    bits!(u32);
    bits!(*mut ());

    #[inline(always)]
    pub fn begin_line() {
        // SAFETY: it only fills the code up with instructions that do nothing.
        unsafe { asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
    }

    #[inline(always)]
    pub fn pass<T, B: Bits>(value: T) -> T {
        assert!(size_of::<T>() == size_of::<B>());
        let value = ManuallyDrop::new(value);
        // SAFETY: both are of one size, and `MaybeUninit` may hold any bytes. The value is not dropped where it was, and
        // comes back as it was: nothing is done to its bytes.
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
