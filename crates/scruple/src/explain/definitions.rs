//! Finds the lines that use what a part of the source difference defines: macros and constants. Compilers attribute the
//! code of a macro to the lines that use it, so that no executed line is within the definition.

use super::code_view::Sources;
use super::hunks::{Hunk, identifiers};
use scruple_stats::sorting::SortedMap;
use std::collections::{BTreeSet, HashMap};

/// Returns the paths of the files of the second revision in which one of these words occurs.
pub type FilesWith<'a> = dyn Fn(&[&str]) -> Vec<String> + 'a;

/// The indices of hunks.
pub type HunkIndices = BTreeSet<usize>;

/// Macros can be defined by other macros up to this depth, in at most this many files.
const ROUNDS: usize = 5;
const FILES: usize = 100;

/// The words with which the definition of a constant begins.
const CONSTANTS: [&str; 7] = [
    "const ",
    "static const ",
    "constexpr ",
    "static constexpr ",
    "pub const ",
    "pub(crate) const ",
    "enum ",
];

/// The definitions that the parts of a source difference change, and the lines that use them.
pub struct Definitions<'a> {
    sources: &'a Sources<'a>,
    /// The hunks that change what a name stands for, directly or through another macro.
    names: SortedMap<String, HunkIndices>,
    /// For each file of a side, the hunks on which each line depends.
    lines: HashMap<(usize, String), Vec<HunkIndices>>,
}

impl<'a> Definitions<'a> {
    /// Finds the names that hunks define. `sources` return the texts of files by side and path.
    pub fn of(hunks: &[Hunk], sources: &'a Sources<'a>, files_with: &FilesWith<'_>) -> Definitions<'a> {
        let mut names: SortedMap<String, HunkIndices> = SortedMap::new();
        for (index, hunk) in hunks.iter().enumerate() {
            for (side, path, (first, last)) in hunk.places_by_side() {
                let text = sources(side, path).unwrap_or_default();
                let of_macros = macros(&text).into_iter().map(|one| (one.name, one.lines));
                let of_blocks =
                    constants_in_blocks(&text).into_iter().map(|(name, line)| (name, (line, line)));
                for (name, lines) in of_macros.chain(of_blocks) {
                    if lines.0 <= last && first <= lines.1 {
                        names.entry(name).or_default().insert(index);
                    }
                }
            }
            for name in hunk.changed_lines().flat_map(constants) {
                names.entry(name).or_default().insert(index);
            }
        }
        let mut fresh: Vec<String> = names.keys().cloned().collect();
        for _ in 0..ROUNDS {
            if fresh.is_empty() {
                break;
            }
            let words: Vec<&str> = fresh.iter().map(String::as_str).collect();
            let texts = files_with(&words).into_iter().take(FILES).filter_map(|path| sources(1, &path));
            let using = texts.flat_map(|text| macros(&text)).filter_map(|one| {
                let depends = depends(&names, &one.body);
                (!depends.is_empty()).then_some((one.name, depends))
            });
            let using: Vec<(String, HunkIndices)> = using.collect();
            fresh.clear();
            for (name, depends) in using {
                let known = names.entry(name.clone()).or_default();
                if !depends.is_subset(known) {
                    known.extend(depends);
                    fresh.push(name);
                }
            }
        }
        Definitions { sources, names, lines: HashMap::new() }
    }

    /// Returns the hunks that change what a line of a side's file uses.
    pub fn used_at(&mut self, side: usize, file: &str, line: u32) -> HunkIndices {
        let Definitions { sources, names, lines } = self;
        if names.is_empty() {
            return HunkIndices::new();
        }
        let of_file = lines.entry((side, file.to_owned())).or_insert_with(|| {
            let text = sources(side, file).unwrap_or_default();
            text.lines().map(|line| depends(names, line)).collect()
        });
        let at = (line as usize).checked_sub(1).and_then(|index| of_file.get(index));
        at.cloned().unwrap_or_default()
    }
}

/// The hunks that change what the names in a text stand for.
fn depends(names: &SortedMap<String, HunkIndices>, text: &str) -> HunkIndices {
    identifiers(text).filter_map(|word| names.get(word)).flatten().copied().collect()
}

/// A macro of C's preprocessor.
struct PreprocessorMacro {
    name: String,
    /// The first and the last line of its definition.
    lines: (u32, u32),
    body: String,
}

fn macros(text: &str) -> Vec<PreprocessorMacro> {
    let mut found: Vec<PreprocessorMacro> = Vec::new();
    let mut continues = false;
    for (number, line) in (1..).zip(text.lines()) {
        let defined =
            line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("define"));
        match (continues, defined.filter(|rest| rest.starts_with([' ', '\t']))) {
            (true, _) => {
                if let Some(last) = found.last_mut() {
                    last.lines.1 = number;
                    last.body.push_str(line);
                }
                continues &= line.ends_with('\\');
            }
            (false, Some(rest)) => {
                let Some(name) = identifiers(rest).next() else { continue };
                let body = rest.trim_start().strip_prefix(name).unwrap_or_default().to_owned();
                found.push(PreprocessorMacro { name: name.to_owned(), lines: (number, number), body });
                continues = line.ends_with('\\');
            }
            (false, None) => {}
        }
    }
    found
}

/// The names of the constants that a line defines: `const long SIZE = 5`, `const SIZE: usize = 5`, `enum { SIZE = 5 }`.
fn constants(line: &str) -> Vec<String> {
    let line = line.trim_start();
    if !CONSTANTS.iter().any(|word| line.starts_with(word)) {
        return Vec::new();
    }
    let assigned = line.split(',').filter_map(|part| Some(part.split_once('=')?.0));
    let name = |left: &str| {
        let left = left.split(['[', ':']).next().unwrap_or_default();
        identifiers(left).last().map(str::to_owned)
    };
    assigned.filter_map(name).collect()
}

/// The constants that are defined in blocks, each with its line: Go's `const (`, and `enum {` of C.
fn constants_in_blocks(text: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    // The number of brackets that are open, from that of the block on.
    let mut depth = 0_usize;
    let mut is_enum = false;
    let mut in_comment = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_comments(line, &mut in_comment);
        let mut rest = line.trim();
        if depth == 0 {
            let Some((begins_enum, items)) = beginning_of_block(rest) else { continue };
            (depth, is_enum, rest) = (1, begins_enum, items);
        }
        let items = items_of_block(rest, &mut depth);
        let items = items.split(',').take(if is_enum { usize::MAX } else { 1 });
        let names = items.filter_map(|item| identifiers(item).next());
        found.extend(names.map(|name| (name.to_owned(), number)));
    }
    found
}

/// Whether the block of constants that begins on a line is an `enum`, and the rest of the line; `None` if none begins
/// there. A function or a variable whose type is an `enum` is none.
fn beginning_of_block(line: &str) -> Option<(bool, &str)> {
    if line == "const (" {
        return Some((false, ""));
    }
    let of_enum = ["enum ", "typedef enum "].iter().find_map(|word| line.strip_prefix(word))?;
    let (head, items) = of_enum.split_once('{')?;
    (!head.contains(['(', '=', ';'])).then_some((true, items))
}

/// What is directly in a block, and not in further brackets, up to the end of the line or of the block.
fn items_of_block(line: &str, depth: &mut usize) -> String {
    let mut items = String::new();
    for c in line.chars() {
        match c {
            '(' | '{' => *depth += 1,
            ')' | '}' => *depth -= 1,
            c if *depth == 1 => items.push(c),
            _ => {}
        }
        if *depth == 0 {
            break;
        }
    }
    items
}

/// A line of C, Go and similar languages without its comments. `in_comment` says whether a comment of several lines is
/// open at its beginning, and is then set for its end.
fn without_comments(line: &str, in_comment: &mut bool) -> String {
    let mut code = String::new();
    let mut rest = line;
    loop {
        if *in_comment {
            let Some((_, after)) = rest.split_once("*/") else { return code };
            *in_comment = false;
            rest = after;
        }
        let before_line_comment = rest.find("//").unwrap_or(rest.len());
        match rest.find("/*").filter(|begin| *begin < before_line_comment) {
            Some(begin) => {
                code.push_str(&rest[..begin]);
                *in_comment = true;
                rest = &rest[begin + 2..];
            }
            None => return code + &rest[..before_line_comment],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::hunks::tests::parsed;

    #[test]
    fn lines_use_macros_directly_and_through_others() {
        let header = "#define ROUNDS 5\n#define LOOP(x) \\\n  for (int i = 0; i < ROUNDS; i++) \\\n    x\n#define REST 3\n";
        let program = "LOOP(a)\nREST;\nint ROUNDS_OF_OTHERS;\nSIZE;\n";
        let diff = "diff --git a/a.h b/a.h\n--- a/a.h\n+++ b/a.h\n@@ -1 +1 @@\n-#define ROUNDS 4\n+#define ROUNDS 5\n\
                    diff --git a/b.h b/b.h\n--- a/b.h\n+++ b/b.h\n@@ -9 +9 @@\n-const long SIZE = 4;\n+const long SIZE = 5;\n";
        let sources = |_: usize, path: &str| match path {
            "a.h" => Some(header.to_owned()),
            "/tree/a.c" => Some(program.to_owned()),
            _ => None,
        };
        let mut definitions = Definitions::of(&parsed(diff), &sources, &|_| vec!["a.h".to_owned()]);
        let mut used = |line| Vec::from_iter(definitions.used_at(1, "/tree/a.c", line));
        assert_eq!([used(1), used(2), used(3), used(4), used(9)], [vec![0], vec![], vec![], vec![1], vec![]]);
    }

    #[test]
    fn names_of_constants_are_read_from_their_definitions() {
        for (line, names) in [
            ("const long SIZE = 5;", &["SIZE"][..]),
            ("pub const SIZE: usize = 5;", &["SIZE"]),
            ("static const int sizes[2] = {1,", &["sizes"]),
            ("enum { FEW = 3, MANY = 9 };", &["FEW", "MANY"]),
            ("const char *name(void);", &[]),
            ("size = 5;", &[]),
        ] {
            assert_eq!(constants(line), names, "{line}");
        }
    }

    #[test]
    fn constants_of_blocks_have_the_lines_on_which_they_are_defined() {
        let go = "const (\n\tother = 3 // and more\n\n\t// Rounds.\n\trounds = 40\n\tfirst weekday = iota\n\tsecond\n)\nrest = 4\n";
        let c = "typedef enum kind {\n  FEW = 3, MANY = 9,\n  ALL\n} kind;\nenum { ONE = 1 };\nint two;\n";
        let known = |text: &str| {
            let found = constants_in_blocks(text);
            found.into_iter().map(|(name, line)| format!("{name} {line}")).collect::<Vec<_>>().join(", ")
        };
        let diff =
            "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -5 +5 @@\n-\trounds = 30\n+\trounds = 40\n";
        let program = "for i := 0; i < rounds; i++ {\n\tx += other\n";
        let sources = |_: usize, path: &str| match path {
            "a.go" => Some(go.to_owned()),
            _ => Some(program.to_owned()),
        };
        let mut definitions = Definitions::of(&parsed(diff), &sources, &|_| Vec::new());
        let mut used = |line| Vec::from_iter(definitions.used_at(1, "/tree/b.go", line));
        assert_eq!([used(1), used(2)], [vec![0], vec![]]);
        assert_eq!(known(go), "other 2, rounds 5, first 6, second 7");
        assert_eq!(known(c), "FEW 2, MANY 2, ALL 3, ONE 5");
        let ends_anywhere =
            "typedef enum { LIST(ITEM) /* all\n of them */ LAST,\n  END } codes;\n/* @return, always */\n";
        assert_eq!(known(ends_anywhere), "LIST 1, LAST 2, END 3");
        let of_rust = "enum Shape {\n    Round { size: u32 },\n    Square(u32),\n}\n";
        assert_eq!(known(of_rust), "Round 2, Square 3");
        assert_eq!(known("enum kind first(int a) {\n  return A;\n}\nenum kind all[] = { A,\n  B };\n"), "");
    }
}
