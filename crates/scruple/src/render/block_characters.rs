//! Small pictures made of block characters: histograms, and courses over time.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a histogram over this range, with one character for each bin. Empty bins are spaces.
pub(crate) fn histogram(readings: &[f64], range: (f64, f64), bins: usize) -> String {
    let (low, high) = range;
    let mut counts = vec![0_usize; bins];
    for reading in readings {
        let place = if high > low { (reading - low) / (high - low) } else { 0.5 };
        counts[((place * bins as f64) as usize).min(bins - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    counts
        .into_iter()
        .map(|count| match count {
            0 => ' ',
            count => LEVELS[(count * LEVELS.len()).div_ceil(most).clamp(1, LEVELS.len()) - 1],
        })
        .collect()
}

/// Returns the common range for the histograms of several samples. The few most extreme readings fall into the
/// outermost bins, so that one outlier does not flatten the rest.
pub(crate) fn common_range<'a>(samples: impl Iterator<Item = &'a [f64]>) -> (f64, f64) {
    let mut low = f64::INFINITY;
    let mut high = f64::NEG_INFINITY;
    for sample in samples {
        let mut sorted = sample.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        if let (Some(first), Some(upper)) =
            (sorted.first(), sorted.get(sorted.len().saturating_sub(1) * 95 / 100))
        {
            low = low.min(*first);
            high = high.max(*upper);
        }
    }
    (low, high)
}

/// Draws values over time, on a scale from zero. Each column shows its largest value; a column without a value repeats
/// the previous one.
pub(crate) fn course(values: &[(f64, f64)], end: f64, scale: f64, columns: usize) -> String {
    let mut most: Vec<Option<f64>> = vec![None; columns];
    for (at, value) in values {
        let column = if end > 0.0 { (at / end * columns as f64) as usize } else { 0 };
        let held = &mut most[column.min(columns - 1)];
        *held = Some(held.unwrap_or(0.0).max(*value));
    }
    let mut last = None;
    most.into_iter()
        .map(|value| {
            last = value.or(last);
            match last {
                Some(value) if value > 0.0 && scale > 0.0 => {
                    LEVELS[((value / scale * LEVELS.len() as f64).ceil() as usize).clamp(1, LEVELS.len()) - 1]
                }
                _ => ' ',
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_fill_in_proportion_and_outliers_fall_into_the_last() {
        assert_eq!(histogram(&[0.0, 0.0, 0.0, 0.0, 1.0, 50.0], (0.0, 4.0), 4), "█▂ ▂");
        assert_eq!(histogram(&[5.0], (5.0, 5.0), 3), " █ ");
    }

    #[test]
    fn a_course_shows_its_peaks_and_fills_its_gaps() {
        assert_eq!(course(&[(0.0, 1.0), (0.4, 8.0), (0.5, 2.0), (4.0, 4.0)], 4.0, 8.0, 4), "███▄");
        assert_eq!(course(&[(0.0, 0.0), (2.0, 4.0)], 2.0, 8.0, 2), " ▄");
    }
}
