//! Starts programs and measures their costs.
//!
//! The only crate that touches the machine, and the only one with `unsafe` code.
#![allow(unsafe_code)]

pub mod bench;
pub mod callgrind;
pub mod calltree;
mod clock;
pub mod command;
pub mod core_speed;
mod descendants;
mod embedded;
pub mod empty_program;
pub mod error_output;
pub mod heap;
pub mod host;
pub mod instructions;
pub mod instrument;
pub mod launcher;
pub mod load;
pub mod loaded_files;
pub mod memory_map;
pub mod own_environment;
pub mod process_stat;
pub mod processor_quota;
pub mod program;
pub mod program_origin;
pub mod runtimes;
pub mod scheduler_waits;
pub mod scripted;
pub mod streams;
mod terminal;
pub mod thread_activity;
pub mod user_folder;
