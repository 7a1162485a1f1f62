//! Rules of names and of wording.

use super::{code, nothing, read, texts};
use std::collections::BTreeMap;

/// Constructions that readers had to read twice, each with a plain one.
const PHRASES: [(&str, &str); 22] = [
    ("told apart", "distinguished"),
    ("tell apart", "distinguish"),
    ("tells apart", "distinguishes"),
    ("beside other work", "at a load from other work"),
    ("be told from", "be distinguished from"),
    ("can't be told", "can't tell"),
    ("can’t be told", "can’t tell"),
    ("can be had", "is available"),
    ("nothing can be said", "can't tell"),
    ("in vain", "without result"),
    ("behind `--`", "after `--`"),
    ("behind ‘--’", "after ‘--’"),
    ("is no whole", "is not a whole"),
    ("is no number", "is not a number"),
    ("what they differ by", "their difference"),
    ("of which nothing", "without"),
    ("that which", "what"),
    ("takes the place of", "replaces"),
    ("in the place of", "in place of"),
    ("nobody knows", "it is unknown"),
    ("cannot be had", "is not available"),
    ("spoilt", "void"),
];

/// The name of the type that a line of code declares. Types of a trait (`type Item = …` in an `impl`) have the names
/// that the trait gives them.
fn declared_type(line: &str) -> Option<&str> {
    let inner = line.trim_start();
    let bare = match inner.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => inner,
    };
    let (keyword, rest) = bare.split_once(' ')?;
    let is_type =
        ["struct", "enum", "trait", "union"].contains(&keyword) || (keyword == "type" && inner == line);
    let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
    Some(name).filter(|_| is_type && name.starts_with(|c: char| c.is_ascii_uppercase()))
}

#[test]
fn the_name_of_a_type_says_what_it_is() {
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // Tests and examples are programs of their own, and SDKs are parts of other people's programs.
    let own = |file: &str| !["/tests/", "/examples/", "crates/fuzz/"].iter().any(|part| file.contains(part));
    for (file, text) in code("crates").into_iter().filter(|(file, _)| own(file)) {
        for name in text.lines().filter_map(declared_type) {
            declared.entry(name.to_owned()).or_default().push(file.clone());
        }
    }
    assert!(declared.len() > 1000, "only {} names of types were found", declared.len());
    let many = declared.iter().filter(|(_, files)| files.len() > 1);
    let many: Vec<String> = many.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    nothing("give these types names that distinguish them", &many);
}

#[test]
fn nothing_is_said_in_a_way_that_readers_had_to_read_twice() {
    let folders = ["crates", "docs", "sdk"].map(texts).into_iter().flatten();
    let documents = ["README.md", "DESIGN.md", "ARCHITECTURE.md", "COMPARE.md", "CONTRIBUTING.md"];
    let documents = documents.map(|name| (name.to_owned(), read(name)));
    let mut found = Vec::new();
    for (name, text) in folders.chain(documents) {
        let prose = [".rs", ".md", ".c", ".h", ".py"].iter().any(|ending| name.ends_with(ending));
        // Pages of the gallery are results as they were printed.
        if !prose || name.contains("tests/tidy/") || name.starts_with("docs/gallery") {
            continue;
        }
        // A phrase may be divided between two lines of a comment or of a string.
        let lines = text.lines().map(|line| {
            let line = line.trim().trim_end_matches('\\').trim_end();
            line.trim_start_matches("///").trim_start_matches("//!").trim_start_matches("//").trim_start()
        });
        let flat = lines.collect::<Vec<_>>().join(" ");
        let used = PHRASES.iter().filter(|(phrase, _)| flat.contains(phrase));
        found.extend(used.map(|(phrase, plain)| format!("{name}: ‘{phrase}’, for instance ‘{plain}’")));
    }
    nothing("say these in plain words", &found);
}

/// The arguments of a macro, given the text after its opening parenthesis.
fn arguments(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth, mut in_text, mut escaped) = (Vec::new(), 0, 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ')' | ']' | '}' => {
                found.push(text[start..at].trim());
                return found;
            }
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The messages of a file in which a path stands without quotes. `macro_name` begins a message; `fields` returns the names
/// of the paths that the type of an error has, given the text after the message.
fn unquoted_paths(text: &str, macro_name: &str, fields: fn(&str) -> Vec<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(macro_name) {
        let after = &text[at + macro_name.len()..];
        let words = arguments(after);
        let Some(message) = words.iter().position(|word| word.starts_with('"')) else { continue };
        let literal = words[message].trim_matches('"');
        let plain = |word: &&str| word.len() > 2 && word.chars().all(|c| c.is_ascii_lowercase());
        // A text with `&&` is a command of a shell.
        if literal.split_whitespace().filter(plain).count() < 2 || literal.contains("&&") {
            continue;
        }
        let (mut positional, paths) = (words[message + 1..].iter(), fields(after));
        for (open, _) in literal.match_indices('{') {
            let name = literal[open + 1..].split(['}', ':']).next().unwrap_or_default();
            let argument =
                if name.is_empty() { positional.next().copied().unwrap_or_default() } else { name };
            let is_path = argument.ends_with(".display()") || paths.contains(&argument);
            if is_path && !literal[..open].ends_with('‘') {
                found.push(literal.to_owned());
            }
        }
    }
    found
}

/// The fields of an error's variant that are paths, given the text after its message.
fn path_fields(after: &str) -> Vec<&str> {
    let variant = after.split("#[error(").next().unwrap_or_default();
    let variant = variant.split("\n}").next().unwrap_or_default();
    let named = variant.lines().filter_map(|line| line.trim().strip_suffix(": PathBuf,"));
    named.chain(variant.contains("(PathBuf)").then_some("0")).collect()
}

#[test]
fn paths_in_messages_stand_in_quotes() {
    let mut found = Vec::new();
    for (file, text) in code("crates").into_iter().filter(|(file, _)| !file.contains("/tests/")) {
        let mut messages = unquoted_paths(&text, "#[error(", path_fields);
        for formatted in ["format!(", "writeln!(", "write!("] {
            messages.extend(unquoted_paths(&text, formatted, |_| vec!["path", "folder", "log"]));
        }
        found.extend(messages.into_iter().map(|message| format!("{file}: {message}")));
    }
    nothing("write ‘…’ around these paths, so that spaces in them do not mislead", &found);
}
