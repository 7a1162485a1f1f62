//! The code of programs, and profiles of what they executed.
//!
//! [`Symbols`] and [`Binaries`] read program files: which functions they have, what these are called, where their source is,
//! and whether two are the same. [`Profiles`] are what Valgrind's tools wrote about the processes of a run, and a [`Side`]
//! is the sum of a profile's processes with the names of their functions. Nothing here starts a program.
//!
//! It is a crate of its own because tests read megabytes of machine code and of profiles, for which they build it
//! optimised.
#![forbid(unsafe_code)]

pub mod allocation_sites;
mod error;
mod file_digest;
mod haskell;
mod live;
mod machine_code;
mod merged_profiles;
mod profile;
mod reader;
mod sources;

pub use error::CalltreeError;
pub use file_digest::file_digest;
pub use haskell::{ClosureTypes, Closures, SourceText, as_built, core_of};
pub use machine_code::binary::{Binaries, ExecutedInstruction, UNKNOWN};
pub use machine_code::call_sites::CallSite;
pub use machine_code::code_hashes::MachineCode;
pub use machine_code::debug_file::DwarfReader;
pub use machine_code::demangle::demangle;
pub use machine_code::functions_without_symbol::name_stripped;
pub use machine_code::go_names::go_functions;
pub use machine_code::initial_data::Data;
pub use machine_code::symbols::{Location, SourceFrame, Symbols};
pub use merged_profiles::{Side, without_version};
pub use profile::{
    Calls, End, FunctionTotals, HeapCounts, InstructionRun, LiveBlocks, Profile, ProfileContext,
    ProfileFunction, Profiles, RecursiveCalls, SeenEffect,
};
pub use reader::read_all;
pub use sources::{SourceAmount, SourceCosts};
