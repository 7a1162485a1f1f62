//! How many more blocks are needed, and how an error rate is divided among several looks.
//!
//! The looks share the error by Bonferroni's inequality. Interval widths shrink with the square root of the number of
//! blocks, hence the square in [`more_blocks`].

/// The largest number of further blocks that is suggested: if more are needed, no reasonable number suffices.
pub const MANY: usize = 1_000_000;

/// The number of blocks, in addition to `n`, that reduces the half width of an interval to `target`.
///
/// It is about n·(h/t)² − n, at least 1 and at most [`MANY`]. Both widths have the same unit, here log ratios.
pub fn more_blocks(n: usize, half_width: f64, target: f64) -> usize {
    let wanted = n as f64 * (half_width / target).powi(2) - n as f64;
    if wanted.is_nan() || wanted > MANY as f64 || target <= 0.0 {
        return MANY;
    }
    (wanted.ceil().max(1.0)) as usize
}

/// Whether an interval is narrow enough to stop: its half width is below half the margin, where no verdict stays open.
pub fn precise(half_width: f64, margin: f64) -> bool {
    half_width < margin / 2.0
}

/// A look: one moment at which a measurement may stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedLook {
    /// The number of blocks after which the look takes place.
    pub blocks: usize,
    /// The level of the interval at this look. All looks together have the error rate of a single one at the requested
    /// level.
    pub level: f64,
}

/// The looks fixed in advance: at `first` blocks, at twice as many, and so on, the last one at `max`.
///
/// The error rate 1 − `level` is divided evenly among the looks.
///
/// ```
/// use scruple_stats::power::looks;
///
/// let blocks: Vec<usize> = looks(10, 80, 0.95).iter().map(|look| look.blocks).collect();
/// assert_eq!(blocks, [10, 20, 40, 80]);
/// ```
pub fn looks(first: usize, max: usize, level: f64) -> Vec<PlannedLook> {
    let mut blocks = Vec::new();
    let mut next = first.max(1);
    while next < max {
        blocks.push(next);
        next = next.saturating_mul(2);
    }
    blocks.push(max);
    let share = (1.0 - level) / blocks.len() as f64;
    blocks.into_iter().map(|blocks| PlannedLook { blocks, level: 1.0 - share }).collect()
}
