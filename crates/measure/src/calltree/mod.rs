//! Instructions, calls and allocations by calling context, counted exactly by a Valgrind tool of our own.
//!
//! The tool is `instruments/calltree` in the project's tree: a separate program in C under Valgrind's licence, whose
//! sources are embedded and compiled on first use ([`Tool::prepare`]). Where that is not possible, [`ChosenTool`] falls
//! back to callgrind and then to cachegrind, and says why.

mod choose_tool;
mod counted_case;
mod error;
mod flat;
mod haskell;
mod install;
mod instrument;
mod interpreted;
mod live;
mod machine_code;
mod merged_profiles;
mod profile;
mod reader;
mod session;
mod sources;

pub use choose_tool::{ChosenTool, ValgrindTool};
pub use counted_case::CountedCase;
pub use error::{CalltreeError, Unavailable};
#[cfg(test)]
pub(crate) use flat::of as flat;
pub use haskell::{ClosureTypes, Closures, SourceText, as_built, core_of};
pub use install::Tool;
pub use instrument::Trees;
pub use interpreted::{Language, ScriptCounts, ScriptSession};
pub use machine_code::binary::{Binaries, ExecutedInstruction};
pub use machine_code::call_sites::CallSite;
pub use machine_code::code_hashes::MachineCode;
pub(crate) use machine_code::debug_file::DwarfReader;
pub use machine_code::demangle::demangle;
pub use machine_code::functions_without_symbol::name_stripped;
pub(crate) use machine_code::go_names::go_functions;
pub use machine_code::initial_data::Data;
pub use machine_code::symbols::{Location, SourceFrame, Symbols};
pub use merged_profiles::{Side, without_version};
pub use profile::{
    Calls, End, FunctionTotals, HeapCounts, InstructionRun, LiveBlocks, Profile, ProfileContext,
    ProfileFunction, Profiles, RecursiveCalls, SeenEffect,
};
pub use session::{CalltreeSession, CountDetail, LaunchCounts, Settings};
pub use sources::{SourceAmount, SourceCosts};

/// The definition of an instruction. It is shown wherever a count of instructions is shown.
pub const DEFINITION: &str = "instructions in user space of the processor that Valgrind shows to the program; a repeated \
     string instruction counts once for each repetition; the kernel's own are not counted";
