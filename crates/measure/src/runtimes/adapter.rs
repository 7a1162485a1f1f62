//! The declaration of a runtime, and functions that follow from it.

use super::agent_records::{AgentRecord, HookFile};
use super::elf::{Elf, FileMarks};
use super::figures::{COMMON, LIVE, RuntimeFigure};
use super::{ALL, Runtime};
use std::ffi::OsString;

/// The declaration of a runtime, in the runtime's own file.
pub(super) struct Adapter {
    /// The runtime's name in keys, sources and messages.
    pub(super) word: &'static str,
    /// The common metrics that the runtime cannot report, each with the reason and an alternative.
    pub(super) lacks: &'static [(&'static str, &'static str)],
    /// The symbols and texts that `find` asks for.
    pub(super) marks: FileMarks,
    /// Recognises the runtime in a program's file.
    pub(super) find: fn(&Elf) -> Option<Recognition>,
    /// Reads the record of one process of the runtime; `answers` are the hooks' answers of the same process.
    pub(super) figures_of: fn(&AgentRecord, &[&HookFile]) -> Result<Vec<RuntimeFigure>, String>,
    /// Whether the totals of a forked process contain its parent's counts, or the process reports nothing. For other
    /// runtimes the agent knows the values at the fork.
    pub(super) counts_from_its_parent: bool,
    /// Whether the runtime records when each of its collections starts and ends.
    pub(super) tells_when: bool,
    /// The settings with which the resident size hardly contains memory that nothing uses: names of variables, and what is
    /// added to their values.
    pub(super) for_resident_size: &'static [(&'static str, Setting)],
    /// The name and the text of a file that the agent makes the runtime execute.
    pub(super) hook: Option<(&'static str, &'static str)>,
}

impl Adapter {
    /// A runtime that reports nothing: the base of all declarations.
    pub(super) const SILENT: Adapter = Adapter {
        word: "",
        lacks: &[],
        marks: FileMarks::NONE,
        find: |_| None,
        figures_of: |_, _| Ok(Vec::new()),
        counts_from_its_parent: false,
        tells_when: false,
        for_resident_size: &[],
        hook: None,
    };
}

/// What is done to the value of a variable.
#[derive(Clone, Copy)]
pub(super) enum Setting {
    /// The text replaces the value.
    Is(&'static str),
    /// The text follows the user's own value, after the separator.
    Ends { separator: &'static str, text: &'static str },
}

/// The marks of a runtime that were found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recognition {
    pub(super) version: Option<String>,
    /// The mark by which the runtime was recognised.
    pub(super) by: &'static str,
    /// How the runtime will be queried.
    pub(super) asked: &'static str,
    /// Metrics that this build does not report although the runtime does, each with the reason.
    pub(super) not: Vec<(&'static str, String)>,
}

impl Recognition {
    pub(super) fn new(version: Option<String>, by: &'static str, asked: &'static str) -> Option<Recognition> {
        Some(Recognition { version, by, asked, not: Vec::new() })
    }
}

impl Runtime {
    /// The runtime's name in keys, sources and messages.
    pub fn word(self) -> &'static str {
        self.adapter().word
    }

    /// The runtime with this name.
    pub fn from_word(word: &str) -> Option<Runtime> {
        ALL.into_iter().find(|runtime| runtime.word() == word)
    }

    /// The runtime with this number in `agent.h`, which counts from 1 in the order of [`ALL`].
    pub(super) fn from_number(number: u32) -> Option<Runtime> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        ALL.get(index).copied().filter(|runtime| *runtime != Runtime::Go)
    }

    /// Whether the runtime reports this metric.
    pub(super) fn counts(self, key: &str) -> bool {
        match COMMON.contains(&key) {
            true => self.why_not(key).is_none(),
            false => key.strip_prefix(self.word()).is_some_and(|rest| rest.starts_with('.')),
        }
    }

    /// Why the runtime never reports this common metric, with an alternative; `None` if it reports the metric.
    pub fn why_not(self, key: &str) -> Option<&'static str> {
        self.adapter().lacks.iter().find(|(lacking, _)| *lacking == key).map(|(_, why)| *why)
    }

    /// The variables, with their values, with which the resident size hardly contains memory that nothing uses, because the
    /// runtime collects often or returns memory at once.
    pub fn settings_for_resident_size(self) -> impl Iterator<Item = (OsString, OsString)> {
        self.adapter().for_resident_size.iter().map(|(name, setting)| {
            let value = match (setting, std::env::var_os(name).filter(|own| !own.is_empty())) {
                (Setting::Is(text), _) | (Setting::Ends { text, .. }, None) => OsString::from(text),
                (Setting::Ends { separator, text }, Some(mut own)) => {
                    own.push(separator);
                    own.push(text);
                    own
                }
            };
            (OsString::from(name), value)
        })
    }

    /// Whether memory becomes free only when the runtime collects. The others count references, and free most memory
    /// at once.
    pub fn collects_its_heap(self) -> bool {
        !matches!(self, Runtime::Python | Runtime::Php | Runtime::Perl)
    }

    /// Whether the runtime takes every object from malloc, and does not free the objects that are still in use at its
    /// end.
    pub fn leaves_objects_in_malloc(self) -> bool {
        self == Runtime::Perl
    }

    /// Whether the runtime can report the live data after a collection of the whole heap ([`LIVE`]).
    fn says_what_is_alive(self) -> bool {
        use Runtime::{Ghc, Go, Guile, Jvm, Node, Ocaml, Python, Ruby};
        matches!(self, Ghc | Go | Guile | Jvm | Node | Ocaml | Python | Ruby)
    }

    /// Whether the runtime records when each of its collections starts and ends.
    pub fn tells_when(self) -> bool {
        self.adapter().tells_when
    }

    /// Why a process of the runtime did not report this metric.
    pub(super) fn lacks(self, key: &str) -> String {
        match self.why_not(key) {
            Some(why) => format!("{}: {why}", self.word()),
            None if key == LIVE && !self.says_what_is_alive() => {
                format!("{} cannot be asked what is alive", self.word())
            }
            None => format!("{} did not report it this time", self.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_lead_back() {
        for (i, runtime) in ALL.into_iter().enumerate() {
            assert!(runtime == Runtime::Go || Runtime::from_number(i as u32 + 1) == Some(runtime));
            assert_eq!(Runtime::from_word(runtime.word()), Some(runtime));
        }
        assert_eq!(Runtime::from_number(4), Some(Runtime::Ocaml));
        assert_eq!(Runtime::from_number(0), None);
    }

    #[test]
    fn absent_figures_are_common_metrics_and_have_reasons() {
        for (key, why) in ALL.into_iter().flat_map(|runtime| runtime.adapter().lacks) {
            assert!(COMMON.contains(key), "{key}");
            assert!(why.len() > 10, "{why}");
        }
    }
}
