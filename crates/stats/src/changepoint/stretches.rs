//! Stretches: the parts of a series between cuts.

use crate::quantile::median;

/// A stretch of fewer values than this is not a level.
pub(super) const SHORTEST: usize = 3;

/// The start of every stretch between cuts, followed by the end of the last one.
pub(super) fn bounds(cuts: &[usize], n: usize) -> Vec<usize> {
    std::iter::once(0).chain(cuts.iter().copied()).chain(std::iter::once(n)).collect()
}

/// Joins each stretch shorter than [`SHORTEST`] with the neighbour whose level is nearer.
pub(super) fn drop_short(cuts: &mut Vec<usize>, values: &[f64]) {
    loop {
        let ends = bounds(cuts, values.len());
        let Some(short) = ends.windows(2).position(|pair| pair[1] - pair[0] < SHORTEST) else { return };
        let level = |stretch: usize| median(&values[ends[stretch]..ends[stretch + 1]]);
        let away = |stretch: usize| (level(stretch) - level(short)).abs();
        let last = ends.len() - 2;
        let joins_next = short == 0 || (short < last && away(short + 1) < away(short - 1));
        cuts.remove(if joins_next { short } else { short - 1 });
    }
}
