//! A sparkline: a line of block characters that shows the values of a series over the versions.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The content of the cell of one version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum VersionCell {
    /// The value of the series at the version.
    Value(f64),
    /// The version could not be built or weighed.
    Failed,
    /// The version was not weighed.
    Empty,
}

/// Returns the column of a version. Several versions share one if there are more versions than columns.
pub(crate) fn column(index: usize, versions: usize, columns: usize) -> usize {
    if versions <= columns { index } else { index * columns / versions }
}

/// Draws the cells in at most this many columns. The last value of a column represents it.
///
/// The scale is logarithmic if the largest value is more than ten times the smallest. It always spans at least a tenth
/// of the value, so that small changes look small.
pub(crate) fn line(cells: &[VersionCell], columns: usize) -> String {
    let values = || {
        cells.iter().filter_map(|cell| if let VersionCell::Value(value) = cell { Some(*value) } else { None })
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let logarithmic = low > 0.0 && high / low > 10.0;
    let on_scale = |value: f64| if logarithmic { value.ln() } else { value };
    let (bottom, top) = (on_scale(low), on_scale(high));
    let least = if logarithmic { 0.0 } else { high.abs() * 0.1 };
    let (bottom, height) = match top - bottom < least {
        // The mid-range value lies in the middle of a block, rather than between two blocks.
        true => ((bottom + top) / 2.0 - least * 7.0 / 16.0, least),
        false => (bottom, top - bottom),
    };
    let width = cells.len().min(columns);
    let mut shown = vec![VersionCell::Empty; width];
    for (index, cell) in cells.iter().enumerate() {
        let place = &mut shown[column(index, cells.len(), columns)];
        let weaker = matches!(place, VersionCell::Empty) || matches!(cell, VersionCell::Value(_));
        if weaker && *cell != VersionCell::Empty {
            *place = *cell;
        }
    }
    let draw = |cell: &VersionCell| match cell {
        VersionCell::Value(value) => {
            let place = if height > 0.0 { (on_scale(*value) - bottom) / height } else { 0.5 };
            LEVELS[((place * 8.0) as usize).min(7)]
        }
        VersionCell::Failed => '×',
        VersionCell::Empty => '·',
    };
    shown.iter().map(draw).collect()
}

/// Writes the marks below a line of this many columns: the number of each event, at the column of its version if there
/// is space. A number with several digits moves left if it would exceed the available width (`room`).
pub(crate) fn marks(events: &[(usize, usize)], versions: usize, columns: usize, room: usize) -> String {
    let mut row: Vec<char> = Vec::new();
    for (number, at) in events {
        let number = number.to_string();
        let place = column(*at, versions, columns).min(room.saturating_sub(number.len()));
        let free = row.len() < place || (row.is_empty() && place == 0);
        if free {
            row.resize(place, ' ');
            row.extend(number.chars());
        }
    }
    row.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use VersionCell::{Empty, Failed, Value};

    #[test]
    fn failures_and_gaps_are_distinguished() {
        assert_eq!(line(&[Value(1.0), Failed, Empty, Value(8.0)], 10), "▁×·█");
        assert_eq!(line(&[Empty, Failed], 10), "·×");
        assert_eq!(line(&[], 10), "");
    }

    #[test]
    fn decades_are_spread_and_noise_is_flat() {
        assert_eq!(line(&[1.0, 10.0, 100.0, 1000.0].map(Value), 10), "▁▃▆█");
        assert_eq!(line(&[100.0, 100.5, 100.2].map(Value), 10), "▄▄▄");
        assert_eq!(line(&[0.0, 0.0].map(Value), 10), "▅▅");
    }

    #[test]
    fn more_versions_than_columns_share_them() {
        let cells: Vec<VersionCell> =
            (0..100).map(|i| if i == 50 { Failed } else { Value(f64::from(i)) }).collect();
        let drawn = line(&cells, 10);
        assert_eq!(drawn.chars().count(), 10);
        assert!(drawn.starts_with('▁') && drawn.ends_with('█'), "{drawn}");
    }

    #[test]
    fn marks_stand_at_their_versions_unless_there_is_no_room() {
        assert_eq!(marks(&[(1, 0), (2, 3), (3, 4), (12, 6), (13, 7)], 20, 20, 40), "1  2  12");
        assert_eq!(marks(&[(1, 100)], 200, 20, 20), "          1");
    }

    #[test]
    fn the_number_of_an_event_at_the_last_column_is_whole() {
        assert_eq!(marks(&[(12, 199)], 200, 20, 20), "                  12");
        assert_eq!(marks(&[(12, 19)], 20, 20, 40), "                   12");
    }
}
