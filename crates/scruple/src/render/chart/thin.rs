//! Thins long series of readings where they are drawn. The models of pages, and so the files of data, keep all of them.

use crate::render::page::{Chart, Drawn, LayerShape};

/// The largest number of readings of a series that are all drawn. It is more than a page has places for.
const MOST: usize = 4000;

/// Whether a series of this length is thinned.
pub(crate) fn is_long(length: usize) -> bool {
    length > MOST
}

/// Returns how many neighbours are drawn by two marks, if a series of this length is thinned.
fn stretch(length: usize) -> Option<usize> {
    is_long(length).then(|| length.div_ceil(MOST / 2))
}

/// Returns the indices of the readings to draw, in order: of each stretch of neighbours the least and the largest.
pub(crate) fn drawn(values: &[f64]) -> Vec<usize> {
    let Some(stretch) = stretch(values.len()) else { return (0..values.len()).collect() };
    let mut indices = Vec::with_capacity(MOST);
    for start in (0..values.len()).step_by(stretch) {
        let within = || start..(start + stretch).min(values.len());
        let by_value = |one: &usize, other: &usize| values[*one].total_cmp(&values[*other]);
        let ends = [within().min_by(by_value), within().max_by(by_value)];
        let mut ends: Vec<usize> = ends.into_iter().flatten().collect();
        ends.sort_unstable();
        ends.dedup();
        indices.extend(ends);
    }
    indices
}

/// Says that a chart does not draw every reading, if it does not.
pub(crate) fn note(chart: &Chart) -> Option<String> {
    let longest = match &chart.drawn {
        Drawn::Rows(rows) => rows.rows.iter().map(|row| row.dots.len()).max(),
        Drawn::Plot(plot) => {
            let thinned = plot.layers.iter().filter(|layer| is_thinned(layer.shape));
            thinned.flat_map(|layer| &layer.pieces).map(Vec::len).max()
        }
        Drawn::Heat(_) | Drawn::Flame(_) => None,
    };
    let stretch = stretch(longest?)?;
    Some(format!(
        "Drawn: of each {stretch} readings in a row, the least and the largest. CSV and JSON have all."
    ))
}

/// Whether layers of this shape may be thinned: those of readings.
pub(crate) fn is_thinned(shape: LayerShape) -> bool {
    matches!(shape, LayerShape::Course | LayerShape::Steps | LayerShape::Points | LayerShape::Spots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_ends_and_extremes_and_a_short_one_everything() {
        let mut values: Vec<f64> = (0..46_000_u32).map(|i| f64::from(i % 97)).collect();
        (values[12_345], values[40_001]) = (-5.0, 500.0);
        let indices = drawn(&values);
        assert!(indices.len() <= MOST && indices.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(indices.contains(&12_345) && indices.contains(&40_001));
        let sorted: Vec<f64> = (0..46_000_u32).map(f64::from).collect();
        let of_sorted = drawn(&sorted);
        assert_eq!((of_sorted.first(), of_sorted.last()), (Some(&0), Some(&45_999)));
        assert_eq!(drawn(&values[..MOST]).len(), MOST);
    }
}
