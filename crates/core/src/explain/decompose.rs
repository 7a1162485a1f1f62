//! Divides the difference of two merged trees among the places where it originates.
//!
//! Let a and b be the same context in both trees, called c_a and c_b times, and k = c_b / c_a. If nothing in the
//! context had changed, it would cost k times as much as before. So its difference consists of
//!  - own(b) − k · own(a): its own code costs more;
//!  - inclusive(d_a) · (c(d_b) / c(d_a) − k): it calls d more often, for each callee d in both;
//!  - inclusive(d_b): it calls d, which it did not before; − k · inclusive(d_a): it no longer calls d;
//!
//! and a rest, because its callees cost more per call; the rest is divided in the same way. The sum over all contexts
//! telescopes to the difference of the roots, since inclusive(a) = own(a) + Σ inclusive(d_a).

use super::matching::Key;
use super::merged::{ContextSums, MergedNode};
use super::{Count, PROGRAM};
use scruple_stats::sorting;
use std::collections::HashMap;

/// A part of the difference of two trees, summed over contexts.
#[derive(Clone, Copy, Debug)]
pub struct DifferencePiece {
    /// The key of the function that the part is attributed to.
    pub owner: usize,
    /// The key of the function in which the part appears.
    pub site: usize,
    /// The kind of the part.
    pub what: PieceKind,
    /// The size of the part; negative where the second tree costs less.
    pub delta: f64,
    /// The sum of the absolute sizes that the part has in each context.
    pub gross: f64,
    /// Whether the code of the owner is the same in both programs; absent where that is unknown.
    pub same_code: Option<bool>,
}

/// The kind of a part of the difference, with the key of the called function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PieceKind {
    /// The function's own code costs more or less per call.
    Own,
    /// The function calls this one more or less often per call of its own.
    Calls(usize),
    /// The function calls this one, which it did not call before.
    New(usize),
    /// The function no longer calls this one.
    Gone(usize),
}

impl PieceKind {
    /// Returns the key of the called function.
    pub fn callee(self) -> Option<usize> {
        match self {
            PieceKind::Own => None,
            PieceKind::Calls(key) | PieceKind::New(key) | PieceKind::Gone(key) => Some(key),
        }
    }
}

/// What distinguishes a part: its owner, its site, its kind, and whether the owner's code is the same.
type PieceId = (usize, usize, PieceKind, Option<bool>);

/// Divides the difference of two merged trees into parts. `same` says whether the code of a key is the same in both
/// trees; `None` where that is unknown.
pub fn decompose(
    nodes: &[MergedNode],
    keys: &[Key],
    count: Count,
    same: &mut dyn FnMut(usize) -> Option<bool>,
) -> Vec<DifferencePiece> {
    // There may be millions of contexts, but far fewer functions.
    let mut pieces: HashMap<PieceId, (f64, f64)> = HashMap::new();
    let mut add = |site: usize, (owner, same_code): (usize, Option<bool>), what: PieceKind, delta: f64| {
        if delta != 0.0 {
            let (sum, gross) = pieces.entry((owner, site, what, same_code)).or_default();
            *sum += delta;
            *gross += delta.abs();
        }
    };
    // For each context that both trees have with all its callers: how many times as much it would cost in the second
    // tree if nothing in it had changed, and what is known about its callers.
    let mut open: Vec<Option<(f64, Path)>> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let key = node.key;
        if at == 0 {
            let root = node.both().map(|(old, new)| (new.calls / old.calls, Path::default()));
            if let (Some((old, new)), Some((ratio, _))) = (node.both(), root) {
                add(key, (key, Some(true)), PieceKind::Own, new.own - old.own * ratio);
            }
            open.push(root);
            continue;
        }
        let Some((of_caller, above)) = open[node.parent] else {
            open.push(None);
            continue;
        };
        let caller = &nodes[node.parent];
        // A trampoline only passes control on between functions that jump to each other, so the callee owns the part.
        let (site, of_call) = match () {
            () if keys[key].collector => (key, (key, same(key))),
            () if keys[caller.key].trampoline => (caller.key, (key, same(key))),
            () => (caller.key, above.owner(caller.key)),
        };
        open.push(match node.sides {
            [Some(old), Some(new)] => {
                let ratio = ratio(caller, of_caller, (&old, &new), count);
                add(site, of_call, PieceKind::Calls(key), old.inclusive * (ratio - of_caller));
                let mut path = above;
                // A recursive function is mostly called by what it calls.
                for at in cycle(nodes, at) {
                    let key = nodes[at].key;
                    path = path.below(key, &keys[key], same(key));
                }
                let path = path.below(key, &keys[key], same(key));
                add(key, path.owner(key), PieceKind::Own, new.own - old.own * ratio);
                Some((ratio, path))
            }
            [None, Some(new)] => {
                add(site, of_call, PieceKind::New(key), new.inclusive);
                None
            }
            [Some(old), None] => {
                add(site, of_call, PieceKind::Gone(key), -old.inclusive * of_caller);
                None
            }
            [None, None] => None,
        });
    }
    let piece = |((owner, site, what, same_code), (delta, gross))| DifferencePiece {
        owner,
        site,
        what,
        delta,
        gross,
        same_code,
    };
    let mut pieces: Vec<DifferencePiece> = pieces.into_iter().map(piece).collect();
    sorting::by_key(&mut pieces, |piece| (piece.owner, piece.site, piece.what, piece.same_code));
    pieces
}

/// The contexts through which a context calls itself, the nearest to it first; none unless most of its calls are recursive.
fn cycle(nodes: &[MergedNode], at: usize) -> Vec<usize> {
    let path = std::iter::successors(nodes[at].recursive_caller, |above| Some(nodes[*above].parent));
    let mut path: Vec<usize> = path.take_while(|above| *above != at).collect();
    path.reverse();
    path
}

/// The factor by which the cost of a context would grow in the second tree if nothing in it had changed; `of_caller` is
/// the factor of its caller.
///
/// Executed instructions and requested bytes grow with the calls. Live bytes need not: a function that is called twice
/// as often, and frees what it allocates, holds as much as before. So calls explain at most the whole difference of a
/// live amount. The parts add up to the whole for any ratio, since each is used for both the part of the calls and that
/// of the code.
fn ratio(caller: &MergedNode, of_caller: f64, (old, new): (&ContextSums, &ContextSums), count: Count) -> f64 {
    let calls = new.calls / old.calls;
    let Some((old_caller, new_caller)) = caller.both().filter(|_| count.is_live()) else { return calls };
    if old.inclusive == 0.0 {
        return of_caller;
    }
    let by_calls = of_caller * (calls / (new_caller.calls / old_caller.calls) - 1.0);
    let whole = new.inclusive / old.inclusive - of_caller;
    of_caller + by_calls.clamp(whole.min(0.0), whole.max(0.0))
}

/// What is known about the callers of a context.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// The nearest function whose code is not known to be the same, and what `same` says of it.
    changed: Option<(usize, Option<bool>)>,
    /// The nearest function of the program that does not belong to a library.
    own: Option<usize>,
}

impl Path {
    /// The function that owns a part that appears in a function on this path, and what `same` says of it: the nearest
    /// whose code is not known to be the same.
    fn owner(self, site: usize) -> (usize, Option<bool>) {
        self.changed.unwrap_or((site, Some(true)))
    }

    /// The path of callers extended by a function.
    fn below(self, key: usize, function: &Key, same: Option<bool>) -> Path {
        let is_own = function.module == PROGRAM && !function.library;
        let own = if is_own { Some(key) } else { self.own };
        let changed = match same {
            Some(true) => self.changed,
            // Library code that the compiler specialised for its caller counts as code of the caller.
            _ if function.library => Some((self.own.unwrap_or(key), same)),
            _ => Some((key, same)),
        };
        Path { changed, own }
    }
}
