//! A call tree whose functions are matched with those of another one.

use super::Tree;
use super::allocator::whole_contexts;
use std::collections::BTreeSet;

/// A tree whose functions have keys, which are the same for functions that are compared with each other.
pub struct KeyedTree<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// The key of each function.
    pub keys: &'a [usize],
    /// The context of which each context is a part; see [`whole_contexts`].
    pub whole: Vec<usize>,
}

impl<'a> KeyedTree<'a> {
    /// The tree with these keys of its functions.
    pub fn of(tree: &'a Tree, keys: &'a [usize]) -> KeyedTree<'a> {
        KeyedTree { tree, keys, whole: whole_contexts(tree) }
    }

    /// The key of the function for which a context counts.
    pub fn key(&self, context: usize) -> usize {
        self.keys[self.tree.contexts[self.whole[context]].function]
    }

    /// Whether a context is not a part of another one.
    pub fn is_whole(&self, context: usize) -> bool {
        self.whole[context] == context
    }
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
    /// Collects the keys of both trees.
    pub fn of(trees: &[KeyedTree; 2]) -> Inside {
        let mut inside = Inside::default();
        for keyed in trees {
            for at in (0..keyed.whole.len()).filter(|at| !keyed.is_whole(*at)) {
                inside.entries.insert(keyed.key(at));
                inside.parts.insert(keyed.keys[keyed.tree.contexts[at].function]);
            }
        }
        inside
    }
}
