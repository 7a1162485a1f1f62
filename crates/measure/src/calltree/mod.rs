//! Instructions, calls and allocations by calling context, counted exactly by a Valgrind tool of our own.
//!
//! The tool is `instruments/calltree` in the project's tree: a separate program in C under Valgrind's licence, whose
//! sources are embedded and compiled on first use ([`Tool::prepare`]). Where that is not possible, [`ChosenTool`] falls
//! back to callgrind and then to cachegrind, and says why.

mod choose_tool;
mod counted_case;
mod flat;
mod install;
mod instrument;
mod interpreted;
mod session;
mod unavailable;

pub use choose_tool::{ChosenTool, ValgrindTool};
pub use counted_case::CountedCase;
#[cfg(test)]
pub(crate) use flat::of as flat;
pub use install::Tool;
pub use instrument::Trees;
pub use interpreted::{Language, ScriptCounts, ScriptSession};
pub use session::{CalltreeSession, CountDetail, LaunchCounts, Settings};
pub use unavailable::Unavailable;

/// The definition of an instruction. It is shown wherever a count of instructions is shown.
pub const DEFINITION: &str = "instructions in user space of the processor that Valgrind shows to the program; a repeated \
     string instruction counts once for each repetition; the kernel's own are not counted";
