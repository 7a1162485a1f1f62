//! The table of runtimes: each is declared once, by its own file.

use super::agent_records::{Answer, Record};
use super::elf::Elf;
use super::figures::{COMMON, Figure};
use super::{
    ghc, go, guile, jvm, lua, luajit, node, ocaml, php, pypy, python, r, racket, recognised_only, ruby, sbcl,
};

/// A language runtime that is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Runtime {
    /// Haskell, compiled with GHC.
    Ghc = 1,
    /// CPython.
    Python,
    /// Guile, and any program with the Boehm-Demers-Weiser collector.
    Guile,
    /// OCaml, native code and bytecode.
    Ocaml,
    /// Ruby (CRuby).
    Ruby,
    /// Node.js.
    Node,
    /// Java virtual machines that have JVMTI: HotSpot.
    Jvm,
    /// PHP.
    Php,
    /// Racket CS.
    Racket,
    /// Lua 5.4.
    Lua,
    /// R.
    R,
    /// Perl.
    Perl,
    /// Steel Bank Common Lisp.
    Sbcl,
    /// Erlang and Elixir.
    Erlang,
    /// Go.
    Go,
    /// PyPy.
    Pypy,
    /// LuaJIT.
    Luajit,
    /// Chez Scheme.
    Chez,
    /// Mono.
    Mono,
    /// .NET.
    Dotnet,
}

/// Every runtime, in the order of the agent's numbers.
pub const ALL: [Runtime; 20] = [
    Runtime::Ghc,
    Runtime::Python,
    Runtime::Guile,
    Runtime::Ocaml,
    Runtime::Ruby,
    Runtime::Node,
    Runtime::Jvm,
    Runtime::Php,
    Runtime::Racket,
    Runtime::Lua,
    Runtime::R,
    Runtime::Perl,
    Runtime::Sbcl,
    Runtime::Erlang,
    Runtime::Go,
    Runtime::Pypy,
    Runtime::Luajit,
    Runtime::Chez,
    Runtime::Mono,
    Runtime::Dotnet,
];

/// The declaration in a runtime's file.
pub(super) struct Adapter {
    /// Its word in keys, sources and messages.
    pub(super) word: &'static str,
    /// The common metrics that it cannot report, why not, and an alternative.
    pub(super) lacks: &'static [(&'static str, &'static str)],
    /// Recognises it in a file.
    pub(super) find: fn(&Elf) -> Option<Found>,
    /// Reads the record of one of its processes; `answers` are those of the same process.
    pub(super) tell: fn(&Record, &[&Answer]) -> Result<Vec<Figure>, String>,
}

/// How a file was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) version: Option<String>,
    /// The mark by which it was recognised.
    pub(super) by: &'static str,
    /// How it will be queried.
    pub(super) asked: &'static str,
    /// Metrics that this build does not report, beyond what the runtime lacks anyway.
    pub(super) not: Vec<(&'static str, &'static str)>,
}

impl Found {
    pub(super) fn new(version: Option<String>, by: &'static str, asked: &'static str) -> Option<Found> {
        Some(Found { version, by, asked, not: Vec::new() })
    }
}

impl Runtime {
    pub(super) fn adapter(self) -> &'static Adapter {
        match self {
            Runtime::Ghc => &ghc::ADAPTER,
            Runtime::Python => &python::ADAPTER,
            Runtime::Guile => &guile::ADAPTER,
            Runtime::Ocaml => &ocaml::ADAPTER,
            Runtime::Ruby => &ruby::ADAPTER,
            Runtime::Node => &node::ADAPTER,
            Runtime::Jvm => &jvm::ADAPTER,
            Runtime::Php => &php::ADAPTER,
            Runtime::Racket => &racket::ADAPTER,
            Runtime::Lua => &lua::ADAPTER,
            Runtime::R => &r::ADAPTER,
            Runtime::Perl => &recognised_only::PERL,
            Runtime::Sbcl => &sbcl::ADAPTER,
            Runtime::Erlang => &recognised_only::ERLANG_VM,
            Runtime::Go => &go::ADAPTER,
            Runtime::Pypy => &pypy::ADAPTER,
            Runtime::Luajit => &luajit::ADAPTER,
            Runtime::Chez => &recognised_only::CHEZ_SCHEME,
            Runtime::Mono => &recognised_only::MONO_VM,
            Runtime::Dotnet => &recognised_only::DOTNET_VM,
        }
    }

    /// Its word in keys, sources and messages.
    pub fn word(self) -> &'static str {
        self.adapter().word
    }

    /// The runtime of that word.
    pub fn from_word(word: &str) -> Option<Runtime> {
        ALL.into_iter().find(|runtime| runtime.word() == word)
    }

    /// The runtime of the agent's number.
    pub(super) fn from_number(number: u32) -> Option<Runtime> {
        ALL.into_iter().find(|runtime| *runtime as u32 == number && *runtime != Runtime::Go)
    }

    /// Whether it reports this metric.
    pub(super) fn counts(self, key: &str) -> bool {
        match COMMON.contains(&key) {
            true => self.why_not(key).is_none(),
            false => key.strip_prefix(self.word()).is_some_and(|rest| rest.starts_with('.')),
        }
    }

    /// Why it never reports this common metric, with an alternative; none where it does.
    pub fn why_not(self, key: &str) -> Option<&'static str> {
        self.adapter().lacks.iter().find(|(lacking, _)| *lacking == key).map(|(_, why)| *why)
    }

    /// Whether a forked process of it reports totals that contain its parent's, or nothing: for the others the agent
    /// knows the values at the fork.
    pub(super) fn counts_from_its_parent(self) -> bool {
        use Runtime::{Lua, Luajit, Ocaml, Pypy, R, Racket, Sbcl};
        matches!(self, Ocaml | Racket | Lua | Luajit | Pypy | R | Sbcl)
    }

    /// Whether it records when each of its collections starts and ends.
    pub fn tells_when(self) -> bool {
        use Runtime::{Ghc, Go, Guile, Jvm, Node, Python};
        matches!(self, Ghc | Go | Guile | Jvm | Node | Python)
    }

    /// Why it does not report this metric.
    pub(super) fn lacks(self, key: &str) -> String {
        match self.why_not(key) {
            Some(why) => format!("{}: {why}", self.word()),
            None => format!("{} did not tell it this time", self.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_lead_back() {
        for (i, runtime) in ALL.into_iter().enumerate() {
            assert_eq!(runtime as usize, i + 1);
            assert_eq!(Runtime::from_word(runtime.word()), Some(runtime));
        }
        assert_eq!(Runtime::from_number(4), Some(Runtime::Ocaml));
        assert_eq!(Runtime::from_number(0), None);
    }

    #[test]
    fn what_is_lacking_is_a_common_metric_and_has_a_reason() {
        for (key, why) in ALL.into_iter().flat_map(|runtime| runtime.adapter().lacks) {
            assert!(COMMON.contains(key), "{key}");
            assert!(why.len() > 10, "{why}");
        }
    }
}
