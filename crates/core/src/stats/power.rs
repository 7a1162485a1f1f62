//! How many more blocks are needed, and how an error rate is divided among several looks.
//!
//! The looks share the error by Bonferroni's inequality. Widths shrink with the square root of the number of blocks,
//! hence the square in [`more_blocks`].

/// More blocks than this are never suggested: then no reasonable number suffices.
pub const MANY: usize = 1_000_000;

/// How many more blocks than `n` reduce the half width of an interval to `target`.
///
/// About n·(h/t)² − n, at least 1 and at most [`MANY`]; both widths in the same unit, here log ratios.
pub fn more_blocks(n: usize, half_width: f64, target: f64) -> usize {
    let wanted = n as f64 * (half_width / target).powi(2) - n as f64;
    if wanted.is_nan() || wanted > MANY as f64 || target <= 0.0 {
        return MANY;
    }
    (wanted.ceil().max(1.0)) as usize
}

/// Whether an interval is narrow enough to stop: half of it is below half the margin, where no verdict stays open.
pub fn precise(half_width: f64, margin: f64) -> bool {
    half_width < margin / 2.0
}

/// One moment at which stopping is allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// After how many blocks.
    pub blocks: usize,
    /// The level of the interval at this look, such that all looks together err no more often than one would.
    pub level: f64,
}

/// The looks fixed in advance: at `first` blocks, twice as many, and so on, the last one at `max`.
///
/// The error rate 1 − `level` is divided evenly among them.
///
/// ```
/// use scruple_core::stats::power::looks;
///
/// let blocks: Vec<usize> = looks(10, 80, 0.95).iter().map(|look| look.blocks).collect();
/// assert_eq!(blocks, [10, 20, 40, 80]);
/// ```
pub fn looks(first: usize, max: usize, level: f64) -> Vec<Look> {
    let mut blocks = Vec::new();
    let mut next = first.max(1);
    while next < max {
        blocks.push(next);
        next = next.saturating_mul(2);
    }
    blocks.push(max);
    let share = (1.0 - level) / blocks.len() as f64;
    blocks.into_iter().map(|blocks| Look { blocks, level: 1.0 - share }).collect()
}
