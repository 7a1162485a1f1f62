//! What a request costs the server, seen from outside.
//!
//! Counters of the server are read around windows of load of different lengths at the same rate; the regression of their
//! growth on the requests is the cost per request. Which counters is open: [`sheet`] takes any that count upwards.

pub mod callgrind;
pub mod collections;
pub mod find;
pub mod instructions;
pub mod sampled;
pub mod sheet;
pub mod start;
pub mod syscalls;
pub mod threads;
pub mod tree;
mod unseen;
