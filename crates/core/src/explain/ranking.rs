//! Orders the functions in which a difference originates.

use super::by_function::{Explanation, FunctionDifference, SHARE};
use scruple_stats::sorting;

impl Explanation {
    /// Orders the rows: functions with changed code first, if their differences matter, then the others; rows whose
    /// difference may be chance last. Within each group the largest difference is first. The consequence of other rows
    /// does not come first if another row matters, nor does a row with the opposite direction of the whole difference
    /// if a row of its group has that direction.
    pub fn rank(&mut self) {
        let others = self.rows.iter().filter(|row| !row.is_consequence());
        let least = SHARE * others.map(|row| row.delta.abs()).sum::<f64>();
        let matters = |row: &FunctionDifference| {
            !row.is_consequence() && row.delta.abs() >= least && !row.is_within_spread()
        };
        let is_first = |row: &FunctionDifference| row.same_code != Some(true) && matters(row);
        sorting::by(&mut self.rows, |a, b| {
            is_first(b)
                .cmp(&is_first(a))
                .then(a.is_within_spread().cmp(&b.is_within_spread()))
                .then(b.delta.abs().total_cmp(&a.delta.abs()))
                .then_with(|| (&a.module, &a.name).cmp(&(&b.module, &b.name)))
        });
        let Some(first) = self.rows.iter().position(matters) else { return };
        let delta = if self.is_within_spread() { 0.0 } else { self.delta() - self.consequences() };
        let may_be_origin = |row: &FunctionDifference| {
            let is_certain = !row.is_consequence() && !row.is_within_spread();
            is_certain && is_first(row) == is_first(&self.rows[first]) && row.delta * delta > 0.0
        };
        let origin = self.rows[first..].iter().position(may_be_origin).map_or(first, |more| first + more);
        self.rows[..=origin].rotate_right(1);
    }
}
