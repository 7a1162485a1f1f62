//! A call tree whose functions are matched with those of another one.

use super::allocator::{C_LIBRARY, is_entry_of_allocator};
use super::matching::Key;
use super::names::is_cold_part;
use super::{Context, Function, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// A tree whose functions have keys, which are the same for functions that are compared with each other.
pub struct KeyedTree<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// The key of each function: its place among all keys.
    pub keys: &'a [usize],
    /// For each context, the context that contains it; see [`whole_contexts`].
    pub whole: Vec<usize>,
    /// Whether each function is a part of another one: see [`is_cold_part`].
    cold: Vec<bool>,
    all: &'a [Key],
}

impl<'a> KeyedTree<'a> {
    /// The tree with these keys of its functions, which are places in `all`.
    pub fn of(tree: &'a Tree, keys: &'a [usize], all: &'a [Key]) -> KeyedTree<'a> {
        let cold: Vec<bool> = tree.functions.iter().map(is_cold_part).collect();
        let whole = whole_contexts(tree, |above, function| {
            all[keys[above]].collector || cold[function] && keys[above] == keys[function]
        });
        KeyedTree { tree, keys, whole, cold, all }
    }

    /// The key of the function for which a context counts.
    pub fn key(&self, context: usize) -> usize {
        self.keys[self.tree.contexts[self.whole[context]].function]
    }

    /// Whether a context is not a part of another one.
    pub fn is_whole(&self, context: usize) -> bool {
        self.whole[context] == context
    }

    /// Whether a context begins with a call. A function jumps to a part of itself; that is not a call.
    pub fn is_called(&self, context: usize) -> bool {
        self.is_whole(context) && !self.cold[self.tree.contexts[context].function]
    }

    /// The context above this one if it counts as a caller: the caller of a collector does not decide how often the
    /// collector runs.
    pub fn caller(&self, context: usize) -> Option<usize> {
        let Context { parent, function, .. } = self.tree.contexts[context];
        parent.filter(|_| !self.all[self.keys[function]].collector)
    }
}

/// Returns for each context the context that contains it: itself, unless it is inside of the C library's allocator, or
/// its function is a part of the function above it.
fn whole_contexts(tree: &Tree, is_part: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let of_library: Vec<bool> = tree.functions.iter().map(|function| function.module == C_LIBRARY).collect();
    let is_entry = |function: &Function| {
        function.module == C_LIBRARY && function.names().any(|name| is_entry_of_allocator(name))
    };
    let entries: Vec<bool> = tree.functions.iter().map(is_entry).collect();
    let mut whole: Vec<usize> = Vec::with_capacity(tree.contexts.len());
    for (at, context) in tree.contexts.iter().enumerate() {
        let above = context.parent.map(|parent| whole[parent]);
        let has_inside = |above: &usize| {
            let function = tree.contexts[*above].function;
            is_part(function, context.function) || of_library[context.function] && entries[function]
        };
        whole.push(above.filter(has_inside).unwrap_or(at));
    }
    whole
}

/// For each key, the functions whose cost counts for it, in two trees. If the code of one of them differs, the code of
/// the function with that key counts as different.
pub struct Inside(BTreeMap<usize, BTreeSet<usize>>);

impl Inside {
    /// Collects the keys of both trees.
    pub fn of(trees: &[KeyedTree; 2]) -> Inside {
        let mut inside: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for keyed in trees {
            for at in (0..keyed.whole.len()).filter(|at| !keyed.is_whole(*at)) {
                let part = keyed.keys[keyed.tree.contexts[at].function];
                inside.entry(keyed.key(at)).or_default().insert(part);
            }
        }
        Inside(inside)
    }

    /// The parts of a function.
    pub fn parts(&self, key: usize) -> impl Iterator<Item = &usize> {
        self.0.get(&key).into_iter().flatten()
    }
}
