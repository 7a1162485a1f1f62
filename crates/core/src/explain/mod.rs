//! Where in the code the difference of two profiles originates.
//!
//! Two call trees with exact counts are mapped to common functions ([`matching`]) and merged. Their difference is
//! divided among the functions in which it originates ([`decompose`]): by a function's own cost, and by how often it
//! calls others. The parts add up to the whole difference. A function whose machine code is the same in both cannot be
//! the origin; its part is attributed to the nearest caller whose code changed.

mod by_function;
mod decompose;
mod flame;
mod matching;
mod merged;
mod names;
mod noise;

pub use by_function::{Explanation, FunctionDifference, Part, PartKind, Which, explain};
pub use flame::{Difference, differences};
pub use matching::{Key, Matched};
pub use names::{group, is_library, normal};
pub use noise::settled;

use crate::words::words;
use serde::{Deserialize, Serialize};

words! {
    /// What is counted, in each calling context.
    pub enum Count {
        /// Instructions.
        Instructions = "instructions",
        /// Allocations.
        Allocations = "allocations",
        /// Bytes requested.
        Bytes = "bytes allocated",
    }
}

/// A function of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The file that it is in, normalised so that the same file of another version has the same name.
    pub module: String,
    /// Its name without what compilers add, see [`normal`]; empty where it has none.
    pub name: String,
    /// Its name as its language writes it.
    pub shown: String,
    /// Whether it belongs to the language's own library, compiled into the program.
    pub library: bool,
    /// Whether it only passes control on to functions that jump to each other, so that it does not count as a caller.
    pub trampoline: bool,
}

/// A calling context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The caller's context, which stands before it; none for the root.
    pub parent: Option<usize>,
    /// The function.
    pub function: usize,
    /// Calls from the parent.
    pub calls: u64,
    /// Calls that returned to this context from below.
    pub recursive: u64,
    /// Its own cost.
    pub cost: Cost,
}

/// The own cost of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Instructions.
    pub instructions: u64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes requested.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Whether functions of the first tree and of the second are the same; none where that is unknown.
pub type Same<'a> = dyn Fn(&[usize], &[usize]) -> Option<bool> + 'a;

/// What is known about the machine code of functions of both trees.
pub struct Code<'a> {
    /// Whether a function of the first tree and its counterpart in the second have the same code as far as it was
    /// executed; none where they cannot be compared.
    pub same: &'a Same<'a>,
    /// The share of the code of a function of the first tree that is in one of the second, from 0 to 1.
    pub likeness: &'a dyn Fn(usize, usize) -> f64,
}

#[cfg(test)]
mod tests;
