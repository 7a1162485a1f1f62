//! What a process of an interpreter counted, by calling context: a file with a line for each function and each context.
//!
//! A function has a digest of its code: 0 if the code is not known, 1 for what belongs to the interpreter, which does
//! not differ between versions of a program.

use super::{Language, ScriptCounts, add_function, empty_side, text_of};
use crate::calltree::merged_profiles::Side;
use scruple_core::explain::{Context, OwnCost, PROGRAM};
use scruple_core::sorting;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The first line of a file of counts, up to the word that says whether only a part was counted.
const HEAD: &str = "scruple-calls 1 ";

/// The module of the program itself, whatever its file is called.
const MAIN: &str = "__main__";

/// Reads what was counted.
pub(super) fn read(language: Language, folder: &Path) -> Result<ScriptCounts, String> {
    let mut counts = ScriptCounts::default();
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())?.flatten() {
        match entry.path().extension().and_then(OsStr::to_str) {
            Some("calls") => files.push(entry.path()),
            Some("running") => counts.lost += 1,
            _ => {}
        }
    }
    sorting::ascending(&mut files);
    let mut builder = CountsBuilder::new(language);
    for file in files {
        counts.partial += usize::from(builder.add(&text_of(&file)?)?);
        counts.processes += 1;
    }
    counts.side = builder.side;
    Ok(counts)
}

struct CountsBuilder {
    side: Side,
    known: HashMap<(String, String, u64), usize>,
}

impl CountsBuilder {
    fn new(language: Language) -> CountsBuilder {
        CountsBuilder { side: empty_side(language), known: HashMap::new() }
    }

    /// Adds a process; says whether only a part of it was counted.
    fn add(&mut self, text: &str) -> Result<bool, String> {
        let damaged = |number: usize| format!("line {} of a process’s counts is damaged", number + 1);
        let mut lines = text.lines().enumerate();
        let partial = lines.next().and_then(|(_, line)| line.strip_prefix(HEAD)).ok_or(damaged(0))? != "0";
        let begin = self.side.tree.contexts.len();
        let mut functions = Vec::new();
        let mut ended = false;
        for (number, line) in lines {
            let words: Vec<&str> = line.split('\t').collect();
            match words.as_slice() {
                ["f", digest, module, name] => {
                    let digest = u64::from_str_radix(digest, 16).map_err(|_| damaged(number))?;
                    functions.push(self.function(module, name, digest));
                }
                ["c", numbers @ ..] => {
                    let numbers: Vec<u64> = numbers.iter().filter_map(|word| word.parse().ok()).collect();
                    let &[parent, function, calls, recursive, own] = numbers.as_slice() else {
                        return Err(damaged(number));
                    };
                    let inside = self.side.tree.contexts.len() - begin;
                    let parent = usize::try_from(parent).ok().filter(|parent| *parent <= inside);
                    let function = usize::try_from(function).ok().and_then(|at| functions.get(at).copied());
                    let (Some(parent), Some(function)) = (parent, function) else {
                        return Err(damaged(number));
                    };
                    self.side.named.0 = self.side.named.0.saturating_add(own);
                    self.side.tree.contexts.push(Context {
                        // The process's first context follows the root and what other processes have.
                        parent: Some(if parent == 0 { 0 } else { begin + parent - 1 }),
                        function,
                        calls,
                        recursive,
                        cost: OwnCost { instructions: own, ..OwnCost::default() },
                    });
                }
                ["end"] => ended = true,
                _ => return Err(damaged(number)),
            }
        }
        if ended { Ok(partial) } else { Err("a process’s counts are cut off".to_owned()) }
    }

    fn function(&mut self, module: &str, name: &str, digest: u64) -> usize {
        let key = (module.to_owned(), name.to_owned(), digest);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let module = match module {
            MAIN => PROGRAM.to_owned(),
            "" => "no module".to_owned(),
            module => format!("module {module}"),
        };
        let place = add_function(&mut self.side, module, name, digest);
        self.known.insert(key, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn damaged_counts_are_survived() {
        let whole = "scruple-calls 1 0\nf\tff\t__main__\tmain\nc\t0\t0\t1\t0\t7\nc\t1\t0\t2\t0\t5\nend\n";
        Corpus::default().with("two contexts", whole).is_survived_by_text(|text| {
            drop(CountsBuilder::new(Language::Python).add(text));
        });
    }

    #[test]
    fn a_damaged_or_cut_file_of_counts_is_refused() {
        let whole = "scruple-calls 1 0\nf\tff\t__main__\tmain\nc\t0\t0\t1\t0\t7\nc\t1\t0\t2\t0\t5\nend\n";
        let mut builder = CountsBuilder::new(Language::Python);
        assert_eq!(builder.add(whole), Ok(false));
        assert_eq!(builder.add(whole), Ok(false));
        let parents: Vec<_> = builder.side.tree.contexts.iter().map(|context| context.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(1), Some(0), Some(3)]);
        assert_eq!(builder.side.digests, Some(vec![0, 255]));
        for (from, to) in [
            ("end\n", ""),
            ("c\t1\t0", "c\t3\t0"),
            ("\tff\t", "\tfg\t"),
            ("c\t0\t0", "c\t0\t9"),
            ("5\n", "\n"),
        ] {
            assert!(CountsBuilder::new(Language::Python).add(&whole.replace(from, to)).is_err(), "{to}");
        }
    }
}
