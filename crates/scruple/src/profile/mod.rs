//! Call trees of one program as other tools read them: collapsed stacks, callgrind, pprof, speedscope, the Firefox
//! profiler. `read` is the other way.

mod callgrind;
mod collapsed;
mod firefox;
mod pprof;
pub mod read;
mod speedscope;

use crate::show::export::Formats;
use read::Imported;
use scruple_core::explain::{Cost, Count};
use scruple_core::harmless_text::plain;
use scruple_measure::calltree::Side;
use std::path::Path;

/// The formats that a call tree can be written in.
pub const FORMATS: Formats<fn(&CallProfile) -> Vec<u8>, 5> = [
    ("collapsed", |profile| collapsed::text(profile).into_bytes()),
    ("callgrind", |profile| callgrind::text(profile).into_bytes()),
    ("pprof", pprof::bytes),
    ("speedscope", |profile| speedscope::text(profile).into_bytes()),
    ("firefox", |profile| firefox::text(profile).into_bytes()),
];

/// The counts of every context, in the order of the formats: key, unit, and title.
const COUNTS: [(Count, &str, &str); 3] = [
    (Count::Instructions, "instructions", "count"),
    (Count::Allocations, "allocations", "count"),
    (Count::Bytes, "bytes", "bytes"),
];

/// A function of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its name as its language writes it; file and address where it has none.
    pub name: String,
    /// The file that it is in; empty for what is no function.
    pub object: String,
}

/// A calling context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The caller's place; none for processes, which have no caller.
    pub parent: Option<usize>,
    /// The place of the function.
    pub frame: usize,
    /// Calls from the caller.
    pub calls: u64,
    /// Its own cost, and its own requests to the allocator.
    pub own: Cost,
    /// Its cost with callees.
    pub inclusive: Cost,
}

/// The profile of a program by calling context; callers come before callees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallProfile {
    /// The command.
    pub title: String,
    /// The functions.
    pub frames: Vec<Frame>,
    /// The contexts.
    pub nodes: Vec<Node>,
    /// Calls from a context to one above it: from, to, and how many. What they cost is in the contexts already.
    pub recursive: Vec<(usize, usize, u64)>,
    /// What the first count is.
    pub word: String,
}

/// The sums of one function over all contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionSum {
    /// The function's place.
    pub frame: usize,
    /// Calls of it, without those from inside itself.
    pub calls: u64,
    /// Own cost.
    pub own: Cost,
    /// Cost with callees. A function is on a path only once, so nothing is counted twice.
    pub inclusive: Cost,
}

impl CallProfile {
    /// The profile of a run. The tool notes an allocation where the allocator is entered; it belongs to the function that
    /// called that.
    pub fn of(title: &str, side: &Side) -> CallProfile {
        CallProfile::of_side(title, side, true)
    }

    /// A profile that was written before.
    pub fn imported(title: &str, imported: &Imported) -> CallProfile {
        let of_scruple = imported.kind.format == read::OWN;
        let word = imported.kind.word.clone().unwrap_or_default();
        CallProfile { word, ..CallProfile::of_side(title, &imported.side, of_scruple) }
    }

    /// Without the root that stands above processes.
    fn of_side(title: &str, side: &Side, at_allocator: bool) -> CallProfile {
        let frames = side.tree.functions.iter().zip(&side.functions);
        let frames = frames.map(|(named, found)| {
            let object = found.object.as_deref().unwrap_or_default();
            let file = Path::new(object).file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let name = match [&named.shown, &named.name].into_iter().find(|name| !name.is_empty()) {
                Some(name) => name.clone(),
                None if file.is_empty() => "code that the program made".to_owned(),
                None => format!("{file}+{:#x}", found.offset),
            };
            Frame { name: plain(&name), object: plain(object) }
        });
        let contexts = side.tree.contexts.get(1..).unwrap_or_default();
        let nodes = contexts.iter().map(|context| Node {
            // Without the root all indices shift by one.
            parent: context.parent.and_then(|parent| parent.checked_sub(1)),
            frame: context.function,
            calls: context.calls,
            own: Cost { instructions: context.cost.instructions, ..Cost::default() },
            inclusive: Cost::default(),
        });
        let recursive = side.recursive.iter().filter(|(from, to, _)| *from > 0 && *to > 0);
        let mut profile = CallProfile {
            title: plain(title),
            frames: frames.collect(),
            nodes: nodes.collect(),
            recursive: recursive.map(|(from, to, calls)| (from - 1, to - 1, *calls)).collect(),
            word: Count::Instructions.word().to_owned(),
        };
        for (place, context) in contexts.iter().enumerate() {
            let caller = if at_allocator { profile.nodes[place].parent.unwrap_or(place) } else { place };
            add(&mut profile.nodes[caller].own, Cost { instructions: 0, ..context.cost });
        }
        profile.nodes.iter_mut().for_each(|node| node.inclusive = node.own);
        for place in (0..profile.nodes.len()).rev() {
            if let Some(parent) = profile.nodes[place].parent {
                let inclusive = profile.nodes[place].inclusive;
                add(&mut profile.nodes[parent].inclusive, inclusive);
            }
        }
        profile
    }

    /// The sum over all contexts.
    pub fn total(&self) -> Cost {
        let mut sum = Cost::default();
        self.nodes.iter().for_each(|node| add(&mut sum, node.own));
        sum
    }

    /// The functions, as many as there are frames.
    pub fn functions(&self) -> Vec<FunctionSum> {
        let mut sums: Vec<FunctionSum> =
            (0..self.frames.len()).map(|frame| FunctionSum { frame, ..FunctionSum::default() }).collect();
        for node in &self.nodes {
            let sum = &mut sums[node.frame];
            sum.calls = sum.calls.saturating_add(node.calls);
            add(&mut sum.own, node.own);
            add(&mut sum.inclusive, node.inclusive);
        }
        sums
    }

    /// The places of the frames from the process to a context.
    fn path(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = Some(node);
        while let Some(place) = at {
            path.push(self.nodes[place].frame);
            at = self.nodes[place].parent;
        }
        path.reverse();
        path
    }
}

fn add(sum: &mut Cost, more: Cost) {
    sum.instructions = sum.instructions.saturating_add(more.instructions);
    sum.allocations = sum.allocations.saturating_add(more.allocations);
    sum.bytes = sum.bytes.saturating_add(more.bytes);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `main` calls `work; now`, which calls `malloc` twice.
    pub(crate) fn small() -> CallProfile {
        let frame = |name: &str, object: &str| Frame { name: name.to_owned(), object: object.to_owned() };
        let node = |parent, frame, calls, instructions, allocations, bytes| Node {
            parent,
            frame,
            calls,
            own: Cost { instructions, allocations, bytes },
            inclusive: Cost { instructions, allocations, bytes },
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
            word: "instructions".to_owned(),
        };
        for place in (1..4).rev() {
            let more = profile.nodes[place].inclusive;
            let parent = place - 1;
            add(&mut profile.nodes[parent].inclusive, more);
        }
        profile
    }

    #[test]
    fn what_a_function_cost_with_its_callees_is_the_sum_below_it() {
        let profile = small();
        let sums = profile.functions();
        assert_eq!(profile.total(), Cost { instructions: 1160, allocations: 2, bytes: 48 });
        assert_eq!(sums[0].inclusive, profile.total());
        assert_eq!(
            (sums[2].own.instructions, sums[2].inclusive.instructions, sums[3].calls),
            (1000, 1060, 2)
        );
    }
}
