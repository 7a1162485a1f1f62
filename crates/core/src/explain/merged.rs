//! Merges the contexts of two call trees that have the same key below the same parent into one tree.

use super::{Count, Tree};
use crate::number_map::NumberMap;

/// A context of either tree, or of both.
#[derive(Clone, Copy, Debug)]
pub struct MergedNode {
    /// The key of the function.
    pub key: usize,
    /// The index of the context of the caller, which is smaller; that of the root is its own.
    pub parent: usize,
    /// What the context costs in the first and in the second tree; `None` in a tree that does not have it.
    pub sides: [Option<ContextSums>; 2],
}

/// What a context costs in one tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextSums {
    /// The number of calls from the parent; at least one, since the context was executed.
    pub calls: f64,
    /// The context's own cost.
    pub own: f64,
    /// The cost of the context with everything below it.
    pub inclusive: f64,
}

impl MergedNode {
    /// What the context costs in both trees; `None` unless both have it.
    pub fn both(&self) -> Option<(&ContextSums, &ContextSums)> {
        self.sides[0].as_ref().zip(self.sides[1].as_ref())
    }
}

/// The number of levels up the path of callers that are searched for an outer call of a recursive function.
const FAR: usize = 2000;

/// Merges two trees, whose functions have the given keys. Contexts follow those of their callers. A recursive call does
/// not begin a new context: its cost is added to the context of the outer call. The result is empty unless both trees
/// have contexts.
pub fn merged(trees: [&Tree; 2], keys: [&[usize]; 2], count: Count) -> Vec<MergedNode> {
    let [Some(root), Some(_)] = trees.map(|tree| tree.contexts.first()) else { return Vec::new() };
    let mut nodes = vec![MergedNode { key: keys[0][root.function], parent: 0, sides: [None; 2] }];
    // One map for the whole tree takes far less memory than one for each context.
    let mut known: NumberMap<(u32, u32), u32> = NumberMap::default();
    for (side, tree) in trees.into_iter().enumerate() {
        let mut place: Vec<u32> = Vec::with_capacity(tree.contexts.len());
        for (index, context) in tree.contexts.iter().enumerate() {
            let key = keys[side][context.function];
            // A merged tree has a single root, so other contexts without a parent go below it.
            let parent = context.parent.map_or(0, |parent| place[parent] as usize);
            let above = if index == 0 { Some(0) } else { on_path(&nodes, parent, key) };
            let at = above.unwrap_or_else(|| {
                let at = *known.entry((parent as u32, key as u32)).or_insert(nodes.len() as u32) as usize;
                if at == nodes.len() {
                    nodes.push(MergedNode { key, parent, sides: [None; 2] });
                }
                at
            });
            let sums = nodes[at].sides[side].get_or_insert_default();
            if above.is_none() {
                sums.calls += context.calls as f64;
            }
            sums.own += context.cost.of(count) as f64;
            place.push(at as u32);
        }
    }
    for sums in nodes.iter_mut().flat_map(|node| &mut node.sides).flatten() {
        sums.calls = sums.calls.max(1.0);
        sums.inclusive = sums.own;
    }
    for at in (1..nodes.len()).rev() {
        let MergedNode { parent, sides, .. } = nodes[at];
        for (above, sums) in nodes[parent].sides.iter_mut().zip(sides) {
            if let (Some(above), Some(sums)) = (above, sums) {
                above.inclusive += sums.inclusive;
            }
        }
    }
    nodes
}

fn on_path(nodes: &[MergedNode], from: usize, key: usize) -> Option<usize> {
    let mut at = from;
    for _ in 0..FAR {
        // The root does not represent a function.
        if at == 0 {
            return None;
        }
        if nodes[at].key == key {
            return Some(at);
        }
        at = nodes[at].parent;
    }
    None
}
