//! Where in the code the difference of two profiles comes from.
//!
//! Two call trees with exact counts are brought to common functions ([`matching`]), merged, and their difference is
//! divided among the functions in which it originates ([`decompose`]): what a function does itself, and how often it calls
//! others. The parts add up to the whole difference. A function whose machine code is the same in both cannot be the
//! origin; its part belongs to the nearest caller whose code is not.

mod by_function;
mod decompose;
mod flame;
mod matching;
mod merged;
mod names;
mod noise;

pub use by_function::{Explanation, FunctionDifference, Part, PartKind, Which, explain};
pub use flame::{Difference, differences};
pub use matching::Matched;
pub use names::{group, is_library, normal};
pub use noise::settled;

use crate::words::words;

words! {
    /// What is counted, in each calling context.
    pub enum Count {
        /// Instructions.
        Instructions = "instructions",
        /// Allocations.
        Allocations = "allocations",
        /// Bytes asked for.
        Bytes = "bytes allocated",
    }
}

/// A function of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The file that it is in, so that the same file of another version has the same name.
    pub module: String,
    /// Its name without what compilers add, see [`normal`]; empty where it has none.
    pub name: String,
    /// Its name as its language writes it.
    pub shown: String,
    /// Whether it is of the language's own library, compiled into the program.
    pub library: bool,
    /// Whether it only passes control on to functions that jump to each other, so that it does not count as a caller.
    pub trampoline: bool,
}

/// A calling context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The caller's context, which stands before it; none for the root.
    pub parent: Option<usize>,
    /// The function.
    pub function: usize,
    /// Calls from the parent.
    pub calls: u64,
    /// Calls that came back to this context from below.
    pub recursive: u64,
    /// What it cost itself.
    pub cost: Cost,
}

/// What a context cost itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions.
    pub instructions: u64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

impl Cost {
    /// One of the counts.
    pub fn of(&self, count: Count) -> u64 {
        match count {
            Count::Instructions => self.instructions,
            Count::Allocations => self.allocations,
            Count::Bytes => self.bytes,
        }
    }
}

/// All calling contexts of a program, the root first, parents before children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The functions.
    pub functions: Vec<Function>,
    /// The contexts.
    pub contexts: Vec<Context>,
}

impl Tree {
    /// The sum of a count over all contexts.
    pub fn total(&self, count: Count) -> u64 {
        self.contexts.iter().fold(0, |sum, context| sum.saturating_add(context.cost.of(count)))
    }
}

/// Whether functions of the first tree and functions of the second are the same; none where that cannot be told.
pub type Same<'a> = dyn Fn(&[usize], &[usize]) -> Option<bool> + 'a;

/// What is known of the machine code of functions of both trees.
pub struct Code<'a> {
    /// Whether functions of the first tree and functions of the second, which are versions of each other, have the same
    /// code as far as it was executed; none where it cannot be compared.
    pub same: &'a Same<'a>,
    /// How much of the code of a function of the first tree is in one of the second, from 0 to 1.
    pub likeness: &'a dyn Fn(usize, usize) -> f64,
}

#[cfg(test)]
mod tests;
