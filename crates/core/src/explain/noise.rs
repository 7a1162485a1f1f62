//! Explains programs that do not repeat, whose variation from launch to launch must not appear as a difference.

use super::{DifferencePart, Explanation};
use scruple_stats::sorting;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A difference must exceed the largest deviation among launches of one program by this factor: chance sometimes
/// exceeds the largest deviation of a few launches, and there are many rows.
const FACTOR: f64 = 3.0;

/// The variation of a function is at most this many times the difference between two totals of one program: the
/// variations of functions can cancel out, but hardly to less than a thousandth.
pub const CANCELLED: f64 = 1000.0;

/// The mean of the explanations of pairs of launches, with the spread of the totals and of each row; `None` without
/// pairs. The spread is [`FACTOR`] times the largest of the deviations of pairs from their mean and of the differences
/// `within` one program. A total is known to vary at least by `of_totals`; with a single pair nothing else is known, so
/// that each row may vary by [`CANCELLED`] times as much. The parts of a row are means as well, so that they add up to it.
/// A row has the numbers of calls of the first pair that has it, and the functions of the first pair's trees, or none if
/// that pair lacks the row.
pub fn mean_with_spread(
    pairs: Vec<Explanation>,
    within: &[Explanation],
    of_totals: f64,
) -> Option<Explanation> {
    let runs = pairs.len() as f64;
    let of_rows = if pairs.len() == 1 && within.is_empty() { CANCELLED * of_totals } else { 0.0 };
    let mean = |of: fn(&Explanation) -> f64| pairs.iter().map(of).sum::<f64>() / runs;
    let totals = (mean(|one| one.totals.0), mean(|one| one.totals.1));
    type PartId = (String, String);
    let id = |row: &super::FunctionDifference| -> PartId { (row.module.clone(), super::group(&row.name)) };
    let mut deltas: HashMap<PartId, Vec<f64>> = HashMap::new();
    for pair in &pairs {
        pair.rows.iter().for_each(|row| deltas.entry(id(row)).or_default().push(row.delta));
    }
    let mut alone: HashMap<PartId, f64> = HashMap::new();
    for row in within.iter().flat_map(|one| &one.rows) {
        let most = alone.entry(id(row)).or_default();
        *most = most.max(row.delta.abs());
    }
    let delta = totals.1 - totals.0;
    let of_pairs = pairs.iter().map(|pair| (pair.delta() - delta).abs()).fold(0.0, f64::max);
    let whole = within.iter().map(|one| one.delta().abs()).fold(of_totals, f64::max);
    let mut rows: HashMap<PartId, super::FunctionDifference> = HashMap::new();
    let count = pairs.first()?.count;
    for (at, pair) in pairs.into_iter().enumerate() {
        for mut row in pair.rows {
            // Its functions are numbered as in the trees of this pair.
            if at > 0 {
                row.functions = Default::default();
            }
            match rows.entry(id(&row)) {
                Entry::Vacant(free) => drop(free.insert(row)),
                Entry::Occupied(known) => add_parts(&mut known.into_mut().parts, row.parts),
            }
        }
    }
    let with_spread = |(id, mut row): (PartId, super::FunctionDifference)| {
        let seen = deltas.remove(&id).unwrap_or_default();
        row.delta = seen.iter().sum::<f64>() / runs;
        row.parts.iter_mut().for_each(|part| part.delta /= runs);
        sorting::by(&mut row.parts, |a, b| b.delta.abs().total_cmp(&a.delta.abs()));
        // A pair that lacks the row has a difference of zero.
        let absent = (seen.len() as f64) < runs;
        let deviations = seen.iter().copied().chain(absent.then_some(0.0)).map(|one| (one - row.delta).abs());
        let most = deviations.fold(alone.get(&id).copied().unwrap_or(0.0), f64::max);
        // The variation of the total is known best. A difference in unchanged code must therefore exceed it as well.
        let most = if row.same_code == Some(true) { most.max(whole) } else { most };
        row.spread = FACTOR * most.max(of_rows);
        row
    };
    let mut explanation = Explanation {
        count,
        totals,
        spread: FACTOR * whole.max(of_pairs),
        rows: rows.into_iter().map(with_spread).collect(),
    };
    explanation.rank();
    Some(explanation)
}

/// Adds the parts of a row in one pair of launches to those in earlier pairs.
fn add_parts(parts: &mut Vec<DifferencePart>, more: Vec<DifferencePart>) {
    for part in more {
        let is_it = |known: &&mut DifferencePart| (&known.site, &known.callee) == (&part.site, &part.callee);
        match parts.iter_mut().find(is_it) {
            Some(known) => known.delta += part.delta,
            None => parts.push(part),
        }
    }
}
