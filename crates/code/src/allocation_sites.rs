//! Where a process allocates: by calling context, what was allocated, what was in use at the peak and at the end.

use scruple_stats::Interval;
use scruple_stats::sampled_bytes::{self, SampledBytes};
use serde::Serialize;
use std::collections::HashMap;

/// The allocations of one process by calling context. All instruments that find allocation sites fill this type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeapSites {
    /// The process id.
    pub process: i32,
    /// The command line of the process; empty if it is not known.
    pub words: Vec<String>,
    /// The frames, each once; contexts refer to them by index.
    pub frames: Vec<SiteFrame>,
    /// The calling contexts, callers before callees. Those without a caller are the outermost functions.
    pub contexts: Vec<SiteContext>,
    /// The figures of the whole process. If contexts are estimated, these may be known exactly, and then differ from
    /// the sums over the contexts.
    pub total: HeapAmounts,
    /// The blocks that a forked process inherited from its parent.
    pub inherited: MemoryBlocks,
    /// The live bytes over the course of the process.
    pub course: HeapCourse,
    /// How the figures of contexts were found.
    pub counting: SiteCounting,
    /// What the own figures of each context rest on, if they are estimated; else it may be empty.
    pub estimates: Vec<SiteEstimates>,
    /// What is not part of the figures, one phrase each.
    pub unseen: Vec<String>,
}

/// A function, at the place from which it allocates or calls the next function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SiteFrame {
    /// The demangled name; without a symbol, the file and the address.
    pub name: String,
    /// The path of the file that contains the code; `None` for code that the program generated.
    pub object: Option<String>,
    /// The source file, if it is known.
    pub file: Option<String>,
    /// The line in the source file, if it is known.
    pub line: Option<u32>,
}

/// A frame with the path of calls that leads to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteContext {
    /// The index of the caller's context, which is smaller than that of this one; `None` for the outermost function.
    pub parent: Option<usize>,
    /// The index of the frame.
    pub frame: usize,
    /// What the frame itself requested from the allocator, without the functions that it called. Allocators and
    /// functions that only pass requests on have no contexts.
    pub own: HeapAmounts,
}

/// What the own figures of a context rest on, if they are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SiteEstimates {
    /// Of [`HeapAmounts::allocated`].
    pub allocated: SampledBytes,
    /// Of [`HeapAmounts::at_peak`].
    pub at_peak: SampledBytes,
    /// Of [`HeapAmounts::at_end`].
    pub at_end: SampledBytes,
}

/// Blocks of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryBlocks {
    /// The number of blocks.
    pub blocks: u64,
    /// The number of bytes that were requested for them.
    pub bytes: u64,
}

/// The figures of a context or of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HeapAmounts {
    /// All blocks that were allocated: `realloc` of a block counts as one more.
    pub allocated: MemoryBlocks,
    /// The blocks that were in use when the process had its most bytes in use.
    pub at_peak: MemoryBlocks,
    /// The blocks that were in use when the process ended.
    pub at_end: MemoryBlocks,
}

/// The live bytes over the course of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapCourse {
    /// What the first number of a point counts.
    pub unit: CourseUnit,
    /// Points: the position in the course, and the live bytes. Positions rise. One point is that of the peak.
    pub points: Vec<(u64, u64)>,
}

/// What positions in a course count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CourseUnit {
    /// Executed instructions.
    #[default]
    Instructions,
    /// Nanoseconds since the start of the process.
    Nanoseconds,
    /// Bytes that were allocated until then.
    AllocatedBytes,
}

/// How the figures of contexts were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SiteCounting {
    /// Every allocation was counted.
    #[default]
    Exact,
    /// Estimated from samples of the allocations.
    Sampled {
        /// The mean number of allocated bytes between two samples.
        bytes: u64,
        /// The number of samples.
        samples: u64,
    },
}

impl HeapSites {
    /// The sum of the own figures of all contexts.
    pub fn sum(&self) -> HeapAmounts {
        let mut sum = HeapAmounts::default();
        self.contexts.iter().for_each(|context| sum += context.own);
        sum
    }

    /// For each context, its figures including those of its callees.
    pub fn inclusive(&self) -> Vec<HeapAmounts> {
        let mut sums: Vec<HeapAmounts> = self.contexts.iter().map(|context| context.own).collect();
        for at in (0..self.contexts.len()).rev() {
            if let Some(parent) = self.contexts[at].parent {
                let amounts = sums[at];
                sums[parent] += amounts;
            }
        }
        sums
    }

    /// The share of the estimated bytes that the contexts which `belongs` selects have by themselves, with the
    /// probability `level`; `figure` selects the bytes. `None` if figures are not estimated.
    pub fn share(
        &self,
        figure: impl Fn(&SiteEstimates) -> SampledBytes,
        belongs: impl Fn(usize) -> bool,
        level: f64,
    ) -> Option<Interval> {
        let SiteCounting::Sampled { bytes: mean, .. } = self.counting else { return None };
        let (mut part, mut rest) = (SampledBytes::default(), SampledBytes::default());
        for (context, estimates) in self.estimates.iter().enumerate() {
            let sum = if belongs(context) { &mut part } else { &mut rest };
            *sum += figure(estimates);
        }
        Some(sampled_bytes::share(part, rest, mean, level))
    }

    /// The indices of the contexts on the path to a context, outermost first.
    pub fn path(&self, context: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(context), |at| self.contexts[*at].parent).collect();
        path.reverse();
        path
    }
}

impl std::ops::AddAssign for MemoryBlocks {
    fn add_assign(&mut self, other: MemoryBlocks) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl std::ops::AddAssign for HeapAmounts {
    fn add_assign(&mut self, other: HeapAmounts) {
        self.allocated += other.allocated;
        self.at_peak += other.at_peak;
        self.at_end += other.at_end;
    }
}

/// Finds the context of a frame below another one, or adds it, while sites are built.
#[derive(Debug, Default)]
pub struct SiteIndex {
    frames: HashMap<SiteFrame, usize>,
    contexts: HashMap<(Option<usize>, usize), usize>,
}

impl SiteIndex {
    /// Returns the index of the context of `frame`, called from the context `parent`.
    pub fn context(&mut self, sites: &mut HeapSites, parent: Option<usize>, frame: SiteFrame) -> usize {
        let frame = *self.frames.entry(frame).or_insert_with_key(|frame| {
            sites.frames.push(frame.clone());
            sites.frames.len() - 1
        });
        *self.contexts.entry((parent, frame)).or_insert_with(|| {
            sites.contexts.push(SiteContext { parent, frame, own: HeapAmounts::default() });
            sites.contexts.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_added_once_and_its_callers_include_it() {
        let frame = |name: &str| SiteFrame { name: name.to_owned(), ..SiteFrame::default() };
        let mut sites = HeapSites::default();
        let mut index = SiteIndex::default();
        let main = index.context(&mut sites, None, frame("main"));
        let work = index.context(&mut sites, Some(main), frame("work"));
        assert_eq!(index.context(&mut sites, Some(main), frame("work")), work);
        let again = index.context(&mut sites, Some(work), frame("main"));
        assert_ne!(again, main);
        let at_end = MemoryBlocks { blocks: 2, bytes: 30 };
        sites.contexts[again].own.at_end = at_end;
        sites.contexts[work].own.at_end = at_end;
        assert_eq!((sites.frames.len(), sites.path(again)), (2, vec![main, work, again]));
        assert_eq!(sites.sum().at_end, MemoryBlocks { blocks: 4, bytes: 60 });
        assert_eq!(sites.inclusive()[main].at_end, MemoryBlocks { blocks: 4, bytes: 60 });
    }
}
