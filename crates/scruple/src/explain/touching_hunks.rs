//! Finds the part of the source difference that touches a function.

use super::call_costs::CallCosts;
use super::definitions::{Definitions, HunkIndices};
use super::hunks::Hunk;
use scruple_code::{Side, Symbols};
use scruple_core::explain::{FunctionDifference, GENERATED, PROGRAM, normal};
use scruple_stats::sorting;
use std::collections::{HashMap, HashSet};

/// Finds the hunk that belongs to a function by its name alone: a hunk that is in the function according to git, or
/// else the first hunk of the only file that mentions the name. A word such as `main` is in many files, and a wrong
/// line is worse than none.
fn by_name(hunks: &[&Hunk], word: &str) -> Option<Hunk> {
    if word.is_empty() {
        return None;
    }
    let within: Vec<_> = hunks.iter().filter(|hunk| hunk.is_in(word)).collect();
    if let Some((first, rest)) = within.split_first() {
        return Some(first.beside(rest.len()));
    }
    let mentioned: Vec<_> = hunks.iter().filter(|hunk| hunk.mentions(word)).collect();
    let (first, rest) = mentioned.split_first()?;
    let is_one_file = rest.iter().all(|hunk| hunk.file == first.file);
    is_one_file.then(|| first.beside(rest.len()))
}

/// The costs of functions by place in the source, according to the debugging information of their program. A place is a
/// file and a line for each function that is inlined there, the innermost first. Calls that begin at a place count
/// there with all that they cost.
#[derive(Default)]
struct CostByPlace {
    costs: HashMap<Vec<(String, u32)>, f64>,
    /// The hunks that change what a line uses.
    used: HashMap<(String, u32), HunkIndices>,
}

impl CostByPlace {
    fn is_known(&self) -> bool {
        self.costs.keys().any(|places| !places.is_empty())
    }

    fn are_in_file(&self, path: &str) -> bool {
        self.costs.keys().flatten().any(|(file, _)| is_same_file(file, path))
    }

    /// The cost of these lines and of what is inlined there, with the lines that use what the hunk with this index
    /// defines, and whether any are not inlined themselves; `None` if none was executed.
    fn touched_by(&self, hunk: usize, path: &str, lines: Option<(u32, u32)>) -> Option<(f64, bool)> {
        let is_touched = |place: &(String, u32)| {
            let (file, line) = place;
            lines.is_some_and(|(first, last)| (first..=last).contains(line) && is_same_file(file, path))
                || self.used.get(place).is_some_and(|hunks| hunks.contains(&hunk))
        };
        let executed = self.costs.iter().filter(|(places, _)| places.iter().any(is_touched));
        executed.fold(None, |sum, (places, cost)| {
            let (sum, own) = sum.unwrap_or((0.0, false));
            Some((sum + cost, own || places.last().is_some_and(is_touched)))
        })
    }
}

/// A hunk that changes lines which the programs executed.
struct TouchingHunk<'a> {
    hunk: &'a Hunk,
    /// How much more or less its lines cost.
    change: f64,
    /// Whether any of its lines are not inlined.
    is_own: bool,
}

/// The hunk is the likeliest cause alone only if it explains at least this share of the difference, and others at most
/// this share of what it explains.
const CLEAR: f64 = 0.5;

/// Finds the hunk whose lines cost more or less than before by the largest amount. If several do, it is the first whose
/// lines are not inlined. `delta` is the whole difference of the function.
fn most_changed(hunks: &[Hunk], [old, new]: [&CostByPlace; 2], delta: f64) -> Option<Hunk> {
    let touched = hunks.iter().enumerate().filter_map(|(index, hunk)| {
        let before = old.touched_by(index, &hunk.old_file, hunk.old_lines);
        let after = new.touched_by(index, &hunk.file, Some(hunk.lines));
        let is_own = before.or(after)?.1 || after.is_some_and(|(_, own)| own);
        let cost = |lines: Option<(f64, bool)>| lines.map_or(0.0, |(cost, _)| cost);
        // If lines were only removed, those of the second revision are around them.
        let now = cost(if hunk.removes_only { new.touched_by(index, &hunk.file, None) } else { after });
        Some(TouchingHunk { hunk, change: now - cost(before), is_own })
    });
    let mut touched: Vec<TouchingHunk<'_>> = touched.collect();
    sorting::by(&mut touched, |a, b| b.change.abs().total_cmp(&a.change.abs()).then(b.is_own.cmp(&a.is_own)));
    let (first, rest) = touched.split_first()?;
    let is_clear = first.change * delta > 0.0 && first.change.abs() >= CLEAR * delta.abs();
    let is_rival = |one: &&TouchingHunk<'_>| !is_clear || one.change.abs() > CLEAR * first.change.abs();
    let others = rest.iter().filter(is_rival).count();
    Some(first.hunk.beside(others))
}

/// Whether a path from debugging information is this one of the repository.
fn is_same_file(file: &str, path: &str) -> bool {
    file == path || file.ends_with(&format!("/{path}"))
}

/// Finds the parts of a source difference that touch functions.
pub struct HunkFinder<'a, 'b> {
    /// All parts.
    pub hunks: &'a [Hunk],
    /// What these define.
    pub definitions: &'a mut Definitions<'b>,
    /// The profiles of both programs.
    pub sides: [&'a Side; 2],
    /// The costs of calls.
    pub costs: CallCosts<'a>,
    /// The debugging information of the programs.
    pub symbols: &'a mut Symbols,
}

impl HunkFinder<'_, '_> {
    /// Finds the hunk that touches the function of a row. It contains lines that the programs executed there, or
    /// definitions that these lines use. If several hunks do, it is the one whose lines changed most in cost. Otherwise
    /// it mentions the function, in a file that contains the function's code if that is known.
    pub fn touching(&mut self, row: &FunctionDifference) -> Option<Hunk> {
        let old = self.by_place(&row.functions.0, 0);
        let new = self.by_place(&row.functions.1, 1);
        if let Some(hunk) = most_changed(self.hunks, [&old, &new], row.delta) {
            return Some(hunk);
        }
        let [gone, come] = self.called_where_the_other_side_inlines([&row.functions.0, &row.functions.1]);
        let was_called = self.by_place(&gone, 0);
        let is_called = self.by_place(&come, 1);
        if let Some(hunk) = most_changed(self.hunks, [&was_called, &is_called], row.delta) {
            return Some(hunk);
        }
        let is_script = self.sides[1].digests.is_some();
        let from_its_files = |hunk: &&Hunk| match is_script {
            true => may_be_module(&hunk.file, &row.module),
            false => !new.is_known() || new.are_in_file(&hunk.file),
        };
        let hunks: Vec<&Hunk> = self.hunks.iter().filter(from_its_files).collect();
        by_name(&hunks, &last_word(&row.name))
    }

    fn by_place(&mut self, functions: &[usize], side: usize) -> CostByPlace {
        let mut places = CostByPlace::default();
        for function in functions {
            let of_calls = self.costs.by_address(side, *function);
            for (address, frames, count) in self.symbols.executed(self.sides[side], *function) {
                let own = if self.costs.counts_instructions() { count as f64 } else { 0.0 };
                let lines: Vec<(String, u32)> =
                    frames.into_iter().filter_map(|frame| Some((frame.file?, frame.line?))).collect();
                for place in &lines {
                    if !places.used.contains_key(place) {
                        let used = self.definitions.used_at(side, &place.0, place.1);
                        places.used.insert(place.clone(), used);
                    }
                }
                *places.costs.entry(lines).or_default() += own + of_calls.get(&address).unwrap_or(&0.0);
            }
        }
        places
    }

    /// Finds, for each side, the functions that these functions call there and contain inlined on the other side. A
    /// function that grows may no longer be inlined, and its lines are then no longer lines of its caller.
    fn called_where_the_other_side_inlines(&mut self, functions: [&[usize]; 2]) -> [Vec<usize>; 2] {
        let HunkFinder { sides, costs, symbols, .. } = self;
        let mut inlined = |side: usize| {
            let mut names = HashSet::new();
            for function in functions[side] {
                for (_, frames, _) in symbols.executed(sides[side], *function) {
                    // The last one is the function itself.
                    let within = frames.len().saturating_sub(1);
                    names.extend(
                        frames.into_iter().take(within).filter_map(|frame| Some(normal(&frame.name?))),
                    );
                }
            }
            names
        };
        let of_other_side = [inlined(1), inlined(0)];
        [0, 1].map(|side| {
            let name = |callee: usize| normal(&sides[side].tree.functions[callee].name);
            let called = functions[side].iter().flat_map(|function| costs.callees(side, *function));
            called.filter(|callee| of_other_side[side].contains(&name(*callee))).collect()
        })
    }
}

/// Whether a file of the repository may be a module of a script. The module's name is a path in JavaScript and Ruby; in
/// Python and Guile it has the words of the path. The program itself, and code that it generated, may be in any file.
fn may_be_module(path: &str, module: &str) -> bool {
    if [PROGRAM, GENERATED].contains(&module) {
        return true;
    }
    let name = module.strip_prefix("module ").unwrap_or(module);
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c));
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (mut file, mut names) = (words(path), words(name));
    let ending = file.last().cloned().unwrap_or_default();
    if ["py", "scm", "sld", "ss"].contains(&ending.as_str()) {
        names.push(ending);
        // A package of Python is in the file `__init__.py` of its folder.
        file.retain(|word| word != "__init__");
    }
    names.len() > 1 && (file.ends_with(&names) || names.ends_with(&file))
}

/// Returns the last part of a qualified name, without arguments. A nameless function, such as `<lambda>`, is part of the
/// one around it.
fn last_word(name: &str) -> String {
    let mut name = name;
    while let Some(around) = name.strip_suffix('>').and_then(|rest| Some(rest.rsplit_once(".<")?.0)) {
        name = around;
    }
    let bare = name.split('(').next().unwrap_or(name);
    let word = bare.rsplit(|c: char| !c.is_alphanumeric() && c != '_').find(|part| !part.is_empty());
    word.unwrap_or(bare).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::hunks::tests::parsed as parse;

    #[test]
    fn of_several_hunks_in_a_function_the_one_that_changes_most_is_named() {
        let diff = "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -3 +3 @@ int get(int a)\n-a\n+b\n\
                    @@ -9 +9 @@ int work(int a)\n-c\n+d\n@@ -12,2 +11,0 @@ int work(int a)\n-e\n-f\n";
        let hunks = parse(diff);
        let lines = |counts: &[(&[u32], u32)]| {
            let place = |lines: &[u32]| lines.iter().map(|line| ("/tree/a.c".to_owned(), *line)).collect();
            let costs = counts.iter().map(|(lines, count)| (place(lines), f64::from(*count))).collect();
            CostByPlace { costs, used: HashMap::new() }
        };
        let of = |old: &[(&[u32], u32)], new: &[(&[u32], u32)]| {
            let sum = |lines: &[(&[u32], u32)]| lines.iter().map(|(_, count)| f64::from(*count)).sum::<f64>();
            most_changed(&hunks, [&lines(old), &lines(new)], sum(new) - sum(old)).map(|hunk| hunk.places())
        };
        // Line 3 is inlined into line 9, whose loop became shorter.
        assert_eq!(
            of(&[(&[3, 9], 900)], &[(&[3, 9], 500)]).as_deref(),
            Some("a.c:9 or another part of the diff")
        );
        assert_eq!(of(&[(&[3, 9], 900), (&[3, 8], 90)], &[(&[9], 900)]).as_deref(), Some("a.c:3"));
        // Line 11 stands before the removed ones, and costs more although it did not change.
        assert_eq!(
            of(&[(&[9], 900), (&[12], 20)], &[(&[9], 890), (&[11], 5000)]).as_deref(),
            Some("a.c:11 or another part of the diff")
        );
        assert_eq!(of(&[(&[9], 900), (&[12], 2000)], &[(&[9], 890)]).as_deref(), Some("a.c:11"));
        assert_eq!(of(&[(&[5], 900)], &[(&[5], 500)]), None);
    }

    #[test]
    fn modules_of_scripts_are_files_with_their_name() {
        for (path, module) in [
            ("src/mistune/core.py", "module mistune.core"),
            ("src/mistune/__init__.py", "module mistune"),
            ("lib/base.js", "module lib/base.js"),
            ("lib/some.words.mjs", "module some.words.mjs"),
            ("ice/sort.scm", "module (ice sort)"),
            ("lib/words.rb", "module /home/user/repo/lib/words.rb"),
            ("any.py", PROGRAM),
        ] {
            assert!(may_be_module(path, module), "{path} {module}");
        }
        assert!(!may_be_module("src/mistune/core.py", "module mistune.core_parser"));
        assert!(!may_be_module("tests/core.py", "module mistune.core"));
        assert!(!may_be_module("lib/words.rb", "module lib/words.js"));
        assert_eq!(last_word("Parser.parse.<locals>.<lambda>"), "parse");
        assert_eq!(last_word("Parser.parse"), "parse");
        assert_eq!(last_word("main.cold"), "cold");
    }

    #[test]
    fn a_function_is_not_found_in_a_file_that_only_mentions_it() {
        let script =
            "diff --git a/go.sh b/go.sh\n--- a/go.sh\n+++ b/go.sh\n@@ -1 +1,2 @@\n-make\n+make main\n";
        let source = "diff --git a/the words.c b/the words.c\n--- a/the words.c\t\n+++ b/the words.c\t\n\
                      @@ -50 +53 @@ int main(void)\n-x\n+y\n";
        let both = parse(&format!("{script}{source}"));
        let of = |hunks: &[Hunk], word: &str| {
            by_name(&hunks.iter().collect::<Vec<_>>(), word).map(|hunk| hunk.place())
        };
        assert_eq!(of(&both, "main").as_deref(), Some("the words.c:53"));
        let other = script.replace("go.sh", "run.sh");
        assert_eq!(of(&parse(&format!("{script}{other}")), "main"), None);
        assert_eq!(of(&parse(script), "main").as_deref(), Some("go.sh:1-2"));
        assert_eq!(of(&both, "hash"), None);
        // Code without a name.
        assert_eq!(of(&both, ""), None);
    }
}
