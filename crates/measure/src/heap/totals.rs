//! The counts of a session.

use super::Peak;

/// Everything one session has counted.
#[derive(Clone, Debug)]
pub struct Totals {
    /// What was recorded.
    pub mode: Peak,
    /// One record for each program image and each forked copy that allocated or freed, in the order in which they
    /// started.
    pub processes: Vec<Process>,
    /// Programs that counted processes started and that did not load the counter: their allocations are missing.
    pub unseen: Vec<Unseen>,
    /// Counts of threads and processes for which no record could be made: part of the sums, but of no record.
    pub unattributed: Counts,
    /// The number of these threads and processes.
    pub refused: u32,
    /// The most that all processes together had in use at one time; none where it was not recorded.
    pub tree: Option<TreePeak>,
}

/// The peak of all processes of a tree together. Memory that a forked process inherited counts once, for its parent,
/// and memory of a process that has ended no longer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePeak {
    /// Bytes, usable or requested depending on [`Totals::mode`].
    pub peak: u64,
    /// The possible error: 0 where one thread was alive at a time, else 64 KiB for every further one.
    pub error: u64,
}

/// The counts of one process since it was started or forked.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// The id of the process that started it.
    pub parent: i32,
    /// How it started.
    pub origin: Origin,
    /// Path of the program (the last 127 bytes of a longer one).
    pub exe: String,
    /// Threads that ever allocated or freed.
    pub threads: u32,
    /// Whether the program gets memory from an allocator that the counter cannot intercept: those calls are missing.
    pub foreign_malloc: bool,
    /// The counts.
    pub counts: Counts,
}

/// How a process started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A program was loaded.
    Exec,
    /// A process copied itself, and with it its live blocks.
    Fork,
}

/// A program that was started and left no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The process.
    pub pid: i32,
    /// The program, as its parent named it (the last 111 bytes of a longer name).
    pub path: String,
}

/// Calls and bytes. A call that fails does not count, nor does `free(NULL)`; `realloc` of a block is one allocation of
/// the new size and one free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks allocated.
    pub allocations: u64,
    /// Bytes requested for them.
    pub bytes: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Live memory, where it was recorded.
    pub live: Option<Live>,
}

/// Memory in use, usable or requested bytes depending on [`Totals::mode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Bytes freed.
    pub freed: u64,
    /// Bytes in use at the end (or when read). In a forked process this starts with its parent's.
    pub bytes: i64,
    /// The most bytes ever in use.
    pub peak: u64,
    /// The possible error of `peak`: 0 in a process with one thread, else 64 KiB for every further thread that was
    /// alive at the same time.
    pub peak_error: u64,
}

impl Counts {
    /// Blocks allocated minus blocks freed; a forked process frees its parent's blocks too.
    pub fn live_blocks(&self) -> i64 {
        (self.allocations as i64).wrapping_sub(self.frees as i64)
    }

    /// Adds calls and bytes. Live memory is added as if all had been in use at once: an upper bound for the tree.
    pub(super) fn add(&mut self, other: &Counts) {
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.frees = self.frees.saturating_add(other.frees);
        self.live = match (self.live, other.live) {
            (Some(a), Some(b)) => Some(a.plus(&b)),
            (one, other) => one.or(other),
        };
    }
}

impl Live {
    fn plus(&self, other: &Live) -> Live {
        Live {
            freed: self.freed.saturating_add(other.freed),
            bytes: self.bytes.saturating_add(other.bytes),
            peak: self.peak.saturating_add(other.peak),
            peak_error: self.peak_error.saturating_add(other.peak_error),
        }
    }
}

impl Totals {
    /// Sums over all processes. `live` is the sum of the processes' own; [`Totals::largest_peak`] is one that was
    /// certainly reached.
    pub fn counts(&self) -> Counts {
        let mut sum = self.unattributed;
        for process in &self.processes {
            sum.add(&process.counts);
        }
        sum
    }

    /// The process with the highest peak, a lower bound for the tree.
    pub fn largest_peak(&self) -> Option<(&Process, Live)> {
        let peaks = self.processes.iter().filter_map(|process| Some((process, process.counts.live?)));
        peaks.max_by_key(|(_, live)| live.peak)
    }

    /// Threads that ever allocated or freed, over all processes.
    pub fn threads(&self) -> u64 {
        self.processes.iter().map(|process| u64::from(process.threads)).sum()
    }

    /// Whether every program of the tree was counted: none unseen, and none with its own allocator.
    pub fn whole(&self) -> bool {
        self.unseen.is_empty() && !self.processes.iter().any(|process| process.foreign_malloc)
    }
}
