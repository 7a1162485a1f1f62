//! How many more blocks are needed, and how an error rate is divided among several looks or comparisons.
//!
//! Sources: Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979); Bonferroni's inequality for the
//! looks. Widths shrink with the square root of the number of blocks, hence the square in [`more_blocks`].

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

/// Holm's step-down over comparisons that are decided by intervals: the level at which each may be read.
///
/// `decided(i, level)` says whether the i-th comparison reaches a verdict from its interval at `level`. At first every
/// comparison must do so at 1 − α/k; each one that does leaves a larger share of the error α = 1 − `level` to the rest.
/// A comparison that never decides gets the last and least strict level.
pub fn holm(comparisons: usize, level: f64, mut decided: impl FnMut(usize, f64) -> bool) -> Vec<f64> {
    let mut levels = vec![level; comparisons];
    let mut open: Vec<usize> = (0..comparisons).collect();
    while !open.is_empty() {
        let now = 1.0 - (1.0 - level) / open.len() as f64;
        for &i in &open {
            levels[i] = now;
        }
        let before = open.len();
        open.retain(|&i| !decided(i, now));
        if open.len() == before {
            break;
        }
    }
    levels
}

/// Holm's adjusted p-values, in the order of `p`; each at most 1.
pub fn holm_adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (step, &i) in order.iter().enumerate() {
        largest = largest.max(p[i] * (p.len() - step) as f64).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}
