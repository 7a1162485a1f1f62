//! Tests the call tree on programs with known calls and allocations, and against callgrind and memcheck.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout)]

mod goroutines;
mod harness;
mod heap;
mod instructions;
mod missing;
mod oracle;
mod parts;
mod scripts;
mod sharing;
mod sites;
mod sources;
mod trees;
