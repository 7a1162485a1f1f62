//! The data that the tool writes: profiles of processes, contexts, functions and runs of instructions.

use crate::allocation_sites::MemoryBlocks;
use scruple_core::explain::below_themselves;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The profiles of one launch: one for each part of each process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profiles {
    /// The profiles, sorted by process and part.
    pub processes: Vec<Profile>,
    /// Copies of counts that a process was asked for and that it continued. They are also in the next part of the
    /// process, unless its counts were reset in between.
    pub dumps: Vec<Profile>,
    /// The ids of processes that were killed, whose counts are lost.
    pub lost: Vec<i32>,
    /// The ids of killed processes that had executed a program in which the tool did not start.
    pub unstarted: Vec<i32>,
    /// The number of processes that outlived the program. They were ended, and are counted until then.
    pub left_behind: u32,
}

/// Something that a process did and that another program may notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenEffect {
    /// A moment before the action and one after it, in microseconds since 1970. Programs that work at the same time may
    /// have acted in either order if these moments overlap.
    pub between: [u64; 2],
    /// What it did, in words.
    pub what: String,
}

impl SeenEffect {
    /// Whether this action was before another one; `None` if that is unknown.
    pub fn is_before(&self, other: &SeenEffect) -> Option<bool> {
        let [before, after] = self.between;
        let [before_other, after_other] = other.between;
        match (after < before_other, after_other < before) {
            (false, false) => None,
            (is_before, _) => Some(is_before),
        }
    }
}

/// The counts of one process until it ended, executed another program, or was asked to write its counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The process id.
    pub process: i32,
    /// The id of the parent process.
    pub parent: i32,
    /// Whether the process is a copy of its parent that executed no program: its contexts continue those of the parent.
    pub is_forked: bool,
    /// The number of the part, counted within the process.
    pub part: u32,
    /// The program's command line.
    pub words: Vec<String>,
    /// The name that the program or a controlling process gave to this part.
    pub label: Option<String>,
    /// What the process did, in words, that another program may notice: it changed files, took locks, used sockets.
    pub effect: Option<SeenEffect>,
    /// The path of a file that the process found, and that an earlier run had left or changed.
    pub leftover: Option<String>,
    /// Why this part ends.
    pub end: End,
    /// The number of all instructions.
    pub total: u64,
    /// The context tree: parents before children, the root first. It is empty if only the total was counted.
    pub contexts: Vec<ProfileContext>,
    /// Recursive calls that return to a context on the path.
    pub recursive: Vec<RecursiveCalls>,
    /// Whether only a call by the same function returns to such a context, so that a recursive function has further
    /// contexts on the path; see [`scruple_core::explain::Tree::folds_by_call`].
    pub folds_by_call: bool,
    /// Calls between functions, if a tool counted that has no calling contexts.
    pub calls: Vec<Calls>,
    /// Functions; contexts and runs refer to them by index.
    pub functions: Vec<ProfileFunction>,
    /// Instruction counts by address.
    pub runs: Vec<InstructionRun>,
    /// Whether only the total was counted.
    pub total_only: bool,
    /// The number of entry points of allocators that were found. If it is 0, allocations could not be counted.
    pub heap_functions: u32,
    /// Calls to functions whose context is below the root, without their callers, because there are too many contexts.
    /// It is 0 only if there are none.
    pub cut: u64,
    /// The live blocks, if they were counted in place of instructions. Then there are only the contexts that lead to
    /// allocations, and a function has one for each place from which it is called.
    pub live: Option<LiveBlocks>,
}

/// The live blocks of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveBlocks {
    /// For some contexts, by index: the blocks that were live at the peak, and at the end.
    pub contexts: HashMap<usize, (MemoryBlocks, MemoryBlocks)>,
    /// For some contexts, by index: the file and the address after the call that led to the context.
    pub calls: HashMap<usize, (Option<String>, u64)>,
    /// All blocks at the peak.
    pub peak: MemoryBlocks,
    /// The number of instructions that were executed until the peak.
    pub peak_at: u64,
    /// All blocks at the end.
    pub end: MemoryBlocks,
    /// The blocks with which a forked process began.
    pub inherited: MemoryBlocks,
    /// The number of blocks that were given out again although no known function had freed them.
    pub reused: u64,
    /// The number of calls of an allocator that were not seen to return, so that their blocks are not known.
    pub unseen: u64,
    /// Executed instructions, and the most live bytes in an interval around them.
    pub course: Vec<(u64, u64)>,
}

/// Why a part ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The process ended.
    #[default]
    Exit,
    /// The process executed another program.
    Exec,
    /// The program, or a controlling process, asked for another part to begin.
    Request,
    /// The program, or a controlling process, asked for a copy of the counts; the part does not end.
    Dump,
}

/// A function in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProfileFunction {
    /// The symbol; `None` if no symbol covers the code.
    pub name: Option<String>,
    /// The path of the file; `None` for code that the program generated.
    pub object: Option<String>,
    /// The start address, as the file numbers addresses. Without a symbol it comes from the file's unwinding table;
    /// where that does not cover the code either, it is the address of a call's target, and no run names the function.
    pub offset: u64,
}

/// A calling context: a function with the path of calls that led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileContext {
    /// The index of the caller's context; `None` for the root.
    pub parent: Option<usize>,
    /// The index of the function; `None` for the root and for interruptions by signals.
    pub function: Option<usize>,
    /// The number of calls from the parent.
    pub calls: u64,
    /// Instructions executed in this context, without those of callees.
    pub own: u64,
    /// Allocations made in this context, without those of callees.
    pub heap: HeapCounts,
}

/// Allocations, by the rules of Valgrind's memcheck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapCounts {
    /// The number of allocated blocks.
    pub allocations: u64,
    /// The number of bytes requested.
    pub bytes: u64,
    /// The number of freed blocks.
    pub frees: u64,
}

/// Calls from one context to another that is above it on the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecursiveCalls {
    /// The index of the caller's context.
    pub from: usize,
    /// The index of the called function's context.
    pub to: usize,
    /// The number of calls.
    pub calls: u64,
}

/// Calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The index of the function that calls.
    pub caller: usize,
    /// The index of the function that is called.
    pub callee: usize,
    /// The number of calls.
    pub calls: u64,
}

/// Successive instructions that are always executed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionRun {
    /// The index of the function; `None` if neither a symbol nor an unwinding table covers the code.
    pub function: Option<usize>,
    /// The path of the file; `None` for code that the program generated.
    pub object: Option<String>,
    /// The address of the first instruction, as the file numbers addresses.
    pub offset: u64,
    /// The length of each instruction in bytes.
    pub lengths: Vec<u8>,
    /// How often the run was executed.
    pub count: u64,
}

/// The counts of one function, summed over all its contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionTotals {
    /// Instructions of the function itself.
    pub own: u64,
    /// Instructions of the function and of its callees.
    pub inclusive: u64,
    /// The number of calls, including recursive ones.
    pub calls: u64,
    /// Allocations by the function itself.
    pub heap: HeapCounts,
}

impl std::ops::AddAssign for HeapCounts {
    fn add_assign(&mut self, other: HeapCounts) {
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.frees = self.frees.saturating_add(other.frees);
    }
}

impl Profiles {
    /// The number of instructions of all processes.
    pub fn total(&self) -> u64 {
        self.processes.iter().map(|profile| profile.total).sum()
    }

    /// The number of different processes.
    pub fn count(&self) -> usize {
        let mut ids: Vec<i32> = self.processes.iter().map(|profile| profile.process).collect();
        ids.dedup_by(|one, other| one == other && *one != 0);
        ids.len()
    }

    /// The parts to which the program gave a name, in their order; copies follow the parts that ended.
    pub fn named_parts(&self) -> impl Iterator<Item = (&str, &Profile)> {
        let all = self.processes.iter().chain(&self.dumps);
        all.filter_map(|profile| Some((profile.label.as_deref()?, profile)))
    }

    /// The first effect of one of the processes that another program may notice.
    pub fn effect(&self) -> Option<&SeenEffect> {
        self.processes
            .iter()
            .filter_map(|profile| profile.effect.as_ref())
            .min_by_key(|effect| effect.between)
    }

    /// The path of a file that one of the processes found, and that an earlier run had left or changed.
    pub fn leftover(&self) -> Option<&str> {
        self.processes.iter().find_map(|profile| profile.leftover.as_deref())
    }

    /// The allocations of all processes; `None` if no process has a known allocator.
    pub fn heap(&self) -> Option<HeapCounts> {
        let seen = self.processes.iter().filter(|profile| profile.heap_functions > 0);
        seen.map(Profile::heap).reduce(|mut sum, heap| {
            sum += heap;
            sum
        })
    }
}

impl Profile {
    /// The allocations of the process.
    pub fn heap(&self) -> HeapCounts {
        let mut sum = HeapCounts::default();
        for context in &self.contexts {
            sum += context.heap;
        }
        sum
    }

    /// For each context, its instructions including those of the contexts below it.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = self.contexts.iter().map(|context| context.own).collect();
        for at in (0..self.contexts.len()).rev() {
            if let Some(parent) = self.contexts[at].parent {
                sums[parent] += sums[at];
            }
        }
        sums
    }

    /// The parent of each context.
    pub fn parents(&self) -> Vec<Option<usize>> {
        self.contexts.iter().map(|context| context.parent).collect()
    }

    /// The counts of each function, summed over its contexts.
    pub fn functions(&self) -> HashMap<&ProfileFunction, FunctionTotals> {
        let mut totals: HashMap<&ProfileFunction, FunctionTotals> = HashMap::new();
        let functions: Vec<Option<usize>> = self.contexts.iter().map(|context| context.function).collect();
        let below = below_themselves(&self.parents(), &functions);
        for ((context, inclusive), is_below) in self.contexts.iter().zip(self.inclusive()).zip(below) {
            let Some(function) = context.function else { continue };
            let sums = totals.entry(&self.functions[function]).or_default();
            sums.own += context.own;
            // The outermost call of a function includes what its recursive calls cost.
            if !is_below {
                sums.inclusive += inclusive;
            }
            sums.calls = sums.calls.saturating_add(context.calls);
            sums.heap += context.heap;
        }
        for call in &self.recursive {
            if let Some(function) = self.contexts[call.to].function {
                let sums = totals.entry(&self.functions[function]).or_default();
                sums.calls = sums.calls.saturating_add(call.calls);
            }
        }
        totals
    }

    /// The functions on the path from the root to a context, outermost first; `None` stands for an interruption by a
    /// signal.
    pub fn path(&self, context: usize) -> Vec<Option<&ProfileFunction>> {
        let mut path = Vec::new();
        let mut at = Some(context);
        while let Some(index) = at {
            let context = &self.contexts[index];
            if context.parent.is_some() {
                path.push(context.function.map(|function| &self.functions[function]));
            }
            at = context.parent;
        }
        path.reverse();
        path
    }
}
