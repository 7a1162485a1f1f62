//! The counts of the living threads of a process tree. When a thread ends, the kernel discards its waiting time and
//! its switches, but not its processor time. So the processor time of ended threads shows how much is missing.

use crate::process_stat::number_of_line;
use scruple_stats::sorting::SortedMap;
use std::fs;
use std::path::Path;

/// The counts of one thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// Processor time in nanoseconds.
    pub cpu: u64,
    /// The time in which the thread was ready but waited for a core, in nanoseconds.
    pub waited: u64,
    /// Voluntary and involuntary context switches.
    pub switches: (u64, u64),
}

/// The counts of all living threads at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LivingThreads {
    /// The counts of each thread, by process id and thread id.
    each: SortedMap<(i32, i32), ThreadCounts>,
    /// The processor time of the tree in nanoseconds, including ended threads.
    pub cpu: u64,
}

/// The counts of threads between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedThreads {
    /// The counts of all threads that were seen.
    pub seen: ThreadCounts,
    /// The processor time in nanoseconds of threads and processes that were not seen, because they started and ended
    /// between two readings.
    pub unseen: u64,
}

impl LivingThreads {
    /// Adds the threads of a process. A thread that ends while it is read is left out.
    pub(super) fn add(&mut self, pid: i32) {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let Some(id) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if let Some(counts) = ThreadCounts::read(&thread.path()) {
                self.each.insert((pid, id), counts);
            }
        }
    }

    /// The sum over all threads.
    pub fn sum(&self) -> ThreadCounts {
        self.each.values().fold(ThreadCounts::default(), |sum, counts| sum.plus(*counts))
    }

    /// The counts since `before`. Threads that started since then count from 0. `at_end` was read earlier than
    /// `self`, while threads were alive that have ended since, such as those of connections that were closed in
    /// between.
    pub fn since(&self, before: &LivingThreads, at_end: &LivingThreads) -> CountedThreads {
        let mut last = at_end.each.clone();
        for (id, counts) in &self.each {
            let last = last.entry(*id).or_default();
            *last = last.most(*counts);
        }
        let growth = |threads: &SortedMap<(i32, i32), ThreadCounts>| {
            let of = |(id, counts): (&(i32, i32), &ThreadCounts)| {
                counts.less(before.each.get(id).copied().unwrap_or_default())
            };
            threads.iter().map(of).fold(ThreadCounts::default(), ThreadCounts::plus)
        };
        let all = at_end.cpu.saturating_sub(before.cpu);
        CountedThreads { seen: growth(&last), unseen: all.saturating_sub(growth(&at_end.each).cpu) }
    }
}

impl ThreadCounts {
    /// Reads the counts of a thread; `None` if it has ended.
    fn read(folder: &Path) -> Option<ThreadCounts> {
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let (times, status) = (text("schedstat")?, text("status")?);
        let mut times = times.split_whitespace().map_while(|word| word.parse().ok());
        let switches = |kind: &str| number_of_line(&status, &format!("{kind}_ctxt_switches"));
        Some(ThreadCounts {
            cpu: times.next()?,
            waited: times.next()?,
            switches: (switches("voluntary")?, switches("nonvoluntary")?),
        })
    }

    /// The later of two readings of one thread, by value: a thread that is just ending may be read with counts of 0.
    fn most(self, other: ThreadCounts) -> ThreadCounts {
        ThreadCounts {
            cpu: self.cpu.max(other.cpu),
            waited: self.waited.max(other.waited),
            switches: (self.switches.0.max(other.switches.0), self.switches.1.max(other.switches.1)),
        }
    }

    fn plus(self, other: ThreadCounts) -> ThreadCounts {
        ThreadCounts {
            cpu: self.cpu + other.cpu,
            waited: self.waited + other.waited,
            switches: (self.switches.0 + other.switches.0, self.switches.1 + other.switches.1),
        }
    }

    fn less(self, other: ThreadCounts) -> ThreadCounts {
        ThreadCounts {
            cpu: self.cpu.saturating_sub(other.cpu),
            waited: self.waited.saturating_sub(other.waited),
            switches: (
                self.switches.0.saturating_sub(other.switches.0),
                self.switches.1.saturating_sub(other.switches.1),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn living(cpu: u64, threads: &[(i32, u64)]) -> LivingThreads {
        let counts = |n: u64| ThreadCounts { cpu: n, waited: 2 * n, switches: (n, 0) };
        LivingThreads { each: threads.iter().map(|(id, n)| ((1, *id), counts(*n))).collect(), cpu }
    }

    #[test]
    fn threads_that_are_born_and_die_with_their_connection_are_counted() {
        let before = living(100, &[(1, 100)]);
        let at_end = living(400, &[(1, 150), (2, 200), (3, 50)]);
        let found = living(410, &[(1, 155)]).since(&before, &at_end);
        assert_eq!((found.seen.switches.0, found.seen.waited, found.unseen), (305, 610, 0));
    }

    #[test]
    fn a_thread_that_was_read_while_it_ended_keeps_what_it_had() {
        let before = living(100, &[(1, 100)]);
        let at_end = living(300, &[(1, 100), (2, 200)]);
        let found = living(310, &[(1, 100), (2, 0)]).since(&before, &at_end);
        assert_eq!((found.seen.switches.0, found.seen.cpu, found.unseen), (200, 200, 0));
    }

    #[test]
    fn unseen_threads_are_known_by_their_processor_time() {
        let before = living(100, &[(1, 100), (7, 90)]);
        let at_end = living(400, &[(1, 150)]);
        let found = at_end.since(&before, &at_end);
        assert_eq!((found.seen.cpu, found.unseen), (50, 250));
    }
}
