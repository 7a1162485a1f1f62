//! The peak memory of processes: the kernel's high-water marks, and the launcher's own.

use crate::launcher::PeakMemory;
use crate::process_stat::status_field;
use std::fs;

/// The error of the kernel's high-water marks in bytes: the kernel sums its per-core counters only from time to time.
pub(super) const BLUR: u64 = 1 << 20;

/// Resets the launcher's high-water mark to its current size, where the kernel permits it.
pub(super) fn forget_own_mark() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The peak in an account of a process that was not traced; `None` unless it lies above the launcher's mark, which the
/// account contains because the process started in the launcher's memory.
pub(super) fn own_peak(usage: &libc::rusage) -> Option<u64> {
    // SAFETY: an account of zeros is valid, and the kernel writes one to where the pointer leads.
    let mut own: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let known = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut own) } == 0;
    let (peak, mark) = (usage.ru_maxrss as u64 * 1024, own.ru_maxrss as u64 * 1024);
    (known && peak > mark + BLUR).then_some(peak)
}

/// The launcher's high-water mark.
pub(super) fn own_mark() -> Option<u64> {
    status_field("self", "VmHWM:").map(|peak| peak * 1024)
}

/// Records a process's high-water mark. A process with several threads stops once for each; the highest mark is kept.
pub(super) fn note_peak(thread: libc::pid_t, memory: &mut Vec<PeakMemory>) {
    if let Some(peak) = status_field(thread, "VmHWM:") {
        let pid = status_field(thread, "Tgid:").map_or(thread, |pid| pid as libc::pid_t);
        keep_peak(pid, peak * 1024, memory);
    }
}

/// Keeps the higher one of this peak and the peak that is known of the process, in bytes.
pub(super) fn keep_peak(pid: libc::pid_t, peak: u64, memory: &mut Vec<PeakMemory>) {
    match memory.iter_mut().find(|process| process.pid == pid) {
        Some(process) => process.peak = process.peak.max(peak),
        None => memory.push(PeakMemory { pid, peak }),
    }
}
