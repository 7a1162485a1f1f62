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
use super::merged::Node;

/// A part of the difference of two trees.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The key of the function that the part is attributed to.
    pub owner: usize,
    /// The key of the function in which the part appears.
    pub site: usize,
    /// The kind of the part.
    pub what: What,
    /// The size of the part; negative where the second tree costs less.
    pub delta: f64,
    /// Whether the code of the owner is the same in both programs; absent where that is unknown.
    pub same_code: Option<bool>,
}

/// The kind of a part of the difference, with the key of the called function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The function's own code costs more or less per call.
    Own,
    /// The function calls this one more or less often per call of its own.
    Calls(usize),
    /// The function calls this one, which it did not call before.
    New(usize),
    /// The function no longer calls this one.
    Gone(usize),
}

/// Divides the difference of two trees into parts. `same` says whether the code of a key is the same in both trees;
/// `None` where that is unknown.
pub fn decompose(
    first: &[Node],
    second: &[Node],
    keys: &[Key],
    same: &mut dyn FnMut(usize) -> Option<bool>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if first.is_empty() || second.is_empty() {
        return pieces;
    }
    let mut open = vec![(0, 0, Path::default())];
    while let Some((a, b, above)) = open.pop() {
        let (old, new) = (&first[a], &second[b]);
        let key = new.key;
        let path = if b == 0 { above } else { above.below(key, &keys[key], same(key)) };
        let ratio = new.calls / old.calls;
        let mut add = |what: What, delta: f64| {
            if delta != 0.0 {
                let (owner, same_code) = match what {
                    // A trampoline only passes control on between functions that jump to each other, so the callee owns
                    // the part.
                    What::Calls(callee) | What::New(callee) | What::Gone(callee) if keys[key].trampoline => {
                        (callee, same(callee))
                    }
                    _ => path.changed.unwrap_or((key, Some(true))),
                };
                pieces.push(Piece { owner, site: key, what, delta, same_code });
            }
        };
        add(What::Own, new.own - old.own * ratio);
        for (callee, at) in &new.children {
            let child = &second[*at];
            match old.children.get(callee) {
                None => add(What::New(*callee), child.inclusive),
                Some(before) => {
                    let was = &first[*before];
                    add(What::Calls(*callee), was.inclusive * (child.calls / was.calls - ratio));
                    open.push((*before, *at, path));
                }
            }
        }
        for (callee, at) in &old.children {
            if !new.children.contains_key(callee) {
                add(What::Gone(*callee), -first[*at].inclusive * ratio);
            }
        }
    }
    pieces
}

/// What is known about the callers of a context.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// The nearest function whose code is not known to be the same, and what `same` says of it.
    changed: Option<(usize, Option<bool>)>,
    /// The nearest function that does not belong to a library.
    own: Option<usize>,
}

impl Path {
    /// The path of callers extended by a function.
    fn below(self, key: usize, function: &Key, same: Option<bool>) -> Path {
        let own = if function.library { self.own } else { Some(key) };
        let changed = match same {
            Some(true) => self.changed,
            // Library code that the compiler specialised for its caller counts as code of the caller.
            _ if function.library => Some((self.own.unwrap_or(key), same)),
            _ => Some((key, same)),
        };
        Path { changed, own }
    }
}
