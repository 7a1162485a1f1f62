//! Finds the part of the difference between two revisions that touches a function.

use crate::git::Repository;
use scruple_core::explain::{FunctionDifference, normal};
use scruple_measure::calltree::{Side, Symbols};
use std::collections::HashSet;

/// A part of the difference between two revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The file in the second revision.
    pub file: String,
    /// The first and the last line that is new or different; the line after which lines were removed.
    pub lines: (u32, u32),
    /// The function that contains them, according to git.
    pub context: String,
    /// The text, without its head.
    text: Vec<String>,
}

/// The hunks between two revisions.
pub fn between(repository: &Repository, first: &str, second: &str) -> Vec<Hunk> {
    let words = [
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
    let mut file = String::new();
    let mut open = false;
    for line in text.lines() {
        if line.starts_with("diff --git ") {
            open = false;
        } else if let Some(name) = line.strip_prefix("+++ ").filter(|_| !open) {
            file = name.strip_prefix("b/").unwrap_or(name).to_owned();
        } else if let Some((place, context)) =
            line.strip_prefix("@@ ").and_then(|rest| rest.split_once(" @@"))
        {
            let new = place.split(' ').find_map(|word| word.strip_prefix('+')).unwrap_or("0");
            let (begin, count) = new.split_once(',').unwrap_or((new, "1"));
            let (begin, count): (u32, u32) = (begin.parse().unwrap_or(0), count.parse().unwrap_or(1));
            let lines = (begin, begin.saturating_add(count.max(1) - 1));
            hunks.push(Hunk {
                file: file.clone(),
                lines,
                context: context.trim().to_owned(),
                text: Vec::new(),
            });
            open = true;
        } else if let Some(hunk) = hunks.last_mut().filter(|_| open) {
            hunk.text.push(line.to_owned());
        }
    }
    hunks
}

impl Hunk {
    /// Where it is, as people write it.
    pub fn place(&self) -> String {
        match self.lines {
            (first, last) if last > first => format!("{}:{first}-{last}", self.file),
            (first, _) => format!("{}:{first}", self.file),
        }
    }

    fn names(&self, word: &str) -> bool {
        let holds = |text: &str| {
            let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            parts.into_iter().any(|part| part == word)
        };
        holds(&self.context) || self.text.iter().any(|line| holds(line))
    }
}

/// The hunk that touches the function of a row: one with lines of its executed code, by the debugging information of
/// the second program; else one that names it.
pub fn touching<'a>(
    hunks: &'a [Hunk],
    row: &FunctionDifference,
    second: &Side,
    symbols: &mut Symbols,
) -> Option<&'a Hunk> {
    let mut lines: HashSet<(String, u32)> = HashSet::new();
    for function in &row.functions.1 {
        let known = &second.functions[*function];
        for distance in second.executed[*function].keys() {
            let location = symbols.locate(known.object.as_deref(), known.offset + distance);
            lines.extend(location.frames.into_iter().filter_map(|frame| Some((frame.file?, frame.line?))));
        }
    }
    let within = |hunk: &&Hunk| {
        let here = |(file, line): &(String, u32)| {
            let same = file == &hunk.file || file.ends_with(&format!("/{}", hunk.file));
            same && (hunk.lines.0..=hunk.lines.1).contains(line)
        };
        lines.iter().any(here)
    };
    let word = last_word(&row.name);
    hunks.iter().find(within).or_else(|| hunks.iter().find(|hunk| hunk.names(&word)))
}

/// The last part of a name with a path, without its arguments.
fn last_word(name: &str) -> String {
    let name = normal(name);
    let bare = name.split('(').next().unwrap_or(&name);
    let word = bare.rsplit(|c: char| !c.is_alphanumeric() && c != '_').find(|part| !part.is_empty());
    word.unwrap_or(bare).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(hunks[0].names("hash") && !hunks[0].names("main") && hunks[1].names("main"));
    }
}
