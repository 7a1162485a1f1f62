//! The difference of two merged trees, divided among the places where it originates.
//!
//! Let a and b be the same context in both trees, called c_a and c_b times, and k = c_b / c_a. If nothing had changed
//! in it, it would cost k times as much as before. So its difference consists of
//!  - own(b) − k · own(a): its own code costs more;
//!  - inclusive(d_a) · (c(d_b) / c(d_a) − k): it calls d more often, for each callee d in both;
//!  - inclusive(d_b): it calls d, which it did not before; − k · inclusive(d_a): it no longer calls d;
//!
//! and the rest: its callees cost more for each call, which is divided in the same way. The sum over all contexts
//! telescopes to the difference of the roots, since inclusive(a) = own(a) + Σ inclusive(d_a).

use super::matching::Key;
use super::merged::Node;

/// A part of the difference.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The function that it is attributed to.
    pub owner: usize,
    /// The function in which it appears.
    pub site: usize,
    /// What it is.
    pub what: What,
    /// The amount.
    pub delta: f64,
    /// Whether the code of the part is the same in both programs, so that the owner must have caused it.
    pub same_code: Option<bool>,
}

/// What a part of the difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// The function's own code.
    Own,
    /// It calls this function more or less often.
    Calls(usize),
    /// It did not call this function before.
    New(usize),
    /// It no longer calls this function.
    Gone(usize),
}

/// Divides the difference. `same` says whether the code of a key is the same in both trees; none where that is unknown.
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
                    // Functions that jump to each other have one caller: the one that started them.
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
    /// The function of the nearest changed code, and whether that is known.
    changed: Option<(usize, Option<bool>)>,
    /// The nearest function that does not belong to a library.
    own: Option<usize>,
}

impl Path {
    /// The path extended by a function.
    fn below(self, key: usize, function: &Key, same: Option<bool>) -> Path {
        let own = if function.library { self.own } else { Some(key) };
        let changed = match same {
            Some(true) => self.changed,
            // Library code that the compiler specialised for its caller counts as the caller's.
            _ if function.library => Some((self.own.unwrap_or(key), same)),
            _ => Some((key, same)),
        };
        Path { changed, own }
    }
}
