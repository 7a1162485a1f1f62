//! The machine code of programs: which functions a file has, what they are called, and whether two are the same.

pub(super) mod aliases;
pub(super) mod binary;
pub(super) mod call_sites;
pub(super) mod code_hashes;
pub(super) mod debug_file;
pub(super) mod demangle;
pub(super) mod fnv;
pub(super) mod folded_functions;
pub(super) mod functions_without_symbol;
pub(super) mod go_names;
pub(super) mod initial_data;
pub(super) mod kept_code;
mod renamed_functions;
pub(super) mod stripped_function;
pub(super) mod symbols;
