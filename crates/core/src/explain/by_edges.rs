//! Divides the difference of two programs whose functions and the calls between them are known, but not the calling
//! contexts.
//!
//! Let c be the number of calls of a function, n(v, w) that of calls of w by v, and e its price: what a call costs on
//! average, with its callees. The prices follow from e(v) · c(v) = own(v) + Σ n(v, w) · e(w). With k = c_b(v) / c_a(v),
//! a function that both programs have differs by
//!  - own_b(v) − k · own_a(v): its own code costs more;
//!  - e(w) · (n_b(v, w) − k · n_a(v, w)): it calls w more often, for each w.
//!
//! The prices are those of the first program; a function that only the second one has is priced there. Then the sum
//! over all functions telescopes to the difference of the programs, as in the formula for trees. The counts of calls
//! are exact; that each call of a function costs the same, whichever function makes it, is the assumption of gprof
//! (Graham, Kessler, McKusick 1982).

use super::decompose::{DifferencePiece, PieceKind};
use super::matching::Key;
use super::{Count, PROGRAM, Tree};
use scruple_stats::sorting::SortedMap;

/// Says whether the code of a key is the same in both programs.
type SameCodeOf<'a> = dyn FnMut(usize) -> Option<bool> + 'a;

/// A function to which a part is attributed, and whether its code is the same; absent where no caller's code may
/// differ.
type Owner = Option<(usize, Option<bool>)>;

/// Callers whose part is smaller are not followed further.
const PART: f64 = 1e-3;

/// The largest number of callers of callers that are followed.
const FAR: usize = 200;

/// The calls between the keys of one program.
struct CallGraph {
    own: Vec<f64>,
    /// The number of calls of each key; 0 where the program does not have it.
    calls: Vec<f64>,
    /// The callees of each key.
    below: Vec<SortedMap<usize, f64>>,
}

/// Divides the difference of two programs whose trees have edges. `same` says whether the code of a key is the same in
/// both; `None` where that is unknown.
pub fn decompose(
    [first, second]: [&Tree; 2],
    [of_first, of_second]: [&[usize]; 2],
    keys: &[Key],
    count: Count,
    same: &mut SameCodeOf<'_>,
) -> Vec<DifferencePiece> {
    let old = CallGraph::of(first, of_first, keys.len(), count);
    let new = CallGraph::of(second, of_second, keys.len(), count);
    let mut prices = vec![None; keys.len()];
    old.price(&mut prices);
    new.price(&mut prices);
    let callers = KeyCallers::of(&old, &new);
    let mut pieces = Vec::new();
    for key in (0..keys.len()).filter(|key| old.calls[*key] > 0.0 && new.calls[*key] > 0.0) {
        let ratio = new.calls[key] / old.calls[key];
        let mut found = vec![(PieceKind::Own, new.own[key] - old.own[key] * ratio)];
        for (callee, calls) in &new.below[key] {
            let before = old.below[key].get(callee).copied();
            let what = before.map_or(PieceKind::New(*callee), |_| PieceKind::Calls(*callee));
            let price = prices[*callee].unwrap_or_default();
            found.push((what, price * (calls - before.unwrap_or_default() * ratio)));
        }
        for (callee, calls) in
            old.below[key].iter().filter(|(callee, _)| !new.below[key].contains_key(callee))
        {
            found.push((PieceKind::Gone(*callee), -prices[*callee].unwrap_or_default() * calls * ratio));
        }
        let mut owners = None;
        for (what, delta) in found.into_iter().filter(|(_, delta)| *delta != 0.0) {
            match what {
                PieceKind::Calls(callee) | PieceKind::New(callee) | PieceKind::Gone(callee)
                    if keys[key].trampoline =>
                {
                    pieces.push(piece(key, (callee, same(callee)), what, delta));
                }
                _ => {
                    let owners = owners.get_or_insert_with(|| callers.owners(key, keys, same));
                    for (owner, part) in owners.iter() {
                        pieces.push(piece(key, owner.unwrap_or((key, Some(true))), what, delta * part));
                    }
                }
            }
        }
    }
    pieces
}

fn piece(
    site: usize,
    (owner, same_code): (usize, Option<bool>),
    what: PieceKind,
    delta: f64,
) -> DifferencePiece {
    DifferencePiece { owner, site, what, delta, gross: delta.abs(), same_code }
}

impl CallGraph {
    fn of(tree: &Tree, key_of: &[usize], keys: usize, count: Count) -> CallGraph {
        let mut graph =
            CallGraph { own: vec![0.0; keys], calls: vec![0.0; keys], below: vec![SortedMap::new(); keys] };
        let mut is_there = vec![false; keys];
        for context in &tree.contexts {
            let key = key_of[context.function];
            graph.own[key] += context.cost.of(count) as f64;
            is_there[key] = true;
        }
        for edge in &tree.edges {
            let (caller, callee) = (key_of[edge.caller], key_of[edge.callee]);
            *graph.below[caller].entry(callee).or_default() += edge.calls as f64;
        }
        let Some(root) = tree.contexts.first().map(|context| key_of[context.function]) else { return graph };
        // A function without callers counts as called by the program itself.
        let is_member: Vec<bool> = (0..keys).map(|key| is_there[key] && key != root).collect();
        let cycles = graph.cycles(&is_member);
        let mut cycle_of = vec![usize::MAX; keys];
        for (cycle, members) in cycles.iter().enumerate() {
            members.iter().for_each(|key| cycle_of[*key] = cycle);
        }
        let mut is_entered = vec![false; cycles.len()];
        for (caller, below) in graph.below.iter().enumerate() {
            for callee in
                below.keys().filter(|callee| is_member[**callee] && cycle_of[caller] != cycle_of[**callee])
            {
                is_entered[cycle_of[*callee]] = true;
            }
        }
        for (cycle, _) in cycles.iter().zip(is_entered).filter(|(_, is_entered)| !is_entered) {
            graph.below[root].extend(cycle.iter().min().map(|begin| (*begin, 1.0)));
        }
        graph.calls[root] = 1.0;
        for below in &graph.below {
            for (callee, calls) in below {
                graph.calls[*callee] += calls;
            }
        }
        graph
    }

    /// The strongly connected components among the members, callees before callers (Tarjan 1972).
    fn cycles(&self, is_member: &[bool]) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let keys = self.below.len();
        let (mut index, mut low, mut on_stack) = (vec![UNSEEN; keys], vec![UNSEEN; keys], vec![false; keys]);
        let (mut next, mut stack, mut found) = (0, Vec::new(), Vec::new());
        let callees = |key: usize| {
            self.below[key]
                .keys()
                .copied()
                .filter(|callee| is_member[*callee])
                .collect::<Vec<_>>()
                .into_iter()
        };
        for begin in (0..keys).filter(|key| is_member[*key]) {
            if index[begin] != UNSEEN {
                continue;
            }
            let mut open = vec![(begin, callees(begin))];
            while let Some((key, rest)) = open.last_mut() {
                let key = *key;
                if index[key] == UNSEEN {
                    (index[key], low[key], on_stack[key]) = (next, next, true);
                    next += 1;
                    stack.push(key);
                }
                match rest.next() {
                    Some(callee) if index[callee] == UNSEEN => open.push((callee, callees(callee))),
                    Some(callee) if on_stack[callee] => low[key] = low[key].min(index[callee]),
                    Some(_) => {}
                    None => {
                        open.pop();
                        if let Some((above, _)) = open.last() {
                            low[*above] = low[*above].min(low[key]);
                        }
                        if low[key] == index[key] {
                            let at = stack.iter().rposition(|one| *one == key).unwrap_or_default();
                            let cycle = stack.split_off(at);
                            cycle.iter().for_each(|one| on_stack[*one] = false);
                            found.push(cycle);
                        }
                    }
                }
            }
        }
        found
    }

    /// Adds the prices of the functions of this program that have none yet.
    fn price(&self, prices: &mut [Option<f64>]) {
        let is_member: Vec<bool> =
            (0..prices.len()).map(|key| self.calls[key] > 0.0 && prices[key].is_none()).collect();
        for cycle in self.cycles(&is_member) {
            let place: SortedMap<usize, usize> =
                cycle.iter().enumerate().map(|(at, key)| (*key, at)).collect();
            let size = cycle.len();
            let mut rows = vec![vec![0.0; size + 1]; size];
            for (at, key) in cycle.iter().enumerate() {
                rows[at][at] += self.calls[*key];
                rows[at][size] += self.own[*key];
                for (callee, calls) in &self.below[*key] {
                    match place.get(callee) {
                        Some(inside) => rows[at][*inside] -= calls,
                        None => rows[at][size] += calls * prices[*callee].unwrap_or_default(),
                    }
                }
            }
            for (key, price) in cycle.iter().zip(solved(rows)) {
                prices[*key] = Some(price);
            }
        }
    }
}

/// Solves linear equations, whose right side is the last column, by elimination. Each function is called at least as
/// often as its cycle calls it, so that no pivot has to be sought.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let size = rows.len();
    for at in 0..size {
        let (above, below) = rows.split_at_mut(at + 1);
        let pivot = &above[at];
        for row in below.iter_mut().filter(|row| row[at] != 0.0 && pivot[at] != 0.0) {
            let factor = row[at] / pivot[at];
            for column in at..=size {
                row[column] -= factor * pivot[column];
            }
        }
    }
    let mut values = vec![0.0; size];
    for at in (0..size).rev() {
        let rest: f64 = (at + 1..size).map(|column| rows[at][column] * values[column]).sum();
        values[at] = if rows[at][at] == 0.0 { 0.0 } else { (rows[at][size] - rest) / rows[at][at] };
    }
    values
}

/// The callers of each key in both programs, with their numbers of calls.
struct KeyCallers(Vec<SortedMap<usize, f64>>);

impl KeyCallers {
    fn of(old: &CallGraph, new: &CallGraph) -> KeyCallers {
        let mut callers = vec![SortedMap::new(); old.below.len()];
        for graph in [old, new] {
            for (caller, below) in graph.below.iter().enumerate() {
                for (callee, calls) in below.iter().filter(|(callee, _)| **callee != caller) {
                    *callers[*callee].entry(caller).or_insert(0.0) += calls;
                }
            }
        }
        KeyCallers(callers)
    }

    /// The nearest functions, at or above a key, whose code is not known to be the same, each with its part of the
    /// calls. If library code differs, it counts as code of its nearest caller outside of the library.
    fn owners(&self, key: usize, keys: &[Key], same: &mut SameCodeOf<'_>) -> Vec<(Owner, f64)> {
        let mut owners: SortedMap<Owner, f64> = SortedMap::new();
        let mut open: SortedMap<(usize, Owner), f64> = SortedMap::from([((key, None), 1.0)]);
        for _ in 0..FAR {
            let mut next: SortedMap<(usize, Owner), f64> = SortedMap::new();
            for ((at, library), part) in std::mem::take(&mut open) {
                let callers = &self.0[at];
                if callers.is_empty() {
                    *owners.entry(library).or_default() += part;
                    continue;
                }
                let library = match library.map_or_else(|| same(at), |(_, code)| code) {
                    Some(true) => None,
                    code if keys[at].library || library.is_some() && keys[at].module != PROGRAM => {
                        library.or(Some((at, code)))
                    }
                    code => {
                        *owners.entry(Some((at, code))).or_default() += part;
                        continue;
                    }
                };
                let all: f64 = callers.values().sum();
                for (caller, calls) in callers.iter().filter(|(_, calls)| part * **calls / all >= PART) {
                    *next.entry((*caller, library)).or_default() += part * calls / all;
                }
            }
            open = next;
        }
        let all: f64 = owners.values().sum();
        match all > 0.0 {
            true => owners.into_iter().map(|(owner, part)| (owner, part / all)).collect(),
            false => vec![(None, 1.0)],
        }
    }
}

#[cfg(test)]
mod tests;
