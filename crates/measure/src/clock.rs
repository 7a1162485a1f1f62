//! Reads the kernel's clocks.

/// The time of a kernel clock in nanoseconds; `None` if that clock does not exist, or no longer exists.
#[inline]
pub(crate) fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in plain data that outlives the call.
    let known = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    known.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
