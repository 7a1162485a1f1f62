//! Writes call trees of one program or two for other tools: collapsed stacks, callgrind, pprof, speedscope, the Firefox
//! profiler. The module `read` does the reverse.

mod callgrind;
mod collapsed;
mod firefox;
mod heap;
mod pprof;
pub mod read;
mod speedscope;
mod stacks;

use crate::render::export::Formats;
use read::{Kind, KnownCallers};
use scruple_code::Side;
use scruple_core::explain::{Count, GENERATED, OwnCost, PROGRAM, is_allocator, nameless};
use scruple_core::harmless_text::plain;
use stacks::of_calls;
use std::path::Path;

pub use heap::{FORMATS as HEAP, bytes as heap_bytes};

/// Writes the call trees of one program, or of two to compare. The count is the one that a format shows first or, if it
/// can hold only one, the one that it holds.
pub type TreeWriter = fn(&[CallProfile], Count) -> Vec<u8>;

/// The formats of call trees.
pub const FORMATS: Formats<TreeWriter, 5> = [
    ("collapsed", |sides, count| collapsed::text(&of_calls(sides, count)).into_bytes()),
    ("callgrind", |sides, _| callgrind::text(sides).into_bytes()),
    ("pprof", |sides, count| pprof::bytes(&of_calls(sides, count))),
    ("speedscope", |sides, count| speedscope::text(&of_calls(sides, count)).into_bytes()),
    ("firefox", |sides, count| firefox::text(&of_calls(sides, count)).into_bytes()),
];

/// A function in a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileFrame {
    /// The name of the function as its language writes it. A function without a name is shown by its file and address.
    pub name: String,
    /// The file that contains the function; empty if the frame is not a function.
    pub object: String,
    /// Whether that file is the program, and not a library.
    pub is_own: bool,
    /// The source file and the line of the call or the allocation, if frames are places and these are known.
    pub line: Option<(String, u32)>,
}

/// A calling context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileNode {
    /// The index of the caller; `None` for processes, which have no caller.
    pub parent: Option<usize>,
    /// The index of the function.
    pub frame: usize,
    /// The number of calls from the caller.
    pub calls: u64,
    /// The cost of the function itself, and its own requests to the allocator.
    pub own: OwnCost,
    /// The cost including callees.
    pub inclusive: OwnCost,
}

/// The profile of a program by calling context. Callers precede their callees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallProfile {
    /// The command that was run.
    pub title: String,
    /// The functions of the program.
    pub frames: Vec<ProfileFrame>,
    /// The calling contexts.
    pub nodes: Vec<ProfileNode>,
    /// The recursive calls: the calling context, the outer context of the same function, and the number of calls. The
    /// costs of these calls are already in the contexts.
    pub recursive: Vec<(usize, usize, u64)>,
    /// The calls of one function by another, by their frames, if the contexts do not show the callers: each function is then
    /// directly below the program.
    pub edges: Option<Vec<(usize, usize, u64)>>,
    /// The name of what the first count counts; empty if the profile contains only allocations.
    pub word: String,
}

/// The sums of one function over all its contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionSum {
    /// The index of the function.
    pub frame: usize,
    /// The number of calls, without recursive ones.
    pub calls: u64,
    /// The cost of the function itself.
    pub own: OwnCost,
    /// The cost including callees. A function is on a path only once, so that no cost is counted twice. It is absent if
    /// callers are not known.
    pub inclusive: Option<OwnCost>,
}

impl CallProfile {
    /// Creates the profile of a run, or of a file. The tool records an allocation at the entry of the allocator; the
    /// profile attributes it to the caller of that, and never to a function that only passes requests on.
    pub fn of(title: &str, side: &Side, kind: &Kind) -> CallProfile {
        let word = kind.word.clone().unwrap_or_default();
        let edges = side.tree.edges.iter().map(|edge| (edge.caller, edge.callee, edge.calls));
        let edges = (kind.callers != KnownCallers::Contexts).then(|| edges.collect());
        CallProfile { word, edges, ..CallProfile::of_side(title, side, kind.format == read::OWN) }
    }

    /// Returns the name of what a count counts.
    pub fn word(&self, count: Count) -> &str {
        match count {
            Count::Instructions => &self.word,
            _ => count.word(),
        }
    }

    /// Returns the first count of the profile: bytes if it contains only allocations.
    pub fn main(&self) -> Count {
        if self.word.is_empty() { Count::Bytes } else { Count::Instructions }
    }

    /// Creates the profile without the root, which is above the processes.
    fn of_side(title: &str, side: &Side, at_allocator: bool) -> CallProfile {
        let frames = side.tree.functions.iter().zip(&side.functions);
        let frames = frames.map(|(named, found)| {
            let object = found.object.as_deref().unwrap_or_default();
            let file = Path::new(object).file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let name = match [&named.shown, &named.name].into_iter().find(|name| !name.is_empty()) {
                Some(name) => name.clone(),
                None if file.is_empty() => GENERATED.to_owned(),
                // Files of other tools do not say where code without a name is.
                None if found.offset == 0 => nameless(file),
                None => format!("{file}+{:#x}", found.offset),
            };
            ProfileFrame {
                name: plain(&name),
                object: plain(object),
                is_own: named.module == PROGRAM,
                line: None,
            }
        });
        let (folded, recursive) = side.tree.folded_by_function();
        let contexts = folded.get(1..).unwrap_or_default();
        let nodes = contexts.iter().map(|context| ProfileNode {
            // All indices are smaller by one than in the tree, because the root is removed.
            parent: context.parent.and_then(|parent| parent.checked_sub(1)),
            frame: context.function,
            calls: context.calls,
            // Live blocks are already attributed to the caller of the allocator.
            own: OwnCost { allocations: 0, bytes: 0, frees: 0, ..context.cost },
            inclusive: OwnCost::default(),
        });
        let recursive = recursive.into_iter().filter(|(from, to, _)| *from > 0 && *to > 0);
        let mut profile = CallProfile {
            title: plain(title),
            frames: frames.collect(),
            nodes: nodes.collect(),
            recursive: recursive.map(|(from, to, calls)| (from - 1, to - 1, calls)).collect(),
            edges: None,
            word: String::new(),
        };
        for (place, context) in contexts.iter().enumerate() {
            let above = |place: usize| profile.nodes[place].parent;
            let mut caller = if at_allocator { above(place).unwrap_or(place) } else { place };
            while let Some(above) = above(caller)
                && is_allocator(&profile.frames[profile.nodes[caller].frame].name)
            {
                caller = above;
            }
            let OwnCost { allocations, bytes, frees, .. } = context.cost;
            profile.nodes[caller].own.add(OwnCost { allocations, bytes, frees, ..OwnCost::default() });
        }
        profile.nodes.iter_mut().for_each(|node| node.inclusive = node.own);
        for place in (0..profile.nodes.len()).rev() {
            if let Some(parent) = profile.nodes[place].parent {
                let inclusive = profile.nodes[place].inclusive;
                profile.nodes[parent].inclusive.add(inclusive);
            }
        }
        profile
    }

    /// Returns the sum of the own costs of all contexts.
    pub fn total(&self) -> OwnCost {
        let mut sum = OwnCost::default();
        self.nodes.iter().for_each(|node| sum.add(node.own));
        sum
    }

    /// Returns the sums of every function, in the order of the frames.
    pub fn functions(&self) -> Vec<FunctionSum> {
        let mut sums: Vec<FunctionSum> =
            (0..self.frames.len()).map(|frame| FunctionSum { frame, ..FunctionSum::default() }).collect();
        for node in &self.nodes {
            let sum = &mut sums[node.frame];
            sum.own.add(node.own);
            if self.edges.is_none() {
                sum.calls = sum.calls.saturating_add(node.calls);
                sum.inclusive.get_or_insert_default().add(node.inclusive);
            }
        }
        for (_, callee, calls) in self.edges.iter().flatten().filter(|(caller, callee, _)| caller != callee) {
            sums[*callee].calls = sums[*callee].calls.saturating_add(*calls);
        }
        sums
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a profile in which `main` calls `work; now`, which calls `malloc` twice.
    pub(crate) fn small() -> CallProfile {
        let frame = |name: &str, object: &str| ProfileFrame {
            name: name.to_owned(),
            object: object.to_owned(),
            is_own: object == "/bin/app",
            line: None,
        };
        let node = |parent, frame, calls, instructions, allocations, bytes| ProfileNode {
            parent,
            frame,
            calls,
            own: OwnCost { instructions, allocations, bytes, ..OwnCost::default() },
            inclusive: OwnCost { instructions, allocations, bytes, ..OwnCost::default() },
        };
        let mut profile = CallProfile {
            title: "./app".to_owned(),
            frames: vec![
                frame("the program", ""),
                frame("main", "/bin/app"),
                frame("work; now", "/bin/app"),
                frame("malloc", "/lib/libc.so"),
            ],
            nodes: vec![
                node(None, 0, 1, 0, 0, 0),
                node(Some(0), 1, 1, 100, 0, 0),
                node(Some(1), 2, 1, 1000, 2, 48),
                node(Some(2), 3, 2, 60, 0, 0),
            ],
            recursive: Vec::new(),
            edges: None,
            word: "instructions".to_owned(),
        };
        for place in (1..4).rev() {
            let more = profile.nodes[place].inclusive;
            let parent = place - 1;
            profile.nodes[parent].inclusive.add(more);
        }
        profile
    }

    #[test]
    fn the_inclusive_cost_of_a_function_is_the_sum_below_it() {
        let profile = small();
        let sums = profile.functions();
        assert_eq!(
            profile.total(),
            OwnCost { instructions: 1160, allocations: 2, bytes: 48, ..OwnCost::default() }
        );
        assert_eq!(sums[0].inclusive, Some(profile.total()));
        assert_eq!(
            (sums[2].own.instructions, sums[2].inclusive.unwrap_or_default().instructions, sums[3].calls),
            (1000, 1060, 2)
        );
    }
}
