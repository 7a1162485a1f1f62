//! Finds names of functions that have no symbol: in the source, or in the Core that GHC dumped.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// A function that returns the text of a source file, given the paths of the program and of the source.
pub type SourceText<'a> = dyn Fn(&Path, &Path) -> Option<String> + Sync + 'a;

/// Words that begin a top-level declaration other than a function.
const OTHERS: [&str; 13] = [
    "module", "import", "where", "data", "type", "newtype", "class", "instance", "infixl", "infixr", "infix",
    "foreign", "deriving",
];

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// The text of a source file on disk; `None` if the file is newer than the program, since its lines may have moved.
pub fn as_built(program: &Path, source: &Path) -> Option<String> {
    let is_older = changed(source)? <= changed(program)?;
    if is_older { fs::read_to_string(source).ok() } else { None }
}

/// The optimised Core of a module (`-ddump-simpl -ddump-to-file`), from the folder of the program or that of the
/// source; `None` if it is newer than the program, or is in the folder of a source that is newer.
pub(super) fn core(program: &Path, source: &Path) -> Option<String> {
    let beside = program.with_file_name(source.file_name()?).with_extension("dump-simpl");
    let at_source = source.with_extension("dump-simpl");
    let fits = |path: &&Path| {
        let after_source = changed(source) <= changed(path) || *path != at_source;
        after_source && changed(path) <= changed(program)
    };
    let paths = [beside.as_path(), at_source.as_path()];
    paths.into_iter().filter(fits).find_map(|path| fs::read_to_string(path).ok())
}

/// The name that the Core gives to a numbered symbol: for `r3uO` it is `$whash` if the Core defines `$whash_r3uO`.
pub(super) fn named_in_core<'a>(core: &'a str, number: &str) -> Option<&'a str> {
    core.lines().filter(|line| !line.starts_with([' ', '-'])).find_map(|line| {
        let word = line.split(' ').next()?;
        word.strip_suffix(number)?.strip_suffix('_').filter(|name| !name.is_empty())
    })
}

/// The name of the function, or the head of the instance, whose declaration contains a line.
pub(super) fn declaration(text: &str, line: u32) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line as usize).collect();
    let begins = |line: &&&str| line.starts_with(|first: char| first.is_alphabetic() || "_(".contains(first));
    let head = lines.iter().rev().find(begins)?;
    let mut words = head.split_whitespace();
    let (first, second) = (words.next()?, words.next().unwrap_or_default());
    if OTHERS.contains(&first) {
        let head = head.split(" where").next().unwrap_or(head);
        return (first == "instance").then(|| head.trim_end().to_owned());
    }
    if let Some(name) = second.strip_prefix('`') {
        return Some(name.trim_end_matches('`').to_owned());
    }
    let is_operator =
        |word: &str| !word.is_empty() && word.chars().all(|c| "!#$%&*+./<=>?@\\^|-~:".contains(c));
    if is_operator(second) && !["=", "|", "::"].contains(&second) {
        return Some(second.to_owned());
    }
    let name = first.trim_start_matches('(').trim_end_matches([')', ',']);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_to_the_declaration_above_them() {
        let text = "module Main where\nhash :: Int -> Int\nhash x = go x\n  where\n    go 0 = 1\n\na `plus` b =\n  a\n\
                    x <+> y = x\n(<->) x y =\n  y\ninstance Show Foo where\n  show _ = \"\"\ndata Foo = Foo\n";
        let names: Vec<Option<String>> = (1..=14).map(|line| declaration(text, line)).collect();
        let names: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
        assert_eq!(
            names,
            [
                "-",
                "hash",
                "hash",
                "hash",
                "hash",
                "hash",
                "plus",
                "plus",
                "<+>",
                "<->",
                "<->",
                "instance Show Foo",
                "instance Show Foo",
                "-"
            ]
        );
        assert_eq!(declaration("", 3), None);
    }

    #[test]
    fn numbers_are_named_where_the_core_defines_them() {
        let core = "-- RHS size\n$whash_r3uO\n  = \\ w_s3rY -> other_r3uP\nparse_r3uP = 1\nmain4 = 2\n";
        assert_eq!(named_in_core(core, "r3uO"), Some("$whash"));
        assert_eq!(named_in_core(core, "r3uP"), Some("parse"));
        assert_eq!(named_in_core(core, "s3rY"), None);
        assert_eq!(named_in_core(core, "n4"), None);
    }
}
