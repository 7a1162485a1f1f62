//! The counts of a counting session.

use super::LiveBytes;

/// Everything that one session has counted.
#[derive(Clone, Debug)]
pub struct Totals {
    /// What was recorded besides calls and requested bytes.
    pub mode: LiveBytes,
    /// One record for each program image and each forked copy that allocated or freed, in the order in which they
    /// started.
    pub processes: Vec<Process>,
    /// Programs that counted processes started and that did not load the counter. Their allocations are missing.
    pub unseen: Vec<UnrecordedProgram>,
    /// Counts of threads and processes for which there was no room for a record. They are part of the sums only.
    pub unattributed: AllocationCounts,
    /// The number of threads and processes without a record.
    pub refused: u32,
    /// The peak of all processes together; `None` if it was not recorded.
    pub tree: Option<TreePeak>,
}

/// The peak of all processes of a tree together. Memory that a forked process inherited counts once, for its parent,
/// and memory of a process that has ended no longer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePeak {
    /// The peak in bytes, usable or requested depending on [`Totals::mode`].
    pub peak: u64,
    /// The possible error in bytes: 0 if one thread was alive at a time, else 64 KiB for every further thread.
    pub error: u64,
}

/// The counts of one process since it was started or forked.
#[derive(Clone, Debug)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// The id of the process that started it.
    pub parent: i32,
    /// How the process started.
    pub origin: ProcessOrigin,
    /// The path of the program (the last 127 bytes of a longer one).
    pub exe: String,
    /// The number of threads that ever allocated or freed.
    pub threads: u32,
    /// Whether the program uses an allocator that the counter cannot intercept, so that calls are missing.
    pub foreign_malloc: bool,
    /// Whether the allocator does not tell the sizes of its blocks, so that live and peak memory are wrong.
    pub lacks_sizes: bool,
    /// The process's counts.
    pub counts: AllocationCounts,
    /// The unit of its record in the data file.
    pub(super) unit: u32,
    /// The live bytes with which a forked process began.
    pub(super) inherited: i64,
    /// The number of blocks of these.
    pub(super) inherited_blocks: i64,
    /// When it began, in nanoseconds of the monotonic clock; 0 unless sites are recorded.
    pub(super) began: u64,
}

/// How a process started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessOrigin {
    /// The process loaded a program.
    Exec,
    /// The process is a copy of its parent, including the parent's live blocks.
    Fork,
}

/// A program that was started but left no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrecordedProgram {
    /// The process id.
    pub pid: i32,
    /// The path of the program, as its parent named it (the last 111 bytes of a longer one).
    pub path: String,
}

/// The number of calls and of bytes. A failing call and `free(NULL)` do not count; `realloc` of a block counts as one
/// allocation of the new size and one free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationCounts {
    /// The number of blocks allocated.
    pub allocations: u64,
    /// The number of bytes requested.
    pub bytes: u64,
    /// The number of blocks freed.
    pub frees: u64,
    /// Live memory, if it was recorded.
    pub live: Option<LiveMemory>,
}

/// Memory in use, in usable or requested bytes depending on [`Totals::mode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveMemory {
    /// The number of bytes freed.
    pub freed: u64,
    /// The number of bytes in use at the end, or when the counts were read. In a forked process it starts with the
    /// parent's.
    pub bytes: i64,
    /// The largest number of bytes in use at one time.
    pub peak: u64,
    /// The possible error of `peak` in bytes: 0 in a process with one thread, else 64 KiB for every further thread
    /// that was alive at the same time.
    pub peak_error: u64,
}

impl AllocationCounts {
    /// The number of blocks allocated minus blocks freed. It may be negative, since a forked process may free its
    /// parent's blocks.
    pub fn live_blocks(&self) -> i64 {
        (self.allocations as i64).wrapping_sub(self.frees as i64)
    }

    /// Adds calls and bytes. Peaks are added as if all were reached at the same time: an upper bound for the tree.
    pub(super) fn add(&mut self, other: &AllocationCounts) {
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.frees = self.frees.saturating_add(other.frees);
        self.live = match (self.live, other.live) {
            (Some(a), Some(b)) => Some(a.plus(&b)),
            (one, other) => one.or(other),
        };
    }
}

impl LiveMemory {
    fn plus(&self, other: &LiveMemory) -> LiveMemory {
        LiveMemory {
            freed: self.freed.saturating_add(other.freed),
            bytes: self.bytes.saturating_add(other.bytes),
            peak: self.peak.saturating_add(other.peak),
            peak_error: self.peak_error.saturating_add(other.peak_error),
        }
    }
}

impl Totals {
    /// The sums over all processes. `live.peak` is the sum of the processes' peaks; [`Totals::largest_peak`] is a
    /// value that was certainly reached.
    pub fn counts(&self) -> AllocationCounts {
        let mut sum = self.unattributed;
        for process in &self.processes {
            sum.add(&process.counts);
        }
        sum
    }

    /// The process with the highest peak. Its peak is a lower bound for the tree. `None` if a process or thread had no
    /// record, because its peak may have been the highest.
    pub fn largest_peak(&self) -> Option<(&Process, LiveMemory)> {
        if self.refused > 0 {
            return None;
        }
        let peaks = self.processes.iter().filter_map(|process| Some((process, process.counts.live?)));
        peaks.max_by_key(|(_, live)| live.peak)
    }

    /// The number of threads that ever allocated or freed, over all processes.
    pub fn threads(&self) -> u64 {
        self.processes.iter().map(|process| u64::from(process.threads)).sum()
    }

    /// The programs of the tree whose allocations are missing, one phrase each.
    pub fn missing(&self) -> Vec<String> {
        let unseen = self.unseen.iter().map(|unseen| format!("‘{}’ did not load the counter", unseen.path));
        let foreign = self.processes.iter().filter(|process| process.foreign_malloc);
        unseen
            .chain(foreign.map(|process| format!("‘{}’ has an allocator of its own", process.exe)))
            .collect()
    }

    /// Whether every program of the tree was counted: none is unseen, and none has its own allocator.
    pub fn is_complete(&self) -> bool {
        self.unseen.is_empty() && !self.processes.iter().any(|process| process.foreign_malloc)
    }
}
