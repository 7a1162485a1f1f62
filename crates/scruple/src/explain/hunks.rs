//! Finds the part of the source difference between two revisions that touches a function.

use super::call_costs::CallCosts;
use super::definitions::{Definitions, HunkIndices};
use crate::git::Repository;
use scruple_core::explain::{FunctionDifference, GENERATED, PROGRAM, normal};
use scruple_core::harmless_text::plain;
use scruple_core::sorting;
use scruple_measure::calltree::{Side, Symbols};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// A hunk: a part of the difference between two revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The path of the file in the second revision.
    pub file: String,
    /// The first and the last line that is new or different. If lines were only removed, the line after which they
    /// were.
    pub lines: (u32, u32),
    /// Whether lines were only removed.
    removes_only: bool,
    /// The path of the file in the first revision.
    old_file: String,
    /// The first and the last line that the second revision changed or removed; `None` if it only added lines.
    old_lines: Option<(u32, u32)>,
    /// The function that contains the lines, according to git.
    pub context: String,
    /// The number of other hunks that may be as much the cause of what the function costs.
    pub others: usize,
    /// The text of the hunk, without its head.
    text: Vec<String>,
}

/// The languages whose functions git recognises, with the ends of their files' names. Without these, git takes the last
/// line that is not indented for the function that a hunk is in.
const LANGUAGES: [(&str, &[&str]); 11] = [
    ("cpp", &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx"]),
    ("csharp", &["cs"]),
    ("golang", &["go"]),
    ("java", &["java"]),
    ("javascript", &["js", "cjs", "mjs", "jsx", "ts", "tsx"]),
    ("perl", &["pl", "pm"]),
    ("php", &["php"]),
    ("python", &["py"]),
    ("ruby", &["rb"]),
    ("rust", &["rs"]),
    ("scheme", &["scm", "sld", "ss"]),
];

/// How a function of JavaScript begins, as a setting of git, which knows no such language itself: not with a keyword of a
/// statement, but with a name, parameters, and a brace or an arrow at the end of the line.
const JAVASCRIPT: &str = "diff.javascript.xfuncname=!^[ \t]*(if|for|while|switch|catch|return|else|do|try|with)([^A-Za-z0-9_$]|$)\n\
    ^[ \t]*(((export|default|async|static|get|set|function|const|let|var)[ \t*]+)*[A-Za-z_$#][A-Za-z0-9_$]*[ \t]*\
    (=[ \t]*(async[ \t]*)?(function[^(]*)?)?\\([^.]*(\\{|=>)[ \t]*)$";

/// Returns the hunks between two revisions. A file of attributes for git is written to the folder `work`.
pub fn between(repository: &Repository, first: &str, second: &str, work: &Path) -> Vec<Hunk> {
    let endings =
        LANGUAGES.iter().flat_map(|(language, endings)| endings.iter().map(move |end| (language, end)));
    let lines: String = endings.map(|(language, end)| format!("*.{end} diff={language}\n")).collect();
    let attributes = work.join("attributes");
    // Without the file, only the functions are less exact.
    drop(fs::write(&attributes, lines));
    let words = [
        "-c",
        &format!("core.attributesFile={}", attributes.display()),
        "-c",
        JAVASCRIPT,
        "-c",
        "core.quotePath=false",
        "diff",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "-U0",
        "--end-of-options",
        first,
        second,
        "--",
    ];
    parse(&repository.ask(words).unwrap_or_default())
}

fn parse(text: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut file, mut old_file) = (String::new(), String::new());
    let mut open = false;
    for line in text.lines() {
        if line.starts_with("diff --git ") {
            open = false;
        } else if let Some(name) = line.strip_prefix("--- ").filter(|_| !open) {
            old_file = name_of(name, "a/");
        } else if let Some(name) = line.strip_prefix("+++ ").filter(|_| !open) {
            file = name_of(name, "b/");
        } else if let Some((place, context)) =
            line.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@"))
        {
            let range = |sign: char| {
                let text = place.split(' ').find_map(|word| word.strip_prefix(sign)).unwrap_or("0");
                let (begin, count) = text.split_once(',').unwrap_or((text, "1"));
                let (begin, count): (u32, u32) = (begin.parse().unwrap_or(0), count.parse().unwrap_or(1));
                ((begin, begin.saturating_add(count.max(1) - 1)), count)
            };
            let ((lines, added), (old_lines, removed)) = (range('+'), range('-'));
            hunks.push(Hunk {
                file: file.clone(),
                lines,
                removes_only: added == 0,
                old_file: old_file.clone(),
                old_lines: (removed > 0).then_some(old_lines),
                context: plain(context.trim()),
                others: 0,
                text: Vec::new(),
            });
            open = true;
        } else if let Some(hunk) = hunks.last_mut().filter(|_| open) {
            hunk.text.push(line.to_owned());
        }
    }
    hunks
}

/// Reads the name of a file, which git writes after `prefix`. It appends a tab to a name that contains spaces.
fn name_of(text: &str, prefix: &str) -> String {
    let name = text.trim_end_matches('\t');
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

impl Hunk {
    /// Writes the place of the hunk, as people write it.
    pub fn place(&self) -> String {
        let file = plain(&self.file);
        match self.lines {
            (first, last) if last > first => format!("{file}:{first}-{last}"),
            (first, _) => format!("{file}:{first}"),
        }
    }

    /// Writes the place of the hunk, and how many others may be as much the cause.
    pub fn places(&self) -> String {
        format!("{}{}", self.place(), self.other_parts())
    }

    /// Writes the same with the line of the source that begins what the hunk is in, according to git.
    pub fn places_in_context(&self) -> String {
        let context =
            if self.context.is_empty() { String::new() } else { format!(" (‘{}’)", self.context) };
        format!("{}{context}{}", self.place(), self.other_parts())
    }

    fn other_parts(&self) -> String {
        match self.others {
            0 => String::new(),
            1 => " or another part of the diff".to_owned(),
            others => format!(" or one of {others} other parts of the diff"),
        }
    }

    /// The lines that are different, and those that were removed or changed: the side, the file, and the range.
    pub fn places_by_side(&self) -> impl Iterator<Item = (usize, &str, (u32, u32))> {
        let old = self.old_lines.map(|lines| (0, self.old_file.as_str(), lines));
        let new = (!self.removes_only).then_some((1, self.file.as_str(), self.lines));
        old.into_iter().chain(new)
    }

    /// The texts of the lines that were removed or added.
    pub fn changed_lines(&self) -> impl Iterator<Item = &str> {
        self.text.iter().filter_map(|line| line.strip_prefix(['+', '-']))
    }

    /// Whether git says that the hunk is in this function. The line that it names may contain the function's body.
    fn is_in(&self, word: &str) -> bool {
        holds(self.context.split('{').next().unwrap_or_default(), word)
    }

    fn mentions(&self, word: &str) -> bool {
        self.text.iter().any(|line| holds(line, word))
    }
}

/// The words of a text that may be names in a program.
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn holds(text: &str, word: &str) -> bool {
    identifiers(text).any(|part| part == word)
}

/// Finds the hunk that belongs to a function by its name alone: a hunk that is in the function according to git, or
/// else the first hunk of the only file that mentions the name. A word such as `main` is in many files, and a wrong
/// line is worse than none.
fn by_name(hunks: &[&Hunk], word: &str) -> Option<Hunk> {
    if word.is_empty() {
        return None;
    }
    let within: Vec<_> = hunks.iter().filter(|hunk| hunk.is_in(word)).collect();
    if let Some((first, rest)) = within.split_first() {
        return Some(Hunk { others: rest.len(), ..(**first).clone() });
    }
    let mentioned: Vec<_> = hunks.iter().filter(|hunk| hunk.mentions(word)).collect();
    let (first, rest) = mentioned.split_first()?;
    let is_one_file = rest.iter().all(|hunk| hunk.file == first.file);
    is_one_file.then(|| Hunk { others: rest.len(), ..(**first).clone() })
}

/// What functions cost, by the place in the source according to the debugging information of their program: a file and a
/// line for each function that is inlined there, the innermost first. Calls that begin at a place count there with all
/// that they cost.
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
    Some(Hunk { others, ..first.hunk.clone() })
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
    /// Finds the hunk that touches the function of a row. It contains lines that the programs executed there, or what
    /// these use: among several, those whose cost changed most. Otherwise it mentions the function, in a file that
    /// contains the function's code if that is known.
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

    /// Finds, for each side, what these functions call there and contain inlined on the other side. A function that
    /// grows may no longer be inlined, and its lines are then no longer lines of its caller.
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
    let mut name = normal(name);
    while let Some(around) = name.strip_suffix('>').and_then(|rest| Some(rest.rsplit_once(".<")?.0)) {
        name = around.to_owned();
    }
    let bare = name.split('(').next().unwrap_or(&name);
    let word = bare.rsplit(|c: char| !c.is_alphanumeric() && c != '_').find(|part| !part.is_empty());
    word.unwrap_or(bare).to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    /// The hunks of a text that git wrote.
    pub fn parsed(text: &str) -> Vec<Hunk> {
        parse(text)
    }

    #[test]
    fn damaged_differences_are_survived() {
        Corpus::named("diff").is_survived_by_text(|text| {
            for hunk in parse(text) {
                drop((hunk.place(), hunk.is_in("work")));
            }
        });
    }

    #[test]
    fn hunks_are_known_by_file_lines_and_the_function_that_they_are_in() {
        let text = "diff --git a/src/hash.c b/src/hash.c\n--- a/src/hash.c\n+++ b/src/hash.c\n\
                    @@ -40,0 +41,2 @@ static int hash(int a)\n+++ a;\n+b;\n@@ -50 +53 @@ int main(void)\n-x\n+y\n";
        let hunks = parse(text);
        assert_eq!(hunks.len(), 2);
        assert_eq!(
            (hunks[0].place(), hunks[1].place()),
            ("src/hash.c:41-42".to_owned(), "src/hash.c:53".to_owned())
        );
        assert!(hunks[0].is_in("hash") && !hunks[0].is_in("main") && hunks[1].is_in("main"));
        let hostile = parse(&text.replace("static int hash", "static \u{1b}[31m int hash"));
        assert_eq!(
            hostile[0].places_in_context(),
            "src/hash.c:41-42 (‘static \u{fffd}[31m int hash(int a)’)"
        );
        let with_body = parse(&text.replace("int main(void)", "int main(void) { return hash(1); }"));
        assert!(with_body[1].is_in("main") && !with_body[1].is_in("hash"));
        assert_eq!((hunks[0].old_lines, hunks[1].old_lines), (None, Some((50, 50))));
        assert_eq!(hunks[1].old_file, "src/hash.c");
    }

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
