//! Several comparisons share one error rate: Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979).

/// Holm's step-down procedure for comparisons that are decided by intervals: returns the level at which each is read.
///
/// `decided(i, level)` says whether the i-th comparison reaches a verdict from its interval at `level`. In the first
/// round each of the k comparisons must be decided at 1 − α/k, where α = 1 − `level`. Each comparison that is decided
/// leaves a larger share of the error α to the rest. A comparison that is never decided gets the last and least strict
/// level.
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
