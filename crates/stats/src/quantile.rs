//! Quantiles.
//!
//! Source: Hyndman & Fan, "Sample Quantiles in Statistical Packages" (1996), definition 7.

/// The readings in increasing order. NaN is put at the ends instead of causing a panic.
pub fn sorted(readings: &[f64]) -> Vec<f64> {
    let mut sorted = readings.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The `p`-quantile of readings in increasing order, by linear interpolation between order statistics (type 7).
///
/// `p` is clamped to [0, 1]. The quantile of no readings is NaN, since 0 would look like a value.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = p.clamp(0.0, 1.0) * last as f64;
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let share = place - below as f64;
    if share == 0.0 { sorted[below] } else { sorted[below] + share * (sorted[above] - sorted[below]) }
}

/// The median of readings in any order; NaN when there are no readings. A selection is faster than a sort.
pub fn median(readings: &[f64]) -> f64 {
    let mut readings = readings.to_vec();
    if readings.is_empty() {
        return f64::NAN;
    }
    let (middle, even) = (readings.len() / 2, readings.len().is_multiple_of(2));
    let (below, above, _) = readings.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(below) if even => below + 0.5 * (*above - below),
        _ => *above,
    }
}
