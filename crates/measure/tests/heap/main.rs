//! Tests the allocation counter on programs with known allocations, and against valgrind.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod allocators;
mod counts;
mod environment;
mod harness;
mod live;
mod measurable;
mod missing;
mod processes;
mod sessions;
mod sites;
mod sites_of_dhat;
mod threads;
mod tree;
mod valgrind;
