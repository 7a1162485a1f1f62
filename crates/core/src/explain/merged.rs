//! A call tree in which contexts with one key below one parent are merged.

use super::{Count, Tree};
use std::collections::BTreeMap;

/// A context of a merged tree.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// The function's key.
    pub key: usize,
    /// Where it is called from.
    pub parent: Option<usize>,
    /// What it calls, by key.
    pub children: BTreeMap<usize, usize>,
    /// Calls from the parent; at least one, since it was executed.
    pub calls: f64,
    /// Its own cost.
    pub own: f64,
    /// Its cost with everything below.
    pub inclusive: f64,
}

/// How many levels up a function that is already on the path is searched.
const FAR: usize = 2000;

/// Merges a tree; a function that is on the path already does not begin a context of its own.
pub fn merged(tree: &Tree, keys: &[usize], count: Count) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut place = Vec::with_capacity(tree.contexts.len());
    for context in &tree.contexts {
        let key = keys[context.function];
        let calls = context.calls as f64;
        let node = match context.parent.map(|parent| place[parent]) {
            None if nodes.is_empty() => None,
            // A tree has one root; everything else without a parent goes below it.
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
        // The root stands for no function.
        if node.key == key && node.parent.is_some() {
            return at;
        }
        at = node.parent;
    }
    None
}
