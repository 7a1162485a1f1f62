//! Files do not import each other in a circle, so that each can be read without those that use it.

use super::{code, nothing};
use std::collections::{BTreeMap, BTreeSet};

/// A circle that stays: each capability reads its own part of the configuration, which is one file.
const CONFIGURATION: [&str; 2] = ["config", "versions::config"];

/// The files of a crate by the path of their module, and the names that each hands on from others.
struct Modules {
    texts: BTreeMap<String, String>,
    handed_on: BTreeMap<(String, String), String>,
}

impl Modules {
    fn of(folder: &str) -> Modules {
        let path = |name: &str| {
            let inner = name.trim_start_matches(folder).trim_matches('/').trim_end_matches(".rs");
            let parts: Vec<&str> =
                inner.split('/').filter(|part| !["mod", "lib", "main"].contains(part)).collect();
            parts.join("::")
        };
        let program =
            |text: &str| text.split("\n#[cfg(test)]\nmod ").next().map(str::to_owned).unwrap_or_default();
        let texts = code(folder).iter().map(|(name, text)| (path(name), program(text))).collect();
        let mut modules = Modules { texts, handed_on: BTreeMap::new() };
        let mut handed_on = BTreeMap::new();
        for (module, text) in &modules.texts {
            for (is_public, imported) in imports(text) {
                if let Some(whole) = modules.absolute(module, &imported).filter(|_| is_public) {
                    let name = imported.rsplit("::").next().unwrap_or_default();
                    handed_on.insert((module.clone(), name.to_owned()), whole);
                }
            }
        }
        modules.handed_on = handed_on;
        modules
    }

    /// A path as seen from the root of the crate; `None` if it leads out of the crate.
    fn absolute(&self, module: &str, path: &str) -> Option<String> {
        let mut at = module.to_owned();
        let mut rest = path;
        let (first, _) = path.split_once("::").unwrap_or((path, ""));
        match first {
            "crate" => (at, rest) = (String::new(), path.strip_prefix("crate::")?),
            "self" => rest = path.strip_prefix("self::")?,
            "super" => {
                while let Some(inner) = rest.strip_prefix("super::") {
                    at = at.rsplit_once("::").map_or(String::new(), |(parent, _)| parent.to_owned());
                    rest = inner;
                }
            }
            child if !self.texts.contains_key(&joined(module, child)) => return None,
            _ => {}
        }
        Some(joined(&at, rest))
    }

    /// The module of the file that defines the last name of a path.
    fn file(&self, path: &str, depth: u32) -> Option<String> {
        let mut module = path;
        while !self.texts.contains_key(module) {
            module = module.rsplit_once("::").map_or("", |(parent, _)| parent);
        }
        let name = path[module.len()..].trim_start_matches("::").split("::").next().unwrap_or_default();
        match self.handed_on.get(&(module.to_owned(), name.to_owned())) {
            Some(other) if depth < 5 && other != path => self.file(other, depth + 1),
            _ => Some(module.to_owned()),
        }
    }

    /// For each module, those whose definitions it uses.
    fn edges(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, text) in &self.texts {
            let own = edges.entry(module.clone()).or_default();
            let private = imports(text).into_iter().filter(|(is_public, _)| !is_public).map(|(_, path)| path);
            for path in private.chain(inline_paths(text)) {
                let Some(whole) = self.absolute(module, &path) else { continue };
                // A module that is imported itself counts for what is used of it.
                let used = match self.texts.contains_key(&whole) {
                    true => names_after(text, path.rsplit("::").next().unwrap_or_default())
                        .map(|name| joined(&whole, name))
                        .collect(),
                    false => vec![whole],
                };
                own.extend(used.iter().filter_map(|path| self.file(path, 0)).filter(|to| to != module));
            }
        }
        edges
    }
}

fn joined(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// The paths that a text imports, and whether it hands them on.
fn imports(text: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for statement in text.split(';') {
        let Some(begin) = statement.rfind("use ").filter(|at| {
            let line = &statement[..*at];
            let line = &line[line.rfind('\n').map_or(0, |end| end + 1)..];
            line.trim().is_empty() || line.starts_with("pub")
        }) else {
            continue;
        };
        let line = statement[..begin].rsplit('\n').next().unwrap_or_default();
        let mut paths = Vec::new();
        expand("", &statement[begin + 4..], &mut paths);
        found.extend(paths.into_iter().map(|path| (line.starts_with("pub"), path)));
    }
    found
}

/// Writes the paths of a tree of imports, such as `a::{b, c::{self, D}}`, one by one.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, inner)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or_default().trim();
        paths.push(format!("{prefix}{name}").trim_end_matches("::self").to_owned());
        return;
    };
    let (mut depth, mut begin) = (0, 0);
    let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    expand(&format!("{prefix}{}", head.trim()), &inner[begin..at], paths);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths from `crate`, `super` or `self` that a text names outside imports.
fn inline_paths(text: &str) -> Vec<String> {
    let begins = ["crate::", "super::"].iter().flat_map(|word| text.match_indices(word));
    let own = begins.filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == ':'));
    own.map(|(at, _)| {
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let path = text[at..].split(|c| !is_path(c)).next().unwrap_or_default();
        path.trim_end_matches(':').to_owned()
    })
    .filter(|path| path.contains("::") && !path.ends_with("super"))
    .collect()
}

/// The names that a text uses of a module: those after `module::`.
fn names_after<'a>(text: &'a str, module: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(module).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "_:".contains(c));
        let name = text[at + module.len()..].strip_prefix("::")?;
        let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        (!before && !name.is_empty()).then_some(name)
    })
}

/// All modules that can be reached from one.
fn reached(edges: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(at) = open.pop() {
        for to in edges.get(&at).into_iter().flatten() {
            if seen.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    seen
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let mut wrong = BTreeSet::new();
    let mut count = 0;
    for name in ["code", "core", "measure", "scruple", "stats"] {
        let modules = Modules::of(&format!("crates/{name}/src"));
        let edges = modules.edges();
        count += edges.values().map(BTreeSet::len).sum::<usize>();
        let all: BTreeMap<&String, BTreeSet<String>> =
            edges.keys().map(|from| (from, reached(&edges, from))).collect();
        for (from, to) in &all {
            let circle: Vec<&String> = to.iter().filter(|other| all[other].contains(*from)).collect();
            // A module may share its definitions with the parts that it is made of.
            let shares =
                |top: &&&String| circle.iter().all(|one| one == *top || one.starts_with(&format!("{top}::")));
            let is_known = circle.iter().all(|one| CONFIGURATION.contains(&one.as_str()));
            if circle.len() > 1 && circle.iter().find(shares).is_none() && !is_known {
                wrong.insert(format!("{name}: {circle:?}"));
            }
        }
    }
    assert!(count > 2000, "only {count} imports were found");
    nothing("files that import each other", &Vec::from_iter(wrong));
}
