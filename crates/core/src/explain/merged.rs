//! Merges the contexts of a call tree that have the same key below the same parent.

use super::{Count, Tree};
use std::collections::BTreeMap;

/// A context of a merged tree.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The key of the function.
    pub key: usize,
    /// The index of the context of the caller; absent for the root.
    pub parent: Option<usize>,
    /// The index of the context of each callee, by key.
    pub children: BTreeMap<usize, usize>,
    /// The number of calls from the parent; at least one, since the context was executed.
    pub calls: f64,
    /// The context's own cost.
    pub own: f64,
    /// The cost of the context with everything below it.
    pub inclusive: f64,
}

/// The number of levels up the path of callers that are searched for an outer call of a recursive function.
const FAR: usize = 2000;

/// Merges a tree. A recursive call does not begin a new context: its cost is added to the context of the outer call.
pub fn merged(tree: &Tree, keys: &[usize], count: Count) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut place = Vec::with_capacity(tree.contexts.len());
    for context in &tree.contexts {
        let key = keys[context.function];
        let calls = context.calls as f64;
        let node = match context.parent.map(|parent| place[parent]) {
            None if nodes.is_empty() => None,
            // A merged tree has a single root, so other contexts without a parent go below it.
            None => Some(0),
            Some(parent) => Some(parent),
        };
        let at = match node {
            None => {
                nodes.push(Node { key, ..Node::default() });
                0
            }
            Some(parent) => match on_path(&nodes, parent, key) {
                Some(above) => above,
                None => {
                    let known = nodes[parent].children.get(&key).copied();
                    let at = known.unwrap_or(nodes.len());
                    if known.is_none() {
                        nodes.push(Node { key, parent: Some(parent), ..Node::default() });
                        nodes[parent].children.insert(key, at);
                    }
                    nodes[at].calls += calls;
                    at
                }
            },
        };
        nodes[at].own += context.cost.of(count) as f64;
        place.push(at);
    }
    for node in &mut nodes {
        node.calls = node.calls.max(1.0);
        node.inclusive = node.own;
    }
    for at in (1..nodes.len()).rev() {
        if let Some(parent) = nodes[at].parent {
            nodes[parent].inclusive += nodes[at].inclusive;
        }
    }
    nodes
}

fn on_path(nodes: &[Node], from: usize, key: usize) -> Option<usize> {
    let mut at = Some(from);
    for _ in 0..FAR {
        let node = &nodes[at?];
        // The root does not represent a function.
        if node.key == key && node.parent.is_some() {
            return at;
        }
        at = node.parent;
    }
    None
}
