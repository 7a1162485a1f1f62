//! How precisely user and system time are known. At each tick the kernel looks in which mode a thread is, and it
//! divides the processor time, which it knows exactly, in this proportion.

use super::sheet::{CostRow, Window};
use scruple_core::per_request::Bounds;

/// The fewest ticks per second of processor time that a Linux kernel is built with.
const TICKS_PER_SECOND: f64 = 100.0;

/// Widens the intervals of user and system time by what the number of ticks leaves open, or marks them as absent if
/// that is more than the whole processor time. Neither is more than the whole.
pub(super) fn divide(rows: &mut [CostRow], windows: &[Window]) {
    let each = |row: &CostRow| row.cost.as_ref().ok().map(|cost| cost.each);
    let Some(whole) = rows.iter().find(|row| row.key == "time.cpu").and_then(each) else { return };
    let total = |wanted: &str| {
        let grown = windows.iter().flat_map(|window| &window.grown);
        grown.filter(|(key, _)| key == wanted).map(|(_, growth)| growth).sum::<f64>()
    };
    let all = total("time.cpu");
    for row in rows.iter_mut().filter(|row| matches!(row.key.as_str(), "time.user" | "time.sys")) {
        let vague = |part: Bounds| {
            part.value < 0.0 || part.interval.is_none_or(|i| i.high - i.low > 2.0 * whole.value.abs())
        };
        let share = (total(&row.key) / all).clamp(0.0, 1.0);
        if each(row).is_some_and(vague) {
            row.cost =
                Err("the kernel counts it in ticks, too few of which fell into the windows".to_owned());
        } else if let Ok(cost) = &mut row.cost {
            cost.each = cost.each.divided_by_ticks(whole, share, all / 1e9 * TICKS_PER_SECOND).at_most(whole);
        }
    }
}
