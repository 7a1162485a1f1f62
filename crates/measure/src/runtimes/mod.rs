//! The figures of language runtimes in unmodified programs: bytes allocated, collections, pauses, heap.
//!
//! One small library, the agent, is loaded into every process of the measured tree and recognises a runtime there, at
//! the moment it starts: by the symbols it brings, or because it asks for its own variable. So wrappers and shims make
//! no difference, and a child that executes something else is recognised again. The environment that the program and
//! its children see is not changed except for `LD_PRELOAD` and `ASAN_OPTIONS`, standard output and error stay what they
//! were, and a runtime is only ever asked for what every build of it grants. Go programs have no C library to load the
//! agent: where one was seen in the tree, processes are stopped at their exit, and their counters are read from their
//! memory.

mod agent_folder;
mod agent_records;
mod elf;
mod figures;
pub mod ghc;
pub mod go;
pub mod guile;
mod instrument;
pub mod jvm;
pub mod lua;
pub mod luajit;
pub mod node;
pub mod ocaml;
pub mod php;
pub mod pypy;
pub mod python;
pub mod r;
pub mod racket;
mod recognise;
mod recognised_only;
pub mod ruby;
pub mod sbcl;
mod stderr_report;
mod table;

pub use figures::{COMMON, Figure, LIVE, Merge, Told};
pub use instrument::Runtimes;
pub use recognise::{Recognised, recognise};
pub use table::{ALL, Runtime};

use crate::instrument::Instrument;

/// The instruments for language runtimes: one, which recognises all of them.
pub fn all() -> Vec<Box<dyn Instrument>> {
    vec![Box::new(Runtimes::new())]
}
