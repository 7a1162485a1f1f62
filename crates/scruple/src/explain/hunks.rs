//! The parts of the source difference between two revisions, as git prints them.

use crate::git::Repository;
use scruple_core::harmless_text::plain;
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
    pub(super) removes_only: bool,
    /// The path of the file in the first revision.
    pub(super) old_file: String,
    /// The first and the last line that the second revision changed or removed; `None` if it only added lines.
    pub(super) old_lines: Option<(u32, u32)>,
    /// The function that contains the lines, according to git.
    pub context: String,
    /// The number of other hunks that are as likely to be the cause of the function's difference.
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

    /// Writes the place of the hunk, and how many others are as likely to be the cause.
    pub fn places(&self) -> String {
        format!("{}{}", self.place(), self.other_parts())
    }

    /// Writes the same with the line of the source that begins what the hunk is in, according to git.
    pub fn places_in_context(&self) -> String {
        let context =
            if self.context.is_empty() { String::new() } else { format!(" (‘{}’)", self.context) };
        format!("{}{context}{}", self.place(), self.other_parts())
    }

    /// The same hunk, with the number of others that are as likely to be the cause.
    pub(super) fn beside(&self, others: usize) -> Hunk {
        Hunk { others, ..self.clone() }
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
    pub(super) fn is_in(&self, word: &str) -> bool {
        holds(self.context.split('{').next().unwrap_or_default(), word)
    }

    pub(super) fn mentions(&self, word: &str) -> bool {
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
}
