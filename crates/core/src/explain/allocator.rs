//! What the C library does inside its allocator. Which of its functions run depends on the sizes and the order of all
//! requests, so they say nothing by themselves: what they cost is a part of the function that was called.

use super::Tree;
use std::collections::BTreeSet;

/// The functions of the C library through which programs allocate and free.
const ENTRIES: [&str; 10] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
];

/// Whether a function is one through which programs allocate and free, by its name.
pub fn is_entry_of_allocator(name: &str) -> bool {
    ENTRIES.contains(&name)
}

/// The file name of the C library, without its version.
const C_LIBRARY: &str = "libc.so";

/// Returns for each context the context of which it is a part: itself, unless it is inside of the C library's allocator.
pub fn whole_contexts(tree: &Tree) -> Vec<usize> {
    let of_library: Vec<bool> = tree.functions.iter().map(|function| function.module == C_LIBRARY).collect();
    let is_entry = |function: usize| {
        of_library[function] && tree.functions[function].names().any(|name| is_entry_of_allocator(name))
    };
    let entries: Vec<bool> = (0..tree.functions.len()).map(is_entry).collect();
    let mut whole: Vec<usize> = Vec::with_capacity(tree.contexts.len());
    for (at, context) in tree.contexts.iter().enumerate() {
        let above = context.parent.map(|parent| whole[parent]);
        let entry =
            above.filter(|above| of_library[context.function] && entries[tree.contexts[*above].function]);
        whole.push(entry.unwrap_or(at));
    }
    whole
}

/// What is inside of the C library's allocator in two trees, by key.
#[derive(Default)]
pub struct Inside {
    /// The functions through which programs allocate and free.
    pub entries: BTreeSet<usize>,
    /// The functions whose cost is a part of these. If the code of one differs, so does that of the entries.
    pub parts: BTreeSet<usize>,
}

impl Inside {
    /// Collects the keys of both trees, whose functions have the given keys.
    pub fn of(trees: [&Tree; 2], keys: [&[usize]; 2]) -> Inside {
        let mut inside = Inside::default();
        for (tree, keys) in trees.into_iter().zip(keys) {
            let key = |context: usize| keys[tree.contexts[context].function];
            for (at, whole) in whole_contexts(tree).into_iter().enumerate().filter(|(at, whole)| at != whole)
            {
                inside.entries.insert(key(whole));
                inside.parts.insert(key(at));
            }
        }
        inside
    }
}

#[cfg(test)]
mod tests;
