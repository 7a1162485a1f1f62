//! Reads the scheduler's record of a process: its last core, and how long it waited for a core.

use crate::process_stat::ProcessStat;
use scruple_stats::sorting::SortedMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The core on which a thread of a process last ran.
pub(crate) fn last_core(process: u32, thread: u32) -> Option<usize> {
    ProcessStat::at(&PathBuf::from(format!("/proc/{process}/task/{thread}")))?.field(39)
}

/// The scheduler's record of a process's living threads, by thread id.
#[derive(Clone, Debug, Default)]
pub struct Threads(SortedMap<u32, Thread>);

/// How long a thread ran, and how long it was ready but waited for a core, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    ran: u64,
    waited: u64,
}

/// What the threads of a program did between two readings, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadTimes {
    /// How long all threads ran.
    pub ran: u64,
    /// How long the busiest thread ran: the one that ran most.
    pub busiest_ran: u64,
    /// How long the busiest thread was ready but waited for a core.
    pub busiest_waited: u64,
    /// How long all threads ran, or were ready but waited for a core.
    pub active: u64,
}

impl Threads {
    /// The threads with these ids, times that they ran, and times that they waited, in nanoseconds.
    pub fn of(threads: impl IntoIterator<Item = (u32, u64, u64)>) -> Threads {
        Threads(threads.into_iter().map(|(id, ran, waited)| (id, Thread { ran, waited })).collect())
    }

    /// What the threads did since an earlier reading.
    pub fn since(&self, before: &Threads) -> ThreadTimes {
        let done = self.0.iter().map(|(id, now)| {
            let then = before.0.get(id).copied().unwrap_or_default();
            let (ran, waited) = (now.ran.saturating_sub(then.ran), now.waited.saturating_sub(then.waited));
            (ran, ran + waited)
        });
        let sum = |(ran, all): (u64, u64), (more, whole)| (ran + more, all + whole);
        let (ran, all) = done.clone().fold((0, 0), sum);
        let (busiest_ran, whole) = done.max().unwrap_or_default();
        ThreadTimes { ran, busiest_ran, busiest_waited: whole - busiest_ran, active: all }
    }

    /// How long one thread was ready but waited for a core since an earlier reading, in nanoseconds; `None` if it is
    /// not among the threads.
    pub fn waited_since(&self, before: &Threads, thread: u32) -> Option<u64> {
        let then = before.0.get(&thread).map_or(0, |then| then.waited);
        self.0.get(&thread).map(|now| now.waited.saturating_sub(then))
    }

    /// The thread that ran most since an earlier reading; `None` if none ran.
    pub(crate) fn busiest_since(&self, before: &Threads) -> Option<u32> {
        let ran = |thread: &u32| self.ran_since(before, *thread);
        self.0.keys().copied().max_by_key(ran).filter(|thread| !ran(thread).is_zero())
    }

    /// How long one thread ran since an earlier reading; zero if it has ended.
    pub(crate) fn ran_since(&self, before: &Threads, thread: u32) -> Duration {
        let ran = |threads: &Threads| threads.0.get(&thread).map_or(0, |thread| thread.ran);
        Duration::from_nanos(ran(self).saturating_sub(ran(before)))
    }
}

/// The threads of a process; `None` if the kernel does not report them.
pub(crate) fn threads(process: u32) -> Option<Threads> {
    let listed = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let of_thread = |path: PathBuf| -> Option<(u32, Thread)> {
        let thread = record(&path.join("schedstat"))?;
        Some((path.file_name()?.to_str()?.parse().ok()?, thread))
    };
    let known: SortedMap<_, _> =
        SortedMap::from_iter(listed.flatten().filter_map(|thread| of_thread(thread.path())));
    (!known.is_empty()).then_some(Threads(known))
}

/// How long the calling thread has waited for a core so far, in nanoseconds; `None` if the kernel does not record it.
pub fn own_wait() -> Option<u64> {
    record("/proc/thread-self/schedstat".as_ref()).map(|thread| thread.waited)
}

fn record(path: &Path) -> Option<Thread> {
    let text = fs::read_to_string(path).ok()?;
    let mut fields = text.split_whitespace().map(str::parse);
    Some(Thread { ran: fields.next()?.ok()?, waited: fields.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_on_a_core_that_there_is() {
        let own = std::process::id();
        let core = last_core(own, own).expect("this process is there");
        let present = fs::read_to_string("/sys/devices/system/cpu/present").expect("the kernel lists cores");
        let most = present.trim().rsplit(['-', ',']).next().and_then(|last| last.parse().ok());
        assert!(core <= most.expect("a number"), "core {core} of {present}");
        assert_eq!(last_core(u32::MAX, u32::MAX), None);
    }

    #[test]
    fn a_process_that_is_gone_has_no_threads() {
        assert!(threads(u32::MAX).is_none());
    }

    #[test]
    fn the_thread_that_ran_most_is_distinguished_from_the_others() {
        let threads = |list: &[(u32, u64, u64)]| Threads::of(list.iter().copied());
        let before = threads(&[(1, 500, 0), (2, 100, 10), (3, 7, 7)]);
        let after = threads(&[(1, 520, 5), (2, 400, 30), (3, 7, 7), (4, 1, 60)]);
        assert_eq!(
            after.since(&before),
            ThreadTimes { ran: 321, busiest_ran: 300, busiest_waited: 20, active: 320 + 25 + 61 }
        );
        assert_eq!((after.busiest_since(&before), after.busiest_since(&after)), (Some(2), None));
        let waited = [1, 4, 5].map(|thread| after.waited_since(&before, thread));
        assert_eq!(waited, [Some(5), Some(60), None]);
    }

    #[test]
    fn the_wait_of_a_thread_never_decreases() {
        let before = own_wait().expect("the kernel records it");
        std::thread::yield_now();
        assert!(own_wait().expect("it still does") >= before);
    }

    #[test]
    fn a_thread_that_works_is_seen_beside_one_that_sleeps() {
        let before = threads(std::process::id()).expect("this process is there");
        let began = std::time::Instant::now();
        while threads(std::process::id()).expect("it still is").since(&before).busiest_ran < 1_000_000 {
            assert!(began.elapsed().as_secs() < 60, "a loop of a minute ran for less than a millisecond");
        }
    }
}
