//! The differences of two trees by calling context, for a picture.

use super::Tree;
use std::collections::HashMap;

/// What differs in a calling context of either tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The function's name.
    pub name: String,
    /// The caller's context, which stands before it.
    pub parent: Option<usize>,
    /// How much it costs more itself, without a sign.
    pub gross: f64,
    /// How much it and all below it cost more; less, where that is negative.
    pub net: f64,
}

/// The contexts of both trees, in instructions. What one of them does not have counts in full.
pub fn differences(first: &Tree, second: &Tree) -> Vec<Difference> {
    let mut all: Vec<Difference> = Vec::new();
    let mut known: HashMap<(Option<usize>, &str, &str), usize> = HashMap::new();
    let mut own: Vec<f64> = Vec::new();
    for (tree, sign) in [(first, -1.0), (second, 1.0)] {
        let mut place: Vec<usize> = Vec::with_capacity(tree.contexts.len());
        for context in &tree.contexts {
            let function = &tree.functions[context.function];
            let parent = context.parent.map(|parent| place[parent]);
            let at = *known.entry((parent, &function.module, &function.name)).or_insert_with(|| {
                all.push(Difference { name: function.name.clone(), parent, gross: 0.0, net: 0.0 });
                own.push(0.0);
                all.len() - 1
            });
            own[at] += sign * context.cost.instructions as f64;
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
