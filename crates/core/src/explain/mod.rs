//! Finds where in the code the difference of two profiles originates.
//!
//! Two call trees with exact counts are mapped to common functions ([`matching`]) and merged. Their difference is
//! divided among the functions in which it originates ([`decompose`]): by the function's own cost, and by how often it
//! calls others. The parts add up to the whole difference. A function whose machine code is the same in both programs
//! cannot be the origin; its part is attributed to the nearest caller whose code changed.

mod allocator;
mod by_edges;
mod by_function;
mod collector;
mod context_differences;
mod decompose;
mod keyed_tree;
mod matching;
mod merged;
mod names;
mod noise;
mod ranking;
mod recursion;

pub use allocator::is_entry_of_allocator;
pub use by_function::{ComparedProgram, DifferencePart, Explanation, FunctionDifference, PartKind, explain};
pub use context_differences::{ContextDifference, differences};
pub use matching::{Key, Matched};
pub use names::{
    NameBracket, NestedLetter, group, is_allocator, is_library, nested, normal, restore_names_of_packages,
};
pub use noise::{CANCELLED, mean_with_spread};
pub use recursion::below_themselves;

use crate::harmless_text::plain;
use crate::words::words;
use serde::{Deserialize, Serialize};

words! {
    /// What is counted in each calling context.
    pub enum Count {
        /// Executed instructions.
        Instructions = "instructions",
        /// Allocations of memory.
        Allocations = "allocations",
        /// Bytes of memory that were requested.
        Bytes = "bytes allocated",
        /// Bytes that were in use when the process had its most bytes in use.
        AtPeak = "bytes in use at the peak",
        /// Bytes that were in use when the process ended.
        AtEnd = "bytes in use at the end",
        /// Blocks of memory that were freed.
        Frees = "frees",
    }
}

impl Count {
    /// Whether it counts what is in use at one moment, and not what happens during the run.
    pub fn is_live(self) -> bool {
        matches!(self, Count::AtPeak | Count::AtEnd)
    }
}

/// The module of the functions in the program's own file, whatever that file is called.
pub const PROGRAM: &str = "program";

/// The module of code that is in no file.
pub const GENERATED: &str = "code that the program generated";

/// Names code of a module that has no name itself.
///
/// ```
/// use scruple_core::explain::{GENERATED, nameless};
/// assert_eq!(nameless("libz.so"), "code of libz.so without a name");
/// assert_eq!(nameless(GENERATED), "code that the program generated");
/// ```
pub fn nameless(module: &str) -> String {
    if module == GENERATED { GENERATED.to_owned() } else { format!("code of {module} without a name") }
}

/// A function of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The file that contains the function, normalised so that the file has the same name in other versions.
    pub module: String,
    /// The name of the function without what compilers add, see [`normal`]; empty where it has none.
    pub name: String,
    /// The name of the function as its language writes it.
    pub shown: String,
    /// The other names of the function, like [`Function::name`], in order: a function with an alias in its source has
    /// some, and so has one into which the linker folded others with the same code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether the function belongs to the library of its language, compiled into the program.
    pub library: bool,
    /// Whether the function is a trampoline: it only passes control on between functions that jump to each other, so it
    /// does not count as a caller.
    pub trampoline: bool,
}

impl Function {
    /// Returns all names of the function, the main one first.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        [&self.name].into_iter().chain(&self.aliases)
    }

    /// Returns the function with harmless names: they come from files, and may contain anything.
    pub fn harmless(self) -> Function {
        let Function { module, name, shown, aliases, .. } = &self;
        let aliases = aliases.iter().map(|name| plain(name)).collect();
        Function { module: plain(module), name: plain(name), shown: plain(shown), aliases, ..self }
    }
}

/// A calling context: a function as it was called along one path of callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The index of the context of the caller, which precedes this one; absent for the root.
    pub parent: Option<usize>,
    /// The index of the function.
    pub function: usize,
    /// The number of calls from the parent.
    pub calls: u64,
    /// The number of recursive calls: calls of this context from contexts below it.
    pub recursive: u64,
    /// The context's own cost, without its callees.
    pub cost: OwnCost,
}

/// The own cost of a context, without its callees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCost {
    /// The number of executed instructions.
    pub instructions: u64,
    /// The number of allocations.
    pub allocations: u64,
    /// The number of bytes requested.
    pub bytes: u64,
    /// The requested bytes of its blocks that were in use at the peak; 0 if live blocks were not counted.
    pub at_peak: u64,
    /// The requested bytes of its blocks that were in use at the end; 0 if live blocks were not counted.
    pub at_end: u64,
    /// The number of blocks freed.
    pub frees: u64,
}

impl OwnCost {
    /// Adds another cost. A sum that is too large stays at the largest number.
    pub fn add(&mut self, more: OwnCost) {
        self.instructions = self.instructions.saturating_add(more.instructions);
        self.allocations = self.allocations.saturating_add(more.allocations);
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.at_peak = self.at_peak.saturating_add(more.at_peak);
        self.at_end = self.at_end.saturating_add(more.at_end);
        self.frees = self.frees.saturating_add(more.frees);
    }

    /// The value of the given count.
    pub fn of(&self, count: Count) -> u64 {
        match count {
            Count::Instructions => self.instructions,
            Count::Allocations => self.allocations,
            Count::Bytes => self.bytes,
            Count::AtPeak => self.at_peak,
            Count::AtEnd => self.at_end,
            Count::Frees => self.frees,
        }
    }
}

/// All calling contexts of a program: the root first, and parents before their children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// The functions of the program.
    pub functions: Vec<Function>,
    /// The calling contexts.
    pub contexts: Vec<Context>,
    /// The calls between functions, where it is not known in which contexts they were made. Contexts do not matter then:
    /// those of callgrind are directly below the program, and those of JavaScript are divided by the calls.
    #[serde(skip)]
    pub edges: Vec<Edge>,
    /// Whether a recursive call leads back only to a context that the same function has called, so that a path contains the
    /// call of one function by another at most once. Otherwise a path contains a function at most once.
    #[serde(default)]
    pub folds_by_call: bool,
    /// Recursive calls: the calling context, the called context above it, and the number of calls. Empty where it is not
    /// known which context made them.
    #[serde(default)]
    pub recursive: Vec<(usize, usize, u64)>,
}

/// The calls of one function by another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    /// The index of the function that calls.
    pub caller: usize,
    /// The index of the function that is called.
    pub callee: usize,
    /// The number of calls.
    pub calls: u64,
}

impl Tree {
    /// The sum of a count over all contexts.
    pub fn total(&self, count: Count) -> u64 {
        self.contexts.iter().fold(0, |sum, context| sum.saturating_add(context.cost.of(count)))
    }
}

/// Says whether functions of the first tree and functions of the second have the same code; `None` where that is
/// unknown.
pub type Same<'a> = dyn Fn(&[usize], &[usize]) -> Option<bool> + 'a;

/// Comparisons of the machine code of functions of both trees.
pub struct CodeComparison<'a> {
    /// Whether functions of the first tree and their counterparts in the second have the same code as far as it was
    /// executed; `None` where they cannot be compared. If only one tree has the functions: whether the other program
    /// contains them, too, as a file that both use does.
    pub same: &'a Same<'a>,
    /// The share of the code of a function of the first tree that a function of the second contains, from 0 to 1.
    pub likeness: &'a dyn Fn(usize, usize) -> f64,
    /// Whether a function of the first tree and one of the second are known to be two functions, because one of the
    /// programs has both, though it may not have executed one of them.
    pub are_two: &'a dyn Fn(usize, usize) -> bool,
}

#[cfg(test)]
mod tests;
