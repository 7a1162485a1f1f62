//! What the kernel knows of the time of processes, and of how long work waits for a core.

use crate::process_stat::shows_own_namespace;
use std::fs;

/// The first thread's time on a core and its time waiting for one, in nanoseconds. The process may have ended, but
/// must not have been reaped.
pub(super) fn scheduled(pid: libc::pid_t) -> Option<(u64, u64)> {
    let path = Some(format!("/proc/{pid}/schedstat")).filter(|_| shows_own_namespace())?;
    let text = fs::read_to_string(path).ok()?;
    let mut fields = text.split_whitespace().map(str::parse::<u64>);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// How long work has waited for a core since the machine started, averaged over the cores in use, in nanoseconds.
pub(super) fn pressure() -> Option<u64> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

/// A time of the kernel in nanoseconds.
pub(super) fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}
