//! The calling thread of the generator: its set-up and what it consumes.

use super::plan::Plan;

/// Pins the thread, makes its timers precise and requests priority. Returns false if priority was requested and
/// refused.
pub(super) fn configure_thread(plan: &Plan, number: u32) -> bool {
    // SAFETY: plain system calls about the calling thread; the structures are valid when zero and outlive the calls.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64);
        if let Some(core) = plan.threads.cores.get(number as usize % plan.threads.cores.len().max(1))
            && *core < libc::CPU_SETSIZE as usize
        {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(*core, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
        let priority = libc::sched_param { sched_priority: 10 };
        !plan.threads.priority || libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) == 0
    }
}

/// What a thread has consumed; times in nanoseconds.
pub(super) struct ThreadUsage {
    /// Processor time in user mode.
    pub user: u64,
    /// Processor time in the kernel.
    pub system: u64,
    /// The time in which the thread was ready but waited for a core.
    pub waited: u64,
    /// How often the thread was preempted.
    pub preempted: u64,
}

/// What the calling thread has consumed so far.
pub(super) fn thread_usage() -> ThreadUsage {
    // SAFETY: the kernel fills in plain data that is valid when zero.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let nanoseconds = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let waited = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0);
    ThreadUsage {
        user: nanoseconds(usage.ru_utime),
        system: nanoseconds(usage.ru_stime),
        waited,
        preempted: usage.ru_nivcsw as u64,
    }
}
