//! The counts of the tool.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The profiles of one launch: one for each part of each process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profiles {
    /// In the order of processes and parts.
    pub processes: Vec<Profile>,
    /// Processes that were killed, whose counts are lost.
    pub lost: Vec<i32>,
}

/// The counts of one process until it ended, executed another program, or was asked for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The process.
    pub process: i32,
    /// Its parent.
    pub parent: i32,
    /// The number of the part.
    pub part: u32,
    /// The program's words.
    pub words: Vec<String>,
    /// The name that the program or a controlling process gave to this part.
    pub label: Option<String>,
    /// Why it ends here.
    pub end: End,
    /// All instructions.
    pub total: u64,
    /// The tree, empty where only the total was counted; parents before children, the root first.
    pub contexts: Vec<Context>,
    /// Calls that return to a context on the path.
    pub recursive: Vec<RecursiveCalls>,
    /// Functions, by the index that contexts and runs use.
    pub functions: Vec<Function>,
    /// Instructions by address.
    pub runs: Vec<Run>,
    /// Whether only the total was counted.
    pub total_only: bool,
    /// Entry points of allocators that were seen. Where there are none, allocations could not be counted.
    pub heap_functions: u32,
    /// Edges to functions that have no context of their own because there are too many.
    pub cut: u64,
}

/// Why a part ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The process ended.
    #[default]
    Exit,
    /// It executed another program.
    Exec,
    /// The program, or a controlling process, requested it.
    Request,
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Function {
    /// The symbol; none where no symbol covers the code.
    pub name: Option<String>,
    /// The file; none for code that the program generated.
    pub object: Option<String>,
    /// Its start, in the file's own addresses.
    pub offset: u64,
}

/// A calling context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The index of the caller's context; none for the root.
    pub parent: Option<usize>,
    /// The index of the function; none for the root and for interruptions by signals.
    pub function: Option<usize>,
    /// Calls from the parent.
    pub calls: u64,
    /// Own instructions of this context.
    pub own: u64,
    /// Its own use of the heap.
    pub heap: Heap,
}

/// Allocations, by the rules of Valgrind's memcheck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heap {
    /// Blocks.
    pub allocations: u64,
    /// Bytes requested.
    pub bytes: u64,
    /// Blocks freed.
    pub frees: u64,
}

/// Calls from one context to another that is above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecursiveCalls {
    /// The caller's.
    pub from: usize,
    /// That of the function that was called.
    pub to: usize,
    /// How many.
    pub calls: u64,
}

/// Instructions that are executed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The index of the function; none where no symbol covers it.
    pub function: Option<usize>,
    /// The file; none for code that the program generated.
    pub object: Option<String>,
    /// The address of the first one, in the file's own addresses.
    pub offset: u64,
    /// The length of each in bytes.
    pub lengths: Vec<u8>,
    /// How often.
    pub count: u64,
}

/// The counts of one function in all its contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionTotals {
    /// Own instructions.
    pub own: u64,
    /// Instructions including callees.
    pub inclusive: u64,
    /// Calls, including recursive ones.
    pub calls: u64,
    /// Its own allocations.
    pub heap: Heap,
}

impl std::ops::AddAssign for Heap {
    fn add_assign(&mut self, other: Heap) {
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.frees = self.frees.saturating_add(other.frees);
    }
}

impl Profiles {
    /// All instructions of all processes.
    pub fn total(&self) -> u64 {
        self.processes.iter().map(|profile| profile.total).sum()
    }

    /// All allocations of all processes; none where no allocator was seen in any of them.
    pub fn heap(&self) -> Option<Heap> {
        let seen = self.processes.iter().filter(|profile| profile.heap_functions > 0);
        seen.map(Profile::heap).reduce(|mut sum, heap| {
            sum += heap;
            sum
        })
    }
}

impl Profile {
    /// All allocations of the process.
    pub fn heap(&self) -> Heap {
        let mut sum = Heap::default();
        for context in &self.contexts {
            sum += context.heap;
        }
        sum
    }

    /// Instructions of each context including those below it. A recursive call is already inside its function.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = self.contexts.iter().map(|context| context.own).collect();
        for at in (0..self.contexts.len()).rev() {
            if let Some(parent) = self.contexts[at].parent {
                sums[parent] += sums[at];
            }
        }
        sums
    }

    /// The sums of each function.
    pub fn functions(&self) -> HashMap<&Function, FunctionTotals> {
        let mut totals: HashMap<&Function, FunctionTotals> = HashMap::new();
        let inclusive = self.inclusive();
        for (context, inclusive) in self.contexts.iter().zip(inclusive) {
            let Some(function) = context.function else { continue };
            let sums = totals.entry(&self.functions[function]).or_default();
            sums.own += context.own;
            sums.inclusive += inclusive;
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

    /// The functions from the root to a context, outermost first; none stands for an interruption by a signal.
    pub fn path(&self, context: usize) -> Vec<Option<&Function>> {
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
