//! Measures on other machines: writes the work into units, has a farm do them, and combines their results.
//!
//! The data flow is plan → measure → store → judge. A unit ([`unit_data`]) is a file, and its result is another file.
//! Only existing results show which units are done: a farm may do a unit twice, and the first result stands. Slurm or
//! GNU parallel manages the queue; this module contains none.

pub mod args;
pub mod batch;
pub mod config;
pub mod dispatch;
mod do_command_line;
pub mod do_unit;
pub mod folder;
pub mod machine_classes;
pub mod merge;
pub mod same_version;
pub mod send_command_line;
#[cfg(test)]
mod simulation;
pub mod this_node;
pub mod two_versions;
pub mod unit_data;

pub use dispatch::Farm;
