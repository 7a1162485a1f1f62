//! Finds the contexts that are below another context of their own function. The time is proportional to the number of
//! contexts, however deep they are.

use super::{Context, Tree};
use std::collections::HashMap;

/// A step of a walk through a tree of contexts.
enum WalkStep {
    /// The walk enters a context, and then all below it.
    Enter(usize),
    /// The walk has been to all contexts below this one.
    Leave(usize),
}

/// A walk through contexts whose parents stand before them: each one, and then those below it.
fn walk(parents: &[Option<usize>]) -> Vec<WalkStep> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    let mut next = Vec::new();
    for (context, parent) in parents.iter().enumerate().rev() {
        match parent {
            Some(parent) => below[*parent].push(context),
            None => next.push(WalkStep::Enter(context)),
        }
    }
    let mut steps = Vec::with_capacity(2 * parents.len());
    while let Some(step) = next.pop() {
        if let WalkStep::Enter(context) = step {
            next.push(WalkStep::Leave(context));
            next.extend(std::mem::take(&mut below[context]).into_iter().map(WalkStep::Enter));
        }
        steps.push(step);
    }
    steps
}

/// For each context, whether a context above it is of the same function. Parents stand before their children.
pub fn below_themselves(parents: &[Option<usize>], functions: &[Option<usize>]) -> Vec<bool> {
    let mut on_path: HashMap<usize, usize> = HashMap::new();
    let mut below = vec![false; parents.len()];
    for step in walk(parents) {
        match step {
            WalkStep::Enter(context) => {
                let Some(function) = functions[context] else { continue };
                let times = on_path.entry(function).or_default();
                below[context] = *times > 0;
                *times += 1;
            }
            WalkStep::Leave(context) => {
                if let Some(times) = functions[context].and_then(|function| on_path.get_mut(&function)) {
                    *times -= 1;
                }
            }
        }
    }
    below
}

/// The path from the root to a folded context. Entries that a recursive call cuts off stay beyond the length until
/// others overwrite them, so that a step changes one place only.
#[derive(Default)]
struct FoldedPath {
    nodes: Vec<usize>,
    length: usize,
    /// The last place of each function, which may be overwritten by now.
    of_function: HashMap<usize, usize>,
}

/// What a step has changed in a path.
struct PathChange {
    length: usize,
    node: Option<usize>,
    of_function: Option<usize>,
}

impl FoldedPath {
    fn last(&self) -> Option<usize> {
        self.length.checked_sub(1).map(|last| self.nodes[last])
    }

    /// The place of the context of a function.
    fn place(&self, function: usize, folded: &[Context]) -> Option<usize> {
        let place = *self.of_function.get(&function)?;
        (place < self.length && folded[self.nodes[place]].function == function).then_some(place)
    }

    fn cut(&mut self, length: usize) -> PathChange {
        PathChange { length: std::mem::replace(&mut self.length, length), node: None, of_function: None }
    }

    fn push(&mut self, node: usize, function: usize) -> PathChange {
        let place = self.length;
        let node = match self.nodes.get_mut(place) {
            Some(known) => Some(std::mem::replace(known, node)),
            None => {
                self.nodes.push(node);
                None
            }
        };
        let of_function = self.of_function.insert(function, place);
        self.length += 1;
        PathChange { length: place, node, of_function }
    }

    fn undo(&mut self, change: &PathChange, function: usize) {
        if let Some(node) = change.node {
            self.nodes[change.length] = node;
        }
        if let Some(place) = change.of_function {
            self.of_function.insert(function, place);
        }
        self.length = change.length;
    }
}

impl Tree {
    /// The contexts and the recursive calls if a recursive call leads back to the outer context of its function,
    /// whichever function calls it. A path then contains a function at most once.
    pub fn folded_by_function(&self) -> (Vec<Context>, Vec<(usize, usize, u64)>) {
        if !self.folds_by_call {
            return (self.contexts.clone(), self.recursive.clone());
        }
        let mut folded: Vec<Context> = Vec::new();
        let mut recursive = Vec::new();
        let mut places = vec![0; self.contexts.len()];
        let mut known: HashMap<(usize, usize), usize> = HashMap::new();
        let mut path = FoldedPath::default();
        let mut changes: Vec<PathChange> = Vec::new();
        let parents: Vec<Option<usize>> = self.contexts.iter().map(|context| context.parent).collect();
        for step in walk(&parents) {
            let at = match step {
                WalkStep::Enter(at) => at,
                WalkStep::Leave(at) => {
                    if let Some(change) = changes.pop() {
                        path.undo(&change, self.contexts[at].function);
                    }
                    continue;
                }
            };
            let context = &self.contexts[at];
            let parent = path.last();
            let outer = path.place(context.function, &folded);
            let same = parent.and_then(|parent| known.get(&(parent, context.function)).copied());
            if let (None, None) = (outer, same) {
                known.extend(parent.map(|parent| ((parent, context.function), folded.len())));
                places[at] = folded.len();
                folded.push(Context { parent, ..*context });
                changes.push(path.push(places[at], context.function));
                continue;
            }
            let to = outer.map(|place| path.nodes[place]).or(same).unwrap_or_default();
            match outer {
                Some(place) => {
                    recursive.extend(parent.map(|parent| (parent, to, context.calls)));
                    folded[to].recursive = folded[to].recursive.saturating_add(context.calls);
                    changes.push(path.cut(place + 1));
                }
                None => {
                    folded[to].calls = folded[to].calls.saturating_add(context.calls);
                    changes.push(path.push(to, context.function));
                }
            }
            folded[to].recursive = folded[to].recursive.saturating_add(context.recursive);
            folded[to].cost.add(context.cost);
            places[at] = to;
        }
        recursive.extend(self.recursive.iter().map(|(from, to, calls)| (places[*from], places[*to], *calls)));
        (folded, recursive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of this many contexts of different functions, below whose last one the first function is called again and
    /// again, each time with a function of its own below it.
    fn deep(depth: usize) -> Tree {
        let context = |parent, function| Context { parent, function, calls: 1, ..Context::default() };
        let mut contexts: Vec<Context> = (0..depth).map(|at| context(at.checked_sub(1), at)).collect();
        for number in 0..depth {
            contexts.push(context(Some(depth - 1), 1));
            contexts.push(context(Some(contexts.len() - 1), depth + number));
        }
        Tree { contexts, folds_by_call: true, ..Tree::default() }
    }

    #[test]
    fn a_deep_tree_is_folded() {
        let tree = deep(100_000);
        let (folded, recursive) = tree.folded_by_function();
        assert_eq!((folded.len(), recursive.len()), (200_000, 100_000));
        assert!(folded[100_000..].iter().all(|context| context.parent == Some(1)));
        assert!(recursive.iter().all(|calls| *calls == (99_999, 1, 1)));
        assert_eq!(folded[1].recursive, 100_000);
    }

    #[test]
    fn what_is_below_itself_in_a_deep_tree_is_known() {
        let tree = deep(100_000);
        let parents: Vec<_> = tree.contexts.iter().map(|context| context.parent).collect();
        let functions: Vec<_> = tree.contexts.iter().map(|context| Some(context.function)).collect();
        let below = below_themselves(&parents, &functions);
        assert_eq!(below.iter().filter(|below| **below).count(), 100_000);
        assert!(below[100_000] && !below[100_001]);
        let nameless = vec![None; parents.len()];
        assert!(!below_themselves(&parents, &nameless).contains(&true));
    }

    #[test]
    fn a_path_that_recursion_cut_off_is_whole_again_beside_it() {
        // 0 calls 1, 1 calls 2, and 2 calls 1 again, which calls 3; beside that, 2 calls 3 as well, and 3 calls 2.
        let parents = [None, Some(0), Some(1), Some(2), Some(3), Some(2), Some(5)];
        let functions = [0, 1, 2, 1, 3, 3, 2];
        let contexts = parents.iter().zip(functions);
        let contexts = contexts.map(|(parent, function)| Context {
            parent: *parent,
            function,
            calls: 1,
            ..Context::default()
        });
        let tree = Tree { contexts: contexts.collect(), folds_by_call: true, ..Tree::default() };
        let (folded, recursive) = tree.folded_by_function();
        let shown: Vec<_> = folded.iter().map(|context| (context.parent, context.function)).collect();
        assert_eq!(shown, [(None, 0), (Some(0), 1), (Some(1), 2), (Some(1), 3), (Some(2), 3)]);
        assert_eq!(recursive, [(2, 1, 1), (4, 2, 1)]);
    }
}
