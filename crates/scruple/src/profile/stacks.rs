//! What most formats write: the counts of calling contexts, whatever they count.

use super::{CallProfile, ProfileFrame};
use scruple_core::explain::{Count, OwnCost};
use std::borrow::Cow;

/// The counts of the calling contexts of one program. Programs that are compared have the same columns.
pub struct Stacks<'a> {
    /// The command that was run.
    pub title: Cow<'a, str>,
    /// The frames of the program.
    pub frames: Cow<'a, [ProfileFrame]>,
    /// For each context, the index of its caller, which is smaller, and that of its frame.
    pub nodes: Vec<(Option<usize>, usize)>,
    /// The counts.
    pub columns: Vec<Column<'a>>,
    /// The index of the column that is shown first or, if a format can hold only one, the one that it holds.
    pub main: usize,
    /// The mean number of allocated bytes between two samples, if the counts are estimated from samples.
    pub bytes_between_samples: Option<u64>,
}

/// A count.
pub struct Column<'a> {
    /// What is counted.
    pub word: Cow<'a, str>,
    /// The unit, as pprof calls it.
    pub unit: &'static str,
    /// The counts of each context without its callees.
    pub own: Vec<u64>,
}

impl Stacks<'_> {
    /// Returns the indices of the frames from the process to a context.
    pub fn path(&self, node: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(node), |at| self.nodes[*at].0).map(|at| self.nodes[at].1).collect();
        path.reverse();
        path
    }
}

/// Returns the counts that at least one of the programs has, in the order in which formats write them, with their names
/// and units.
pub fn counted(sides: &[CallProfile]) -> Vec<(Count, &str, &'static str)> {
    const HEAP: [(Count, &str, &str); 4] = [
        (Count::Allocations, "allocations", "count"),
        (Count::Bytes, "bytes", "bytes"),
        (Count::AtPeak, "at_peak", "bytes"),
        (Count::AtEnd, "at_end", "bytes"),
    ];
    let word = sides.iter().map(|side| side.word.as_str()).find(|word| !word.is_empty()).unwrap_or_default();
    let totals: Vec<OwnCost> = sides.iter().map(CallProfile::total).collect();
    let all = [(Count::Instructions, word, "count")].into_iter().chain(HEAP);
    all.filter(|(count, _, _)| totals.iter().any(|total| total.of(*count) > 0)).collect()
}

/// Returns the stacks of programs whose calls were counted.
pub fn of_calls<'a>(sides: &'a [CallProfile], main: Count) -> Vec<Stacks<'a>> {
    let counted = counted(sides);
    let of_side = move |side: &'a CallProfile| {
        let CallProfile { title, frames, nodes, .. } = side;
        let column = |(count, word, unit): &(Count, &'a str, &'static str)| Column {
            word: Cow::Borrowed(*word),
            unit,
            own: nodes.iter().map(|node| node.own.of(*count)).collect(),
        };
        Stacks {
            title: Cow::Borrowed(title),
            frames: Cow::Borrowed(frames),
            nodes: nodes.iter().map(|node| (node.parent, node.frame)).collect(),
            columns: counted.iter().map(column).collect(),
            main: counted.iter().position(|(count, _, _)| *count == main).unwrap_or(0),
            bytes_between_samples: None,
        }
    };
    sides.iter().map(of_side).collect()
}
