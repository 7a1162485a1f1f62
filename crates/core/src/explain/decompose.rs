//! The difference of two merged trees, divided among the places where it originates.
//!
//! Let a and b be the same context in both trees, called c_a and c_b times, and k = c_b / c_a. If nothing had changed in
//! it, it would cost k times what it did. So of its difference,
//!  - own(b) − k · own(a) is what its own code costs more;
//!  - inclusive(d_a) · (c(d_b) / c(d_a) − k) is that it calls d more often, for each callee d in both;
//!  - inclusive(d_b) is that it calls d at all, − k · inclusive(d_a) that it does so no more;
//!
//! and the rest is what its callees cost more for each call, which is divided the same way. The sum over all contexts
//! telescopes to the difference of the roots, since inclusive(a) = own(a) + Σ inclusive(d_a).

use super::matching::Key;
use super::merged::Node;

/// A part of the difference.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The function that it is put down to.
    pub owner: usize,
    /// The function in which it shows.
    pub site: usize,
    /// What it is.
    pub what: What,
    /// How much.
    pub delta: f64,
    /// Whether the code is the same for the sake of which it is put down to the owner.
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
    /// It calls this function no more.
    Gone(usize),
}

/// The parts. `same` tells of a key whether its code is the same in both trees; none where that is not known.
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
                    // Functions that jump to each other have no other caller than what started them.
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

/// What is known of the callers of a context.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// The function that the nearest code belongs to that is not the same, and whether that is known.
    changed: Option<(usize, Option<bool>)>,
    /// The nearest function that is none of a library's.
    own: Option<usize>,
}

impl Path {
    /// The path that goes on to a function.
    fn below(self, key: usize, function: &Key, same: Option<bool>) -> Path {
        let own = if function.library { self.own } else { Some(key) };
        let changed = match same {
            Some(true) => self.changed,
            // What the compiler made of a library for its caller is the caller's.
            _ if function.library => Some((self.own.unwrap_or(key), same)),
            _ => Some((key, same)),
        };
        Path { changed, own }
    }
}
