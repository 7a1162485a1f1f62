//! Merges the contexts of two call trees that have the same key below the same parent into one tree.

use super::Count;
use super::keyed_tree::KeyedTree;
use crate::number_map::NumberMap;
use scruple_stats::sorting;

/// A context of either tree, or of both.
#[derive(Clone, Copy, Debug)]
pub struct MergedNode {
    /// The key of the function.
    pub key: usize,
    /// The index of the context of the caller, which is smaller; that of the root is its own.
    pub parent: usize,
    /// What the context costs in the first and in the second tree; `None` in a tree that does not have it.
    pub sides: [Option<ContextSums>; 2],
    /// If most calls of the context are recursive: the context that makes most of the recursive calls, which is this
    /// one or below it.
    pub recursive_caller: Option<usize>,
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

/// Two trees as one.
pub struct MergedTrees<'a> {
    trees: &'a [KeyedTree<'a>; 2],
    /// The contexts; those of callers stand before those of what they call.
    nodes: Vec<MergedNode>,
    /// The place of each context of both trees among these.
    places: [Vec<u32>; 2],
}

impl<'a> MergedTrees<'a> {
    /// Merges two trees, whose functions have the given keys. The cost of a recursive call is added to a context on the
    /// path: to that of the outer call of the function by the same caller if both trees tell these apart
    /// ([`Tree::folds_by_call`]), else to that of the outer call. The result is empty unless both trees have contexts.
    ///
    /// [`Tree::folds_by_call`]: super::Tree::folds_by_call
    pub fn of(trees: &'a [KeyedTree<'a>; 2]) -> MergedTrees<'a> {
        let mut places = [Vec::new(), Vec::new()];
        if trees.iter().any(|keyed| keyed.tree.contexts.is_empty()) {
            return MergedTrees { trees, nodes: Vec::new(), places };
        }
        let by_call = trees.iter().all(|keyed| keyed.tree.folds_by_call);
        let mut nodes =
            vec![MergedNode { key: trees[0].key(0), parent: 0, sides: [None; 2], recursive_caller: None }];
        // One map for the whole tree takes far less memory than one for each context.
        let mut known: NumberMap<(u32, u32), u32> = NumberMap::default();
        let mut recursive: NumberMap<(u32, u32), f64> = NumberMap::default();
        for (side, (keyed, place)) in trees.iter().zip(&mut places).enumerate() {
            let tree = keyed.tree;
            place.reserve_exact(tree.contexts.len());
            for (index, context) in tree.contexts.iter().enumerate() {
                if !keyed.is_whole(index) {
                    place.push(place[keyed.whole[index]]);
                    continue;
                }
                let key = keyed.key(index);
                // A merged tree has a single root, so other contexts without a parent go below it.
                let parent = keyed.caller(index).map_or(0, |parent| place[parent] as usize);
                let above = if index == 0 { Some(0) } else { on_path(&nodes, parent, key, by_call) };
                let at = above.unwrap_or_else(|| {
                    let at = *known.entry((parent as u32, key as u32)).or_insert(nodes.len() as u32) as usize;
                    if at == nodes.len() {
                        nodes.push(MergedNode { key, parent, sides: [None; 2], recursive_caller: None });
                    }
                    at
                });
                let sums = nodes[at].sides[side].get_or_insert_default();
                match above {
                    None => sums.calls += context.calls as f64,
                    Some(_) => {
                        *recursive.entry((at as u32, parent as u32)).or_default() += context.calls as f64
                    }
                }
                place.push(at as u32);
            }
            for (from, to, calls) in tree.recursive.iter().filter(|(_, to, _)| keyed.is_whole(*to)) {
                *recursive.entry((place[*to], place[*from])).or_default() += *calls as f64;
            }
        }
        find_recursive_callers(&mut nodes, recursive.into_iter().collect());
        for sums in nodes.iter_mut().flat_map(|node| &mut node.sides).flatten() {
            sums.calls = sums.calls.max(1.0);
        }
        MergedTrees { trees, nodes, places }
    }

    /// The contexts, with the costs in one count.
    pub fn nodes(&mut self, count: Count) -> &[MergedNode] {
        let nodes = &mut self.nodes;
        nodes.iter_mut().flat_map(|node| &mut node.sides).flatten().for_each(|sums| sums.own = 0.0);
        for (side, (keyed, place)) in self.trees.iter().zip(&self.places).enumerate() {
            for (context, at) in keyed.tree.contexts.iter().zip(place) {
                if let Some(sums) = &mut nodes[*at as usize].sides[side] {
                    sums.own += context.cost.of(count) as f64;
                }
            }
        }
        nodes
            .iter_mut()
            .flat_map(|node| &mut node.sides)
            .flatten()
            .for_each(|sums| sums.inclusive = sums.own);
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
}

/// Notes which context makes most recursive calls of each context. `calls` are those by called and calling context.
fn find_recursive_callers(nodes: &mut [MergedNode], mut calls: Vec<((u32, u32), f64)>) {
    sorting::by(&mut calls, |a, b| a.0.cmp(&b.0));
    for of_one in calls.chunk_by(|a, b| a.0.0 == b.0.0) {
        let called = of_one[0].0.0 as usize;
        let outer: f64 = nodes[called].sides.iter().flatten().map(|sums| sums.calls).sum();
        if of_one.iter().map(|(_, calls)| calls).sum::<f64>() <= outer {
            continue;
        }
        let most = of_one.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|((_, caller), _)| *caller as usize);
        // If several functions of one tree are one function of the other, a recursive call may lead to a context that
        // is not above it.
        nodes[called].recursive_caller = most.filter(|most| {
            std::iter::successors(Some(*most), |at| (*at > 0).then(|| nodes[*at].parent))
                .any(|at| at == called)
        });
    }
}

fn on_path(nodes: &[MergedNode], from: usize, key: usize, by_call: bool) -> Option<usize> {
    let mut at = from;
    for _ in 0..FAR {
        // The root does not represent a function.
        if at == 0 {
            return None;
        }
        if nodes[at].key == key && (!by_call || nodes[nodes[at].parent].key == nodes[from].key) {
            return Some(at);
        }
        at = nodes[at].parent;
    }
    None
}
