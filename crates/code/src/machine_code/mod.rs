//! The machine code of programs: which functions a file has, what they are called, and whether two are the same.

pub mod aliases;
pub mod binary;
pub mod call_sites;
pub mod code_hashes;
pub mod debug_file;
pub mod demangle;
pub mod fnv;
pub mod folded_functions;
pub mod functions_without_symbol;
pub mod go_names;
pub mod initial_data;
pub mod kept_code;
mod renamed_functions;
pub mod stripped_function;
pub mod symbols;
