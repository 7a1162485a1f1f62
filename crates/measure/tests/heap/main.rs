//! The allocation counter against programs whose allocations are known by construction, and against valgrind.
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
mod threads;
mod tree;
mod valgrind;
