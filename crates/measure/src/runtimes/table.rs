//! The declaration of a runtime, and what follows from it.

use super::agent_records::{Answer, Record};
use super::elf::Elf;
use super::figures::{COMMON, Figure};
use super::{ALL, Runtime};

/// The declaration in a runtime's file.
pub(super) struct Adapter {
    /// Its word in keys, sources and messages.
    pub(super) word: &'static str,
    /// The common metrics that it cannot report, why not, and an alternative.
    pub(super) lacks: &'static [(&'static str, &'static str)],
    /// Recognises it in a file.
    pub(super) find: fn(&Elf) -> Option<Recognition>,
    /// Reads the record of one of its processes; `answers` are those of the same process.
    pub(super) tell: fn(&Record, &[&Answer]) -> Result<Vec<Figure>, String>,
    /// Whether a forked process of it reports totals that contain its parent's, or nothing: for the others the agent
    /// knows the values at the fork.
    pub(super) counts_from_its_parent: bool,
    /// Whether it records when each of its collections starts and ends.
    pub(super) tells_when: bool,
    /// The name and the text of a file that the agent makes it run.
    pub(super) hook: Option<(&'static str, &'static str)>,
}

impl Adapter {
    /// A runtime that reports nothing, to start a declaration from.
    pub(super) const SILENT: Adapter = Adapter {
        word: "",
        lacks: &[],
        find: |_| None,
        tell: |_, _| Ok(Vec::new()),
        counts_from_its_parent: false,
        tells_when: false,
        hook: None,
    };
}

/// How a file was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recognition {
    pub(super) version: Option<String>,
    /// The mark by which it was recognised.
    pub(super) by: &'static str,
    /// How it will be queried.
    pub(super) asked: &'static str,
    /// Metrics that this build does not report, beyond what the runtime lacks anyway.
    pub(super) not: Vec<(&'static str, &'static str)>,
}

impl Recognition {
    pub(super) fn new(version: Option<String>, by: &'static str, asked: &'static str) -> Option<Recognition> {
        Some(Recognition { version, by, asked, not: Vec::new() })
    }
}

impl Runtime {
    /// Its word in keys, sources and messages.
    pub fn word(self) -> &'static str {
        self.adapter().word
    }

    /// The runtime of that word.
    pub fn from_word(word: &str) -> Option<Runtime> {
        ALL.into_iter().find(|runtime| runtime.word() == word)
    }

    /// The runtime with this number in `agent.h`, which counts from 1 in the order of [`ALL`].
    pub(super) fn from_number(number: u32) -> Option<Runtime> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        ALL.get(index).copied().filter(|runtime| *runtime != Runtime::Go)
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

    /// Whether it records when each of its collections starts and ends.
    pub fn tells_when(self) -> bool {
        self.adapter().tells_when
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
            assert!(runtime == Runtime::Go || Runtime::from_number(i as u32 + 1) == Some(runtime));
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
