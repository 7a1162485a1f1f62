//! Clocks, in nanoseconds: the monotonic one, and the CPU time of a thread or of the process.

use std::fs::File;
use std::io::Read;

#[cfg(unix)]
mod system {
    use std::ffi::{c_int, c_long};

    #[repr(C)]
    struct Timespec {
        seconds: c_long,
        nanoseconds: c_long,
    }

    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    }

    #[cfg(target_vendor = "apple")]
    const CLOCKS: [c_int; 3] = [6, 16, 12];
    #[cfg(not(target_vendor = "apple"))]
    const CLOCKS: [c_int; 3] = [1, 3, 2];

    #[inline]
    pub fn read(which: usize) -> Option<u64> {
        let mut time = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: the pointer is to a local of the layout that the C library expects.
        unsafe { clock_gettime(CLOCKS[which], &mut time) };
        Some(time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64)
    }
}

#[cfg(not(unix))]
mod system {
    use std::sync::OnceLock;
    use std::time::Instant;

    pub fn read(which: usize) -> Option<u64> {
        static START: OnceLock<Instant> = OnceLock::new();
        (which == 0).then(|| START.get_or_init(Instant::now).elapsed().as_nanos() as u64)
    }
}

/// Reads the monotonic clock.
#[inline]
pub fn wall() -> u64 {
    system::read(0).unwrap_or(0)
}

/// Reads the CPU time of the calling thread, if the system provides it.
#[inline]
pub fn thread_cpu() -> Option<u64> {
    system::read(1)
}

/// The kernel's number of the calling thread, if the kernel reports it.
pub fn own_thread() -> Option<u64> {
    std::fs::read_link("/proc/thread-self").ok()?.file_name()?.to_str()?.parse().ok()
}

/// How long the calling thread was ready but waited for a core so far, if the kernel reports it. Allocates nothing, since
/// allocations are counted meanwhile.
fn waited_so_far() -> Option<u64> {
    let mut text = [0; 64];
    let length = File::open("/proc/thread-self/schedstat").ok()?.read(&mut text).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// One thread's clock readings around one timed part.
#[derive(Clone, Copy)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    pub cpu: Option<u64>,
    /// How long the thread was ready but waited for a core, among others that started with it.
    pub waited: Option<u64>,
}

impl Span {
    /// Runs `timed` and reads the clocks before and after it, the monotonic clock closest to it.
    #[inline(always)]
    pub fn of(timed: impl FnOnce()) -> Span {
        let cpu = thread_cpu();
        let start = wall();
        timed();
        let end = wall();
        let cpu = thread_cpu().zip(cpu).map(|(after, before)| after - before);
        Span { start, end, cpu, waited: None }
    }

    /// Meets other threads at a barrier, runs `timed`, and also reads how long this thread waited for a core.
    pub fn among(meet: impl FnOnce(), timed: impl FnOnce()) -> Span {
        let before = waited_so_far();
        meet();
        let span = Span::of(timed);
        Span { waited: waited_so_far().zip(before).and_then(|(now, then)| now.checked_sub(then)), ..span }
    }
}
