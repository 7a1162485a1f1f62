//! What the C library does inside its allocator. Which of its functions run depends on the sizes and the order of all
//! requests, so they say nothing by themselves: what they cost is a part of the function that was called.

use super::Tree;

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

#[cfg(test)]
mod tests;
