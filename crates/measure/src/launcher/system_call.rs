//! System calls that write nothing to this process's memory except what the kernel is asked to write.
//!
//! A child that shares its parent's memory also shares the C library's `errno`, so it must not call functions that set
//! it.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "the launcher makes system calls without a library, which is written for x86-64 and aarch64 only"
);

/// Makes a system call and returns the kernel's result; a negative value is a negated error number.
///
/// # Safety
/// The same as for the system call itself: pointers must be valid for what it reads and writes.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn system_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let result;
    let [a, b, c, d] = arguments;
    // SAFETY: the registers are those of the kernel's calling convention; the rest is the caller's promise.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Makes a system call and returns the kernel's result; a negative value is a negated error number.
///
/// # Safety
/// The same as for the system call itself: pointers must be valid for what it reads and writes.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn system_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let result;
    let [a, b, c, d] = arguments;
    // SAFETY: the registers are those of the kernel's calling convention; the rest is the caller's promise.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            options(nostack)
        );
    }
    result
}
