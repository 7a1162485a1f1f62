//! The difference of two trees by calling context, for a flame graph.

use super::{Count, Tree};
use std::collections::HashMap;

/// The difference of one calling context.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextDifference {
    /// The name of the function.
    pub name: String,
    /// The index of the context of the caller, which precedes this one; absent for a root.
    pub parent: Option<usize>,
    /// The absolute difference of the context's own cost.
    pub gross: f64,
    /// The difference of the context and everything below it; negative where the second tree costs less.
    pub net: f64,
}

/// The differences of all contexts of both trees, in one count. A context that only one tree has counts in full.
pub fn differences(first: &Tree, second: &Tree, count: Count) -> Vec<ContextDifference> {
    let mut all: Vec<ContextDifference> = Vec::new();
    let mut known: HashMap<(Option<usize>, &str, &str), usize> = HashMap::new();
    let mut own: Vec<f64> = Vec::new();
    for (tree, sign) in [(first, -1.0), (second, 1.0)] {
        let mut place: Vec<usize> = Vec::with_capacity(tree.contexts.len());
        for context in &tree.contexts {
            let function = &tree.functions[context.function];
            let parent = context.parent.map(|parent| place[parent]);
            let at = *known.entry((parent, &function.module, &function.name)).or_insert_with(|| {
                all.push(ContextDifference { name: function.name.clone(), parent, gross: 0.0, net: 0.0 });
                own.push(0.0);
                all.len() - 1
            });
            own[at] += sign * context.cost.of(count) as f64;
            place.push(at);
        }
    }
    for at in (0..all.len()).rev() {
        all[at].gross = own[at].abs();
        all[at].net += own[at];
        if let Some(parent) = all[at].parent {
            let net = all[at].net;
            all[parent].net += net;
        }
    }
    all
}
