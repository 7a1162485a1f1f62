//! Rules of ARCHITECTURE.md: it lists the edges between modules, the dependencies, and the files of each folder.

use super::{code, has_word, nothing, read, root};
use std::collections::{BTreeMap, BTreeSet};

/// For each module, the modules that ARCHITECTURE.md allows it to use.
fn listed_edges() -> BTreeMap<String, BTreeSet<String>> {
    let text = read("ARCHITECTURE.md");
    let block = text.split("\n```edges\n").nth(1).and_then(|rest| rest.split("\n```").next());
    let block = block.expect("ARCHITECTURE.md has a block that begins with ```edges");
    let edge = |line: &str| {
        let (from, to) = line.split_once("->").unwrap_or_else(|| panic!("no arrow in ‘{line}’"));
        (from.trim().to_owned(), to.split(',').map(|name| name.trim().to_owned()).collect())
    };
    block.lines().filter(|line| !line.trim().is_empty()).map(edge).collect()
}

/// For each module of `crates/scruple`, the modules that it uses.
fn used_edges() -> BTreeMap<String, BTreeSet<String>> {
    let sources = code("crates/scruple/src");
    let module = |name: &str| {
        let inner = name.trim_start_matches("crates/scruple/src/");
        inner.split('/').next().unwrap_or(inner).trim_end_matches(".rs").to_owned()
    };
    let modules: BTreeSet<String> = sources.iter().map(|(name, _)| module(name)).collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, text) in &sources {
        let from = module(name);
        assert!(!text.contains("crate::{"), "{name}: write one `use crate::` for each module");
        // `main.rs` declares the modules and uses them without `crate::`.
        let uses = |other: &String| match from.as_str() {
            "main" => {
                let paths = format!("{other}::");
                let begins =
                    |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c));
                text.match_indices(&paths).any(|(at, _)| begins(at))
            }
            _ => has_word(text, &format!("crate::{other}")),
        };
        let others = modules.iter().filter(|other| **other != from && uses(other)).cloned();
        edges.entry(from.clone()).or_default().extend(others);
    }
    edges.retain(|_, to| !to.is_empty());
    edges
}

#[test]
fn modules_use_only_those_that_the_architecture_lists() {
    let (listed, used) = (listed_edges(), used_edges());
    let allows = |from: &str, to: &str| listed.get(from).is_some_and(|all| all.contains(to));
    let mut wrong = Vec::new();
    for (from, all) in &used {
        let new = all.iter().filter(|to| !allows(from, to));
        wrong.extend(new.map(|to| format!("{from} uses {to}, which ARCHITECTURE.md does not list")));
    }
    let exists = |name: &str| {
        let source = root().join("crates/scruple/src");
        source.join(format!("{name}.rs")).exists() || source.join(name).is_dir()
    };
    for (from, all) in &listed {
        let unused = |to: &&String| exists(to) && !used.get(from).is_some_and(|used| used.contains(*to));
        let gone = all.iter().filter(|_| exists(from)).filter(unused);
        wrong.extend(gone.map(|to| format!("ARCHITECTURE.md lists {from} -> {to}, which is not used")));
    }
    nothing("edges between modules", &wrong);
}

/// The words in backticks of a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn the_architecture_names_only_files_that_exist() {
    let text = read("ARCHITECTURE.md");
    let mut missing = Vec::new();
    let mut seen = 0;
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let mut folder = None;
        for word in quoted(line) {
            let is_name = word.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_');
            match folder {
                _ if word.contains("/src/") && word.ends_with('/') => {
                    folder = Some(root().join("crates").join(word));
                }
                _ if word.contains("/src/") && word.ends_with(".rs") && !word.contains("NAME") => {
                    seen += 1;
                    if !root().join("crates").join(word.trim_start_matches("crates/")).exists() {
                        missing.push(word.to_owned());
                    }
                }
                Some(ref folder) if is_name => {
                    seen += 1;
                    let names = [word.to_owned(), format!("{word}.rs"), format!("{word}.c")];
                    if !names.iter().any(|name| folder.join(name).exists()) {
                        missing.push(format!("{word} in {}", folder.display()));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(seen > 50, "only {seen} names were found");
    nothing("ARCHITECTURE.md names what does not exist", &missing);
}

#[test]
fn every_dependency_has_a_reason() {
    let text = read("ARCHITECTURE.md");
    let table = text.split("\n## Dependencies").nth(1).expect("ARCHITECTURE.md has a table of dependencies");
    let reasons: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    let manifest = read("Cargo.toml");
    let listed =
        manifest.split("[workspace.dependencies]\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let names =
        listed.expect("Cargo.toml has dependencies").lines().filter_map(|line| line.split(' ').next());
    let names = names.filter(|name| !name.starts_with("scruple-"));
    let missing: Vec<String> = names
        .filter(|name| !reasons.iter().any(|row| has_word(&row.replace('-', "_"), &name.replace('-', "_"))))
        .map(str::to_owned)
        .collect();
    nothing("ARCHITECTURE.md gives no reason for these dependencies", &missing);
}
