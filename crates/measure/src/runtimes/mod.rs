//! The figures of language runtimes in unmodified programs: bytes allocated, collections, pauses, heap.
//!
//! One small library, the agent, is loaded into every process of the measured tree. It recognises a runtime there when
//! the runtime starts: by the symbols that the program has, or because the runtime reads its own variable. So wrappers
//! make no difference, and a child that executes another program is examined anew. The program and its children see the
//! user's environment, except in `/proc/PID/environ`; standard output and error keep their contents, and runtimes are
//! only asked for what every build grants. Go programs have no C library to load the agent: if one was seen in the
//! tree, processes are stopped at their exit, and the counters of the Go programs are read from their memory.

mod adapter;
mod agent_folder;
mod agent_records;
mod elf;
mod executed_programs;
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
mod wrappers;

pub(crate) use executed_programs::ProgramFiles;
pub use executed_programs::TreePrograms;
pub use figures::{COMMON, LIVE, LIVE_AT_MOST, Merge, RuntimeFigure, RuntimeReport, WITHOUT, recognised};
pub use instrument::{Runtimes, all};
pub use recognise::{Recognised, executed_by, recognise};

/// Declares the runtimes in the order of the agent's numbers (`agent.h`), with the adapter that each runtime's file
/// defines.
macro_rules! runtimes {
    ($($(#[$doc:meta])+ $name:ident = $adapter:path,)+) => {
        /// A language runtime that Scruple recognises.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Runtime {
            $($(#[$doc])+ $name,)+
        }

        /// All runtimes, in the order of the agent's numbers.
        pub const ALL: [Runtime; [$(stringify!($name)),+].len()] = [$(Runtime::$name),+];

        impl Runtime {
            fn adapter(self) -> &'static adapter::Adapter {
                match self {
                    $(Runtime::$name => &$adapter,)+
                }
            }
        }
    };
}

runtimes! {
    /// Haskell, compiled with GHC.
    Ghc = ghc::ADAPTER,
    /// CPython.
    Python = python::ADAPTER,
    /// Guile, and any program with the Boehm-Demers-Weiser collector.
    Guile = guile::ADAPTER,
    /// OCaml, native code and bytecode.
    Ocaml = ocaml::ADAPTER,
    /// Ruby (CRuby).
    Ruby = ruby::ADAPTER,
    /// Node.js.
    Node = node::ADAPTER,
    /// Java virtual machines that have JVMTI: HotSpot.
    Jvm = jvm::ADAPTER,
    /// PHP.
    Php = php::ADAPTER,
    /// Racket CS.
    Racket = racket::ADAPTER,
    /// Lua 5.4.
    Lua = lua::ADAPTER,
    /// R.
    R = r::ADAPTER,
    /// Perl.
    Perl = recognised_only::PERL,
    /// Steel Bank Common Lisp.
    Sbcl = sbcl::ADAPTER,
    /// Erlang and Elixir.
    Erlang = recognised_only::ERLANG_VM,
    /// Go.
    Go = go::ADAPTER,
    /// PyPy.
    Pypy = pypy::ADAPTER,
    /// LuaJIT.
    Luajit = luajit::ADAPTER,
    /// Chez Scheme.
    Chez = recognised_only::CHEZ_SCHEME,
    /// Mono.
    Mono = recognised_only::MONO_VM,
    /// .NET.
    Dotnet = recognised_only::DOTNET_VM,
}
