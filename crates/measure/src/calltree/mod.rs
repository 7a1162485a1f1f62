//! Instructions, calls and allocations by calling context, counted exactly by a Valgrind tool of our own.
//!
//! The tool is `instruments/calltree` in the project's tree: a separate program in C under Valgrind's licence, whose
//! sources are embedded and compiled on first use ([`Tool::prepare`]). Where that is not possible, [`ChosenTool`] falls
//! back to callgrind and then to cachegrind, and says why.

mod aliases;
mod binary;
mod call_sites;
mod choose_tool;
mod counted_case;
mod debug_file;
mod demangle;
mod error;
mod flat;
mod fnv;
mod folded_functions;
mod functions_without_symbol;
mod go_names;
mod haskell;
mod initial_data;
mod install;
mod instrument;
mod interpreted;
mod kept_code;
mod live;
mod machine_code;
mod merged_profiles;
mod profile;
mod reader;
mod session;
mod sources;
mod stripped_function;
mod symbols;

pub use binary::{Binaries, ExecutedInstruction};
pub use call_sites::CallSite;
pub use choose_tool::{ChosenTool, ValgrindTool};
pub use counted_case::CountedCase;
pub(crate) use debug_file::DwarfReader;
pub use demangle::demangle;
pub use error::{CalltreeError, Unavailable};
#[cfg(test)]
pub(crate) use flat::of as flat;
pub use functions_without_symbol::name_stripped;
pub(crate) use go_names::go_functions;
pub use haskell::{ClosureTypes, Closures, SourceText, as_built, core_of};
pub use initial_data::Data;
pub use install::Tool;
pub use instrument::Trees;
pub use interpreted::{Language, ScriptCounts, ScriptSession};
pub use machine_code::MachineCode;
pub use merged_profiles::{Side, without_version};
pub use profile::{
    Calls, End, FunctionTotals, HeapCounts, InstructionRun, LiveBlocks, Profile, ProfileContext,
    ProfileFunction, Profiles, RecursiveCalls, SeenEffect,
};
pub use session::{CalltreeSession, CountDetail, LaunchCounts, Settings};
pub use sources::{SourceAmount, SourceCosts};
pub use symbols::{Location, SourceFrame, Symbols};

/// The definition of an instruction. It is shown wherever a count of instructions is shown.
pub const DEFINITION: &str = "instructions in user space of the processor that Valgrind shows to the program; a repeated \
     string instruction counts once for each repetition; the kernel's own are not counted";
