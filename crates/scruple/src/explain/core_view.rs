//! Compares the optimised Core of a Haskell function in both programs, if GHC wrote it to files.

use super::common_subsequence;
use scruple_code::{Side, core_of};
use scruple_core::explain::{FunctionDifference, PROGRAM};
use serde::Serialize;
use std::path::Path;

/// The number of instructions or lines that are shown around one that differs.
pub(super) const AROUND: usize = 2;

/// A line of Core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CoreLine {
    /// The mark of the line: a space if both programs have it, `-` if only the first has it, `+` if only the second has
    /// it.
    pub mark: char,
    /// The text of the line, as GHC writes it.
    pub text: String,
}

/// The flags with which GHC writes Core.
const FLAGS: &str = "-ddump-simpl -dsuppress-all -ddump-to-file";

/// Returns the lines of a row's function that only one of the programs has, with the lines around them.
///
/// # Errors
/// A sentence that says why the lines are not known.
pub fn of(row: &FunctionDifference, sides: [&Side; 2]) -> Result<Vec<CoreLine>, String> {
    let (module, function) = split(&row.name);
    let bindings = [(sides[0], &row.functions.0), (sides[1], &row.functions.1)].map(|(side, functions)| {
        let program = functions.iter().find_map(|one| side.functions[*one].object.as_deref());
        // If only one side has the function, the other program is still the place to look for its Core.
        let mut all = side.tree.functions.iter().zip(&side.functions);
        let any = || all.find(|(named, _)| named.module == PROGRAM)?.1.object.as_deref();
        let core = core_of(Path::new(program.or_else(any)?), module)?;
        Some(binding(&core, function))
    });
    match bindings {
        [Some(first), Some(second)] => Ok(differing(&first, &second)),
        _ => Err(format!(
            "no Core of {module}: both builds must write it with {FLAGS}, beside the source or the program (as an artefact)"
        )),
    }
}

/// Splits a name into module and function. Operators may contain dots.
fn split(name: &str) -> (&str, &str) {
    let mut end = 0;
    while let Some(dot) = name[end..].find('.') {
        let word = &name[end..end + dot];
        let word = word.rsplit(':').next().unwrap_or(word);
        if !word.starts_with(|first: char| first.is_uppercase()) {
            break;
        }
        end += dot + 1;
    }
    (name[..end].trim_end_matches('.'), &name[end..])
}

/// Removes the suffix that GHC appends to a word and that differs between compilations: `ww_s3s1` becomes `ww`.
fn without_number(word: &str) -> &str {
    let is_number = |end: &str| {
        let mut letters = end.bytes();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && (2..=6).contains(&end.len())
            && letters.all(|letter| letter.is_ascii_alphanumeric())
    };
    word.rsplit_once('_')
        .filter(|(name, end)| !name.is_empty() && is_number(end))
        .map_or(word, |(name, _)| name)
}

/// Returns the function that a binding belongs to: `$whash_r3uO` does the work of `hash`.
fn base(word: &str) -> &str {
    let word = without_number(word);
    ["$w", "$s", "$l"].iter().find_map(|start| word.strip_prefix(start)).unwrap_or(word)
}

/// Returns the lines of the bindings of a function.
fn binding(core: &str, function: &str) -> Vec<String> {
    // GHC's notes name a local function after the function that contains it: `hash.go`.
    let outer = function.split('.').next().filter(|name| !name.is_empty()).unwrap_or(function);
    let mut lines = Vec::new();
    let mut inside = false;
    for line in core.lines() {
        if line.is_empty() || line.starts_with("--") || line.starts_with("==") {
            inside = false;
        } else if !line.starts_with(' ') {
            let word = line.split(' ').next().unwrap_or_default();
            inside = [function, outer].iter().any(|name| base(word) == base(name));
        }
        if inside {
            lines.push(line.to_owned());
        }
    }
    lines
}

fn differing(first: &[String], second: &[String]) -> Vec<CoreLine> {
    let bare = |lines: &[String]| -> Vec<String> {
        let of_word = |c: char| c.is_alphanumeric() || "_'$#".contains(c);
        let line = |line: &String| {
            let words = line.split_inclusive(|c| !of_word(c)).map(|word| {
                let end = word.chars().next_back().filter(|c| !of_word(*c)).map_or(0, char::len_utf8);
                let (name, end) = word.split_at(word.len() - end);
                without_number(name).to_owned() + end
            });
            words.collect::<String>().trim().to_owned()
        };
        lines.iter().map(line).collect()
    };
    let pairs = common_subsequence::pairs(&bare(first), &bare(second));
    let mut all = Vec::new();
    let (mut a, mut b) = (0, 0);
    let line = |mark: char, text: &String| CoreLine { mark, text: text.clone() };
    for (old, new) in pairs.into_iter().chain([(first.len(), second.len())]) {
        all.extend(first[a..old].iter().map(|text| line('-', text)));
        all.extend(second[b..new].iter().map(|text| line('+', text)));
        all.extend(second.get(new).map(|text| line(' ', text)));
        (a, b) = (old + 1, new + 1);
    }
    let differs: Vec<usize> = (0..all.len()).filter(|at| all[*at].mark != ' ').collect();
    let near = |at: &usize| differs.iter().any(|other| other.abs_diff(*at) <= AROUND);
    (0..all.len()).filter(near).map(|at| all[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str =
        "-- RHS size\n$whash_r3uO\n  = \\ ww_s3s1 ->\n      jump $wgo_s3rW 40# ww_s3s1\n\nother = 1\n";
    const NEW: &str =
        "-- RHS size\n$whash_r4aB\n  = \\ ww_s5x9 ->\n      jump $wgo_s5aa 44# ww_s5x9\n\nother = 2\n";

    #[test]
    fn lines_that_differ_in_more_than_numbers_are_shown() {
        let lines = differing(&binding(OLD, "hash"), &binding(NEW, "hash"));
        let marks: String = lines.iter().map(|line| line.mark).collect();
        assert_eq!(marks, "  -+", "{lines:?}");
        assert!(lines[2].text.contains("40#") && lines[3].text.contains("44#"));
        assert_eq!(differing(&binding(OLD, "$whash"), &binding(OLD, "hash.go")), []);
        assert_eq!(binding(OLD, "none"), Vec::<String>::new());
    }

    #[test]
    fn module_and_function_are_distinguished() {
        assert_eq!(split("Main.hash"), ("Main", "hash"));
        assert_eq!(split("base:GHC.List.$wlenAcc"), ("base:GHC.List", "$wlenAcc"));
        assert_eq!(split("Main.<.>"), ("Main", "<.>"));
        assert_eq!(split("hash"), ("", "hash"));
    }
}
