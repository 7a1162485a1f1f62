//! What a process of an interpreter counted, by calling context: a file with a line for each function, each context and
//! each edge. An edge leads from a context to the one below it that a call enters, or to the one above it to which a
//! recursive call leads back.
//!
//! A function has a digest of its code: 0 if the code is not known, 1 for what belongs to the interpreter, which does
//! not differ between versions of a program.

use super::{Language, ScriptCounts, add_function, empty_side, text_of};
use scruple_code::Side;
use scruple_core::explain::{Context, OwnCost, PROGRAM};
use scruple_stats::sorting;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The first line of a file of counts, up to two digits that say whether only a part was counted, and whether recursion
/// leads back by call ([`scruple_core::explain::Tree::folds_by_call`]).
const HEAD: &str = "scruple-calls 2 ";

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
    builder.side.tree.folds_by_call = builder.folds_by_call;
    counts.side = builder.side;
    Ok(counts)
}

struct CountsBuilder {
    side: Side,
    known: HashMap<(String, String, u64), usize>,
    folds_by_call: bool,
}

impl CountsBuilder {
    fn new(language: Language) -> CountsBuilder {
        CountsBuilder { side: empty_side(language), known: HashMap::new(), folds_by_call: true }
    }

    /// Adds a process; says whether only a part of it was counted.
    fn add(&mut self, text: &str) -> Result<bool, String> {
        let damaged = |number: usize| format!("line {} of a process’s counts is damaged", number + 1);
        let mut lines = text.lines().enumerate();
        let head = lines.next().and_then(|(_, line)| line.strip_prefix(HEAD)?.split_once(' '));
        let (partial, by_call) = head.ok_or(damaged(0))?;
        self.folds_by_call &= by_call == "1";
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
                    let [parent, function, own] = three(numbers).ok_or(damaged(number))?;
                    let inside = self.side.tree.contexts.len() - begin;
                    let parent = place(parent, begin, inside).ok_or(damaged(number))?;
                    let function = usize::try_from(function).ok().and_then(|at| functions.get(at).copied());
                    let function = function.ok_or(damaged(number))?;
                    self.side.named.0 = self.side.named.0.saturating_add(own);
                    self.side.tree.contexts.push(Context {
                        parent: Some(parent),
                        function,
                        cost: OwnCost { instructions: own, ..OwnCost::default() },
                        ..Context::default()
                    });
                }
                ["e", numbers @ ..] => {
                    let [from, to, calls] = three(numbers).ok_or(damaged(number))?;
                    let inside = self.side.tree.contexts.len() - begin;
                    let from = place(from, begin, inside).ok_or(damaged(number))?;
                    let to = place(to, begin, inside).filter(|to| *to > 0).ok_or(damaged(number))?;
                    let tree = &mut self.side.tree;
                    let target = &mut tree.contexts[to];
                    if target.parent == Some(from) {
                        target.calls = target.calls.saturating_add(calls);
                    } else if calls > 0 {
                        target.recursive = target.recursive.saturating_add(calls);
                        tree.recursive.push((from, to, calls));
                    }
                }
                ["end"] => ended = true,
                _ => return Err(damaged(number)),
            }
        }
        if ended { Ok(partial != "0") } else { Err("a process’s counts are cut off".to_owned()) }
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

/// Three numbers of a line.
fn three(words: &[&str]) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// The index of the context that a process gives this number: 0 is the root, and the process's first context follows
/// what other processes have.
fn place(number: u64, begin: usize, inside: usize) -> Option<usize> {
    let number = usize::try_from(number).ok().filter(|number| *number <= inside)?;
    Some(if number == 0 { 0 } else { begin + number - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    /// A function that calls another one, which calls itself.
    const WHOLE: &str = "scruple-calls 2 0 1\nf\tff\t__main__\tmain\nf\tfe\t__main__\tdown\nc\t0\t0\t7\nc\t1\t1\t5\n\
        c\t2\t1\t4\ne\t0\t1\t1\ne\t1\t2\t2\ne\t2\t3\t6\ne\t3\t3\t9\nend\n";

    #[test]
    fn damaged_counts_are_survived() {
        Corpus::default().with("three contexts", WHOLE).is_survived_by_text(|text| {
            drop(CountsBuilder::new(Language::Python).add(text));
        });
    }

    #[test]
    fn recursive_calls_are_those_that_lead_back() {
        let mut builder = CountsBuilder::new(Language::Python);
        assert_eq!(builder.add(WHOLE), Ok(false));
        assert_eq!(builder.add(WHOLE), Ok(false));
        assert!(builder.folds_by_call);
        assert_eq!(builder.add(&WHOLE.replace("2 0 1", "2 1 0")), Ok(true));
        assert!(!builder.folds_by_call);
        let tree = &builder.side.tree;
        let parents: Vec<_> = tree.contexts.iter().map(|context| context.parent).take(7).collect();
        assert_eq!(parents, [None, Some(0), Some(1), Some(2), Some(0), Some(4), Some(5)]);
        let calls: Vec<_> = tree.contexts.iter().map(|one| (one.calls, one.recursive)).take(4).collect();
        assert_eq!(calls, [(1, 0), (1, 0), (2, 0), (6, 9)]);
        assert_eq!(tree.recursive, [(3, 3, 9), (6, 6, 9), (9, 9, 9)]);
        assert_eq!(builder.side.digests, Some(vec![0, 255, 254]));
    }

    #[test]
    fn a_damaged_or_cut_file_of_counts_is_refused() {
        for (from, to) in [
            ("end\n", ""),
            ("2 0 1", "1 0"),
            ("c\t1\t1", "c\t3\t1"),
            ("\tff\t", "\tfg\t"),
            ("c\t0\t0", "c\t0\t9"),
            ("\t5\n", "\n"),
            ("e\t0\t1\t1", "e\t0\t0\t1"),
            ("e\t3\t3", "e\t4\t3"),
            ("e\t3\t3\t9", "e\t3\t3\t9\t9"),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            assert!(CountsBuilder::new(Language::Python).add(&WHOLE.replace(from, to)).is_err(), "{to}");
        }
    }
}
